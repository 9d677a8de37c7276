//! Workflows on real processes: tasks run once each, in order, one at a time on a node; what an exit code asks for happens; a job
//! whose agent is killed is not run again unless it may be; a run that is deleted leaves nothing behind.

use std::path::Path;

use crate::place::{Setup, code, done, text, wait_for};

pub(crate) const ALLOWED: &str = "tasks = \"allow\"";

/// An installation with agents that run tasks.
pub(crate) async fn installed(agents: &[&str]) -> Setup {
    let mut place = Setup::new().await;
    for name in agents {
        place.start_agent(name, ALLOWED);
    }
    for name in agents {
        wait_for("the agent reports", async || reports(&place, name)).await;
    }
    place
}

pub(crate) fn reports(place: &Setup, name: &str) -> bool {
    let listed = place.run(&["node", "list", "presence = up", "-o", "name"]);
    text(&listed.stdout).lines().any(|line| line.ends_with(name))
}

/// Applies a workflow `work` of one stage with these tasks, each with a script and other lines of its document.
pub(crate) fn apply(place: &Setup, tasks: &[(&str, &str, &str)]) {
    let mut documents = String::new();
    for (name, more, script) in tasks {
        let script: String = script.lines().map(|line| format!("        {line}\n")).collect();
        documents.push_str(&format!(
            "kind: task\nname: {name}\n{more}steps:\n  - name: do\n    script:\n      text: |\n{script}---\n"
        ));
    }
    let names: Vec<&str> = tasks.iter().map(|(name, _, _)| *name).collect();
    documents.push_str(&format!("kind: stage\nname: all\ntasks: [{}]\n---\n", names.join(", ")));
    documents.push_str("kind: workflow\nname: work\nstages: [all]\n");
    let applied = place.run_with(&["apply", "-f", "-"], &documents);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
}

/// Starts a run on all nodes; answers its name.
pub(crate) fn start(place: &Setup, flags: &[&str]) -> String {
    let run = done(place, &[&["workflow", "run", "work", "-l", "all", "-o", "name"], flags].concat());
    run.trim().trim_start_matches("run/").to_owned()
}

pub(crate) fn state(place: &Setup, run: &str) -> String {
    let shown = done(place, &["run", "get", run, "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    shown.get("state").and_then(serde_json::Value::as_str).unwrap().to_owned()
}

pub(crate) fn why(place: &Setup, run: &str, node: &str) -> String {
    text(&place.run(&["why", &format!("target/{run}/{node}")]).stdout)
}

pub(crate) fn lines(path: &str) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_runs_the_tasks_in_order_once_with_its_params() {
    let place = installed(&["web-1", "web-2"]).await;
    done(&place, &["node", "set", "web-1", "greeting=hello", "-q"]);
    done(&place, &["profile", "set", "english", "greeting=hi", "-q"]);
    done(&place, &["profile", "live", "english", "-q"]);
    let out = place.path("out");
    let greet = format!(
        "kind: task\nname: greet\nparams:\n  greeting: {{type: string}}\nsteps:\n  - name: config\n    file:\n      path: greeting\n      \
         mode: \"0600\"\n      text: \"{{{{ params.greeting }}}} from {{{{ node.name }}}}\\n\"\n  - name: say\n    script:\n      \
         text: |\n        cat greeting >> {out}\n        stat -c %a greeting >> {out}.modes\n---\nkind: task\nname: after\nsteps:\n  \
         - name: again\n    script:\n      interpreter: [bash, -c, 'source \"$0\"']\n      text: echo \"$BELLWETHER_NODE after\" >> {out}\n---\n\
         kind: stage\nname: hello\ntasks: [greet, after]\nprofiles: [english]\n---\nkind: workflow\nname: work\nstages: [hello]\n"
    );
    let applied = place.run_with(&["apply", "-f", "-"], &greet);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
    let watched = place.run(&["workflow", "run", "work", "-l", "role=web", "-w", "--timeout", "60s"]);
    assert_eq!(code(&watched), 0, "{}{}", text(&watched.stdout), text(&watched.stderr));
    let said = lines(&out);
    let place_of = |line: &str| said.iter().position(|said| said == line).unwrap();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(
        place_of("hello from web-1") < place_of("web-1 after"),
        "the node's own param, then the next task"
    );
    assert!(place_of("hi from web-2") < place_of("web-2 after"), "the profile of the stage");
    assert_eq!(lines(&format!("{out}.modes")), ["600", "600"]);
    let work = place.path("web-1/data/work");
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 0, "its working directory is removed");
    let status = done(&place, &["status"]);
    assert!(!status.contains("work-"), "a run that succeeded is in `run list`: {status}");
    assert!(done(&place, &["run", "list"]).contains("2 of 2"));
}

/// The failure of the first task on web-1 is told by everything that is asked about the run, its job and its node.
fn is_told_everywhere(place: &Setup, run: &str) {
    let watched = place.run(&["rollout", "get", run, "-w"]);
    let said = text(&watched.stdout);
    assert!(
        said.contains("web-1 failed: task needs (1 of 2), step do: exit code 3; last output: out of paper"),
        "{said}"
    );
    assert!(said.contains(&format!("bellwether job get {run}/web-1")), "{said}");
    let advice = text(&watched.stderr);
    assert!(advice.contains(&format!("job retry {run}/web-1")) && !advice.contains("undo"), "{advice}");
    for (asked, says) in [
        (["why", &format!("run/{run}")], "paused"),
        (["why", &format!("job/{run}/web-1")], "step do: exit code 3"),
        (["describe", &format!("run/{run}")], "target.failed"),
        (["describe", &format!("job/{run}/web-1")], "out of paper"),
        (["describe", "workflow/work"], "stages       all"),
        (["describe", "task/needs"], "step do: script"),
        (["describe", "stage/all"], "workflows    work"),
    ] {
        let said = text(&place.run(&asked).stdout);
        assert!(said.contains(says), "{asked:?}: {says:?} is not in:\n{said}");
    }
    let unknown = text(&place.run(&["why", "run/work-999"]).stderr);
    assert!(unknown.contains("cannot find run work-999"), "{unknown}");
    let of_node = text(&place.run(&["why", "web-1"]).stdout);
    assert!(of_node.contains(&format!("{run}: ")), "a failure of a run that has not ended: {of_node}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_param_or_a_failed_task_ends_the_run_on_the_node_and_says_why() {
    let place = installed(&["web-1"]).await;
    let never = place.path("never");
    apply(
        &place,
        &[("needs", "params: {port: {type: integer}}\n", "true"), ("next", "", &format!("touch {never}"))],
    );
    let run = start(&place, &[]);
    wait_for("it fails", async || why(&place, &run, "web-1").contains("param port has no value")).await;
    assert!(done(&place, &["run", "get", &run]).contains("0 done, 1 failed"));
    let none = place.run(&["job", "get", &format!("{run}/web-1")]);
    let said = text(&none.stderr);
    assert!(said.contains("has not begun that task") && said.contains("param port has no value"), "{said}");
    assert!(said.contains(&format!("bellwether why target/{run}/web-1")), "{said}");
    done(&place, &["node", "set", "web-1", "port=http"]);
    let odd = text(&place.run(&["job", "get", &format!("{run}/web-1")]).stderr);
    let set = format!(
        "set the param: bellwether node set web-1 port=VALUE; then begin the task: bellwether job retry {run}/web-1"
    );
    assert!(said.contains(&set) && odd.contains(&set), "{said}\n{odd}");
    done(&place, &["node", "set", "web-1", "port=80"]);
    done(&place, &["job", "retry", &format!("{run}/web-1")]);
    wait_for("it is done", async || state(&place, &run) == "succeeded").await;
    assert!(Path::new(&never).exists());
    std::fs::remove_file(&never).unwrap();
    done(&place, &["node", "runnable", "web-1"]);
    apply(&place, &[("needs", "", "echo out of paper; exit 3"), ("next", "", &format!("touch {never}"))]);
    let run = start(&place, &[]);
    wait_for("it fails", async || state(&place, &run) == "paused").await;
    let reason = why(&place, &run, "web-1");
    assert!(reason.contains("task needs (1 of 2), step do: exit code 3"), "{reason}");
    assert!(!Path::new(&never).exists(), "no task after one that failed");
    let logs = place.run(&["node", "logs", "web-1"]);
    assert!(text(&logs.stdout).contains("out of paper"), "{}{}", text(&logs.stdout), text(&logs.stderr));
    assert!(text(&logs.stdout).contains(&run), "{}", text(&logs.stdout));
    is_told_everywhere(&place, &run);
    let again = place.run(&["rollout", "start", &run]);
    assert!(text(&again.stderr).contains("a run is started once"), "{}", text(&again.stderr));
    assert!(!done(&place, &["export"]).contains(&run), "a run is started, not applied");
    let refused = place.run(&["entity", "delete", &run, "--yes"]);
    assert!(text(&refused.stderr).contains("run delete"), "{}", text(&refused.stderr));
    let refused = place.run(&["run", "delete", &run, "--yes"]);
    assert!(text(&refused.stderr).contains("rollout abort"), "{}", text(&refused.stderr));
    done(&place, &["rollout", "abort", &run]);
    wait_for("it is aborted", async || state(&place, &run) == "aborted").await;
    done(&place, &["node", "runnable", "web-1"]);
    let of_node = text(&place.run(&["why", "web-1"]).stdout);
    assert!(!of_node.contains(&format!("{run}: web-1")), "a run that was aborted: {of_node}");
    done(&place, &["run", "delete", &run, "--yes"]);
    let kept = place.path(&format!("web-1/data/ledger/runs/{run}"));
    wait_for("the agent forgets it", async || !Path::new(&kept).exists()).await;
    wait_for("the servers forget its log", async || {
        !text(&place.run(&["node", "logs", "web-1"]).stdout).contains(&run)
    })
    .await;
    let log = place.path(&format!("web-1/data/logs/failed/{run}"));
    wait_for("its logs are gone", async || !Path::new(&log).exists()).await;
    assert!(!Path::new(&place.path(&format!("web-1/data/ledger/entities/{run}.json"))).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_agent_is_killed_runs_again_only_if_it_may() {
    let mut place = installed(&["web-1"]).await;
    for (more, ends) in [("", "paused"), ("idempotent: true\n", "succeeded")] {
        let (begun, go) = (place.path("begun"), place.path("go"));
        drop((std::fs::remove_file(&begun), std::fs::remove_file(&go)));
        let script = format!("echo begun >> {begun}\nwhile [ ! -e {go} ]; do sleep 0.1; done");
        apply(&place, &[("slow", more, &script)]);
        let run = start(&place, &[]);
        wait_for("it begins", async || lines(&begun).len() == 1).await;
        place.kill_agent("web-1");
        std::fs::write(&go, "").unwrap();
        place.resume_agent("web-1");
        wait_for("it ends", async || state(&place, &run) == ends).await;
        let times = if more.is_empty() { 1 } else { 2 };
        assert_eq!(lines(&begun).len(), times, "{more}");
        if more.is_empty() {
            let reason = why(&place, &run, "web-1");
            assert!(reason.contains("task slow is lost"), "{reason}");
            done(&place, &["node", "runnable", "web-1"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_makes_a_run_go_on_later() {
    let mut place = installed(&["web-1"]).await;
    let (out, twice) = (place.path("out"), place.path("twice"));
    let incomplete = format!("echo one >> {out}\n[ -e {twice} ] || {{ touch {twice}; exit 128; }}");
    apply(
        &place,
        &[
            ("one", "", &incomplete),
            ("two", "", &format!("echo two >> {out}\nexit 16")),
            ("three", "", &format!("echo three >> {out}")),
        ],
    );
    let run = start(&place, &[]);
    let stopped = async || why(&place, &run, "web-1").contains("goes on when the agent starts again");
    wait_for("the run stops", stopped).await;
    assert_eq!(lines(&out), ["one", "one", "two"]);
    place.stop_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&out), ["one", "one", "two", "three"]);
}

/// A command that runs others where the machine seems to have booted as this file says.
pub(crate) fn booted(place: &Setup, boot: &str) -> Vec<String> {
    let file = place.path(boot);
    std::fs::write(&file, format!("{boot}\n")).unwrap();
    let script = format!("mount --bind {file} /proc/sys/kernel/random/boot_id && exec \"$@\"");
    ["unshare", "-m", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_after_the_reboot_that_a_task_asked_for_and_not_before() {
    let mut place = Setup::new().await;
    let (out, rebooted) = (place.path("out"), place.path("rebooted"));
    let first = booted(&place, "boot-1");
    let command = format!("{ALLOWED}\nreboot_command = [\"sh\", \"-c\", \"echo reboot >> {rebooted}\"]");
    place.start_agent_on(&first, "web-1", &command);
    wait_for("the agent reports", async || reports(&place, "web-1")).await;
    apply(
        &place,
        &[("one", "", &format!("echo one >> {out}\nexit 64")), ("two", "", &format!("echo two >> {out}"))],
    );
    let run = start(&place, &[]);
    wait_for("the machine is to reboot", async || lines(&rebooted).len() == 1).await;
    place.kill_agent("web-1");
    place.resume_agent_on(&first, "web-1");
    wait_for("it asks again in the same boot", async || lines(&rebooted).len() == 2).await;
    assert_eq!(lines(&out), ["one"]);
    place.kill_agent("web-1");
    let second = booted(&place, "boot-2");
    place.resume_agent_on(&second, "web-1");
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&out), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_runs_tasks_only_if_its_own_configuration_allows_it() {
    let mut place = Setup::new().await;
    place.start_agent("web-1", "");
    wait_for("the agent reports", async || reports(&place, "web-1")).await;
    apply(&place, &[("one", "", "true")]);
    let run = start(&place, &[]);
    wait_for("it says why", async || why(&place, &run, "web-1").contains("set tasks = \"allow\"")).await;
    let watched = text(&place.run(&["rollout", "get", &run, "-w", "--timeout", "3s"]).stdout);
    assert_eq!(watched.matches("set tasks = \"allow\"").count(), 1, "what holds it is told once: {watched}");
    let config = place.path("web-1/agent.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, before.replace("[agent]\n", &format!("[agent]\n{ALLOWED}\n"))).unwrap();
    place.hang_up_agent("web-1");
    wait_for("it runs", async || state(&place, &run) == "succeeded").await;
}

/// The server cannot be asked, and the order that the agent has still names the run.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_no_longer_allows_tasks_runs_no_more_of_a_run_and_begins_none_again() {
    let mut place = installed(&["web-1"]).await;
    let out = place.path("out");
    let stops = format!("echo one >> {out}\nexit 16");
    apply(&place, &[("one", "", &stops), ("two", "", &format!("echo two >> {out}"))]);
    let run = start(&place, &[]);
    let stopped = async || why(&place, &run, "web-1").contains("goes on when the agent starts again");
    wait_for("the run stops", stopped).await;
    place.kill_server();
    place.stop_agent("web-1");
    let config = place.path("web-1/agent.toml");
    let allowed = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, allowed.replace(ALLOWED, "")).unwrap();
    place.resume_agent("web-1");
    let said = async || {
        let status = std::fs::read_to_string(place.path("web-1/data/status.json"));
        status.is_ok_and(|status| status.contains("does not allow tasks"))
    };
    wait_for("the agent says that it may not", said).await;
    place.start_server().await;
    wait_for("the server says so too", async || why(&place, &run, "web-1").contains("does not allow tasks"))
        .await;
    assert_eq!(lines(&out), ["one"]);
    place.stop_agent("web-1");
    std::fs::write(&config, allowed).unwrap();
    place.resume_agent("web-1");
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&out), ["one", "two"], "what was complete did not run again");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_actions_of_a_node_run_one_at_a_time() {
    let mut place = Setup::new().await;
    let (lock, clash) = (place.path("lock"), place.path("clash"));
    // Whoever finds the directory there was not alone.
    let alone = format!("mkdir {lock} || touch {clash}\nsleep 0.5\nrmdir {lock} || true");
    let action = place.path("action.sh");
    std::fs::write(&action, &alone).unwrap();
    let sections = format!(
        "{ALLOWED}\n[action.alone]\nrun = [\"sh\", {action:?}]\n[entity.alone]\naction = \"alone\"\n"
    );
    place.start_agent("web-1", &sections);
    wait_for("the agent reports", async || reports(&place, "web-1")).await;
    apply(&place, &[("one", "", &alone), ("two", "", &alone)]);
    done(&place, &["entity", "set", "alone", "--selector", "role=web", "--action", "alone", "--soak", "0s"]);
    let runs = [start(&place, &[]), start(&place, &["--queue"])];
    done(&place, &["rollout", "start", "alone"]);
    for run in &runs {
        wait_for("it ends", async || state(&place, run) == "succeeded").await;
    }
    done(&place, &["rollout", "status", "alone", "--wait", "--timeout", "60s"]);
    assert!(!Path::new(&clash).exists(), "two of them ran at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_task_leaves_running_ends_with_it_and_a_task_that_never_ends_is_killed() {
    let place = installed(&["web-1"]).await;
    let (daemon, grandchild) = (place.path("daemon"), place.path("grandchild"));
    let leaves = format!(
        "setsid sh -c 'echo $$ > {daemon}; sleep 600' >/dev/null 2>&1 &\nwhile [ ! -s {daemon} ]; do sleep 0.1; done"
    );
    let never =
        format!("trap '' TERM\nsh -c 'echo $$ > {grandchild}; sleep 600' &\nwhile true; do sleep 0.1; done");
    apply(&place, &[("leaves", "", &leaves), ("never", "timeout: 2s\n", &never)]);
    let run = start(&place, &[]);
    wait_for("the second fails", async || state(&place, &run) == "paused").await;
    assert!(why(&place, &run, "web-1").contains("task never (2 of 2)"));
    for file in [daemon, grandchild] {
        let pid: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
        let stat = format!("/proc/{pid}/stat");
        let gone = async || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        wait_for("nothing of it runs", gone).await;
    }
}
