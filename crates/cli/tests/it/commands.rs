//! The command line against a real server and agent: what it prints, and what its exit codes say.

use serde_json::Value;

use crate::place::{Setup, code, text, wait_for};

pub(crate) async fn one_node() -> Setup {
    let mut place = Setup::new().await;
    place.start_agent("web-1", "[entity.system]\nstatic = [\"/bin/true\"]\n");
    wait_for("the node is up", async || {
        place.client().node("default", "web-1").await.is_ok_and(|node| node.presence.state == "up")
    })
    .await;
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_and_failures() {
    let mut place = one_node().await;
    let dir = place.path("web-1/data");
    let run = |args: &[&str]| place.run(args);
    let local = |args: &[&str]| run(&[&["update-status"], args, &["--data-dir", &dir]].concat());
    assert_eq!(code(&run(&["get-failures"])), 0);
    assert_eq!(
        code(&run(&["update-status", "backup", "failed", "--node", "web-1", "--reason", "disk full"])),
        0
    );
    let failures = run(&["get-failures"]);
    assert_eq!(code(&failures), 1);
    assert!(text(&failures.stdout).contains("disk full"), "{}", text(&failures.stdout));
    assert_eq!(text(&run(&["get-failures", "--hosts"]).stdout), "web-1\n");
    assert_eq!(code(&run(&["update-status", "backup", "success", "--node", "web-1"])), 0);
    assert_eq!(code(&run(&["get-failures"])), 0, "one state per category");
    let wrong = run(&["update-status", "backup", "splendid", "--node", "web-1"]);
    assert_eq!(code(&wrong), 64);
    assert!(text(&wrong.stderr).contains("success, failed, running or pending"), "{}", text(&wrong.stderr));
    assert_eq!(code(&run(&["update-status", "backup", "failed", "--node", "ghost"])), 1);
    // Through this machine's own agent, which needs neither server nor token.
    let mut offline =
        place.command(&["update-status", "scrub", "failed", "--reason", "bad sector", "--data-dir", &dir]);
    let offline = offline
        .env("BELLWETHER_SERVER", "https://127.0.0.1:1")
        .env_remove("BELLWETHER_TOKEN")
        .output()
        .unwrap();
    assert_eq!(code(&offline), 0, "{}", text(&offline.stderr));
    wait_for("scrub failed", async || code(&run(&["get-failures"])) == 1).await;
    assert_eq!(code(&local(&["scrub", "success", "--ttl", "1s"])), 0);
    wait_for("scrub is silent", async || {
        let failures = run(&["get-failures", "-o", "json"]);
        let shown: Value = serde_json::from_slice(&failures.stdout).unwrap();
        code(&failures) == 0 && shown["silent"][0]["status"]["state"] == "unknown"
    })
    .await;
    assert!(text(&run(&["get-failures"]).stdout).contains("not updated in time; it was \"success\""));
    assert_eq!(text(&run(&["get-failures", "--hosts"]).stdout), "", "silent is not failed");
    assert!(text(&run(&["node", "get", "web-1"]).stdout).contains("scrub unknown"));
    let own = local(&["validate", "success"]);
    assert_eq!(code(&own), 64, "{}", text(&own.stderr));
    assert!(text(&own.stderr).contains("only a node's own agent sets provision"), "{}", text(&own.stderr));
    assert_eq!(code(&local(&["scrub", "success", "--ttl", "soon"])), 64);
    place.kill_agent("web-1");
    let away = place.run(&["update-status", "scrub", "success", "--data-dir", &dir]);
    assert_eq!(code(&away), 69);
    assert!(text(&away.stderr).contains("bellwether agent status"), "{}", text(&away.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_run_is_read_where_the_status_points() {
    let mut place = Setup::new().await;
    let script = "static = [\"/bin/sh\", \"-c\", \"echo no such package; exit 3\"]";
    place.start_agent("web-1", &format!("[entity.system]\n{script}\n"));
    let none = place.run(&["node", "logs", "web-1"]);
    assert_eq!(code(&none), 1);
    assert!(text(&none.stderr).contains("no output of a failing run"), "{}", text(&none.stderr));
    assert_eq!(code(&place.run(&["trigger-update", "r1"])), 0);
    wait_for("the log", async || code(&place.run(&["node", "logs", "web-1"])) == 0).await;
    let logs = text(&place.run(&["node", "logs", "web-1", "--entity", "system"]).stdout);
    assert!(logs.starts_with("==> configure/system at ") && logs.contains("\nno such package\n"), "{logs}");
    assert_eq!(code(&place.run(&["node", "logs", "web-1", "--category", "validate"])), 1);
    let json: Value =
        serde_json::from_slice(&place.run(&["node", "logs", "web-1", "-o", "json"]).stdout).unwrap();
    assert_eq!(json[0]["category"], "configure");
    wait_for("the status points at it", async || {
        text(&place.run(&["node", "get", "web-1"]).stdout)
            .contains("(log: bellwether node logs web-1 --entity system)")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rollback_the_commands_name_the_cause_and_ask_for_last_known_good() {
    let mut place = Setup::new().await;
    let script = "static = [\"/bin/sh\", \"-c\", \"test $BELLWETHER_VERSION != r2\"]";
    place.start_agent("web-1", &format!("[entity.system]\n{script}\n"));
    let dir = place.path("web-1/data");
    let run = |args: &[&str]| place.run(args);
    assert_eq!(code(&run(&["entity", "set", "system", "--selector", "all", "--soak", "0s"])), 0);
    assert_eq!(code(&run(&["rollout", "start", "system", "r1", "-w", "--timeout", "60s"])), 0);
    let failed = run(&["rollout", "start", "system", "r2", "-w", "--timeout", "60s"]);
    assert_eq!(code(&failed), 1, "{}", text(&failed.stderr));
    for of in [&failed, &run(&["rollout", "status", "system"]), &run(&["rollout", "get", "system"])] {
        let said = text(&of.stdout);
        assert!(said.contains("rollout 2 to r2 was rolled back to r1: 1 of 1 failed, 0 tolerated"), "{said}");
        assert!(said.contains("r1 is last known good"), "{said}");
    }
    let tree = text(&run(&["rollout", "get", "system"]).stdout);
    assert!(tree.contains("0/1 run r2") && tree.contains("1 rolled back"), "{tree}");
    assert!(!tree.contains("succeeded") && !tree.contains('█'), "nothing of r2 succeeded: {tree}");
    for (of, row) in [
        (&["status"][..], "system  1        r1       r1          r2"),
        (&["entity", "list"], "system  all      versions  r1"),
        (&["entity", "get", "system"], "version      r1\nrequested    r2 (start by admin)"),
    ] {
        let said = text(&run(of).stdout);
        assert!(said.contains(row), "the version to run is last known good: {said}");
    }
    let history = text(&run(&["rollout", "history", "system"]).stdout);
    assert!(history.contains("1 of 1 failed, 0 tolerated"), "{history}");
    let current = run(&["current-version", "-e", "system"]);
    let why =
        "r2 was requested last and rolled back: 1 of 1 failed, 0 tolerated; web-1: static: exit code 1\n";
    assert_eq!((text(&current.stdout).as_str(), text(&current.stderr).as_str()), ("r1\n", why));
    assert_eq!(text(&run(&["current-version", "-o", "json"]).stdout), "\"r1\"\n");
    wait_for("the agent runs r1", async || {
        code(&run(&["pending-update", "-e", "system", "--data-dir", &dir])) == 1
    })
    .await;
    let again = place.run_with(
        &["apply", "-f", "-"],
        "kind: entity\nname: system\nselector: all\npolicy: {soak: 0s}\nversion: r2\n",
    );
    let said = text(&again.stderr);
    assert!(said.contains("bellwether rollout retry system --version r2"), "{said}");
    let retried = run(&["rollout", "retry", "system", "--version", "r2", "-w", "--timeout", "60s"]);
    let said = text(&retried.stdout);
    assert_eq!(code(&retried), 1, "it fails again: {said}");
    assert!(said.contains("rollout 3 to r2 was rolled back to r1"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_expected_is_missed_until_it_joins() {
    let place = one_node().await;
    let run = |args: &[&str]| place.run(args);
    assert_eq!(code(&run(&["node", "list", "--unaccounted"])), 0);
    assert_eq!(code(&run(&["node", "expect", "web-9", "--reason", "ordered"])), 0);
    let missing = run(&["node", "list", "--unaccounted"]);
    assert_eq!(code(&missing), 1);
    assert!(
        text(&missing.stdout).contains("web-9") && text(&missing.stdout).contains("ordered"),
        "{missing:?}"
    );
    assert_eq!(text(&run(&["node", "list", "--unaccounted", "-o", "name"]).stdout), "web-9\n");
    assert_eq!(code(&run(&["node", "expect", "web-9", "--off"])), 0);
    assert_eq!(code(&run(&["node", "list", "--unaccounted"])), 0);
    assert_eq!(code(&run(&["node", "expect", "web-1"])), 1, "it has joined");
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_data_where_data_is_asked_for() {
    let place = one_node().await;
    let json = place.run(&["node", "list", "-o", "json"]);
    let nodes: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(nodes[0]["node"]["name"], "web-1");
    assert_eq!(text(&place.run(&["node", "list", "-o", "name"]).stdout), "web-1\n");
    assert!(text(&place.run(&["node", "get", "web-1", "-o", "yaml"]).stdout).contains("name: web-1"));
    let table = text(&place.run(&["node", "list"]).stdout);
    assert!(table.starts_with("NAME"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colour where nobody sees it");
    let events = text(&place.run(&["events", "-o", "json"]).stdout);
    assert!(events.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{events}");
    assert_eq!(text(&place.run(&["events", "-o", "json", "--since", "1h"]).stdout), events);
    assert!(!text(&place.run(&["events", "-o", "json", "--since", "1ms"]).stdout).contains("node.joined"));
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_say_what_why_and_what_to_try() {
    let place = one_node().await;
    let cases: [(&[&str], i32, &str); 24] = [
        (&["workflow", "run", "w", "-l", "role="], 64, "--filter: "),
        (&["job", "list", "--sort", "colour"], 64, "--sort: "),
        (&["node", "list", "--limit", "0"], 64, "--limit: "),
        (&["entity", "set", "web", "--selector", "all", "--batch", "lots"], 64, "--batch: "),
        (&["run", "list", "--node", "a b"], 64, "not a valid node name"),
        (&["pause", "on", "p", "-l", "role="], 64, "--selector: "),
        (&["cluster", "members", "ghost", "--accept", "--yes"], 1, "cannot find cluster ghost"),
        (&["cluster", "set", "a", "--discover-url", "http://a", "--no-discovery"], 64, "cannot be used with"),
        (&["events", "--chain", "99999"], 1, "cannot find event 99999"),
        (&["events", "--chain", "1", "-w"], 64, "cannot be used with"),
        (&["events", "--about", "entity/ghost"], 1, "cannot find entity ghost"),
        (&["events", "--since", "1h", "--after", "3"], 64, "cannot be used with"),
        (&["events", "--about", "planet/ghost"], 64, "planet is not a kind of object"),
        (&["rollout", "start", "web", "v1", "--timeout", "10s"], 64, "--watch"),
        (&["rollout", "get", "web", "--timeout", "10s"], 64, "--watch"),
        (&["rollout", "status", "web", "--timeout", "10s"], 64, "--wait"),
        (&["node", "get", "ghost"], 1, "cannot find node ghost"),
        (&["entity", "set", "web", "--batch", "5%"], 64, "--selector"),
        (&["entity", "set", "web", "--selector", "role="], 64, "at position 5"),
        (&["rollout", "start", "ghost", "v1"], 1, "list them: bellwether entity list"),
        (&["rollout", "start", "ghost", ""], 1, "cannot"),
        (&["node", "label", "web-1", "nonsense"], 64, "KEY=VALUE"),
        (&["nonsense"], 64, "unrecognized subcommand"),
        (&["node", "decommission", "web-1"], 64, "--yes"),
    ];
    for (args, exit, says) in cases {
        let output = place.run(args);
        let said = text(&output.stderr);
        assert_eq!(code(&output), exit, "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    let away = place.command(&["status"]).env("BELLWETHER_SERVER", "https://127.0.0.1:1").output().unwrap();
    assert_eq!(code(&away), 69);
    let empty = place.command(&["status"]).env("BELLWETHER_TOKEN", "").output().unwrap();
    assert!(code(&empty) == 64 && text(&empty.stderr).contains("BELLWETHER_TOKEN: it is empty"), "{empty:?}");
    let stranger = place.command(&["status"]).env("BELLWETHER_TOKEN", "bwt_wrong").output().unwrap();
    assert_eq!(code(&stranger), 7, "{}", text(&stranger.stderr));
    assert!(
        text(&stranger.stderr).contains("unknown here, expired or deleted"),
        "{}",
        text(&stranger.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_ca_and_a_wrong_scheme_are_named_as_the_thing_to_check() {
    let (place, other) = (Setup::new().await, Setup::new().await);
    let wrong = place.run(&["status", "--ca", &other.path("server/pki/ca.pem")]);
    assert_eq!(code(&wrong), 69);
    assert!(text(&wrong.stderr).contains("hint: check --ca"), "{}", text(&wrong.stderr));
    let plain = place.run(&["status", "--server", &format!("http://127.0.0.1:{}", place.port)]);
    assert_eq!(code(&plain), 69);
    assert!(text(&plain.stderr).contains("hint: check the scheme"), "{}", text(&plain.stderr));
    let token = place.path("server/admin-token");
    let mut bare = place.command(&["context", "set", "far", "--token-file", &token]);
    let bare = bare.env_remove("BELLWETHER_CA").output().unwrap();
    assert_eq!(code(&bare), 64);
    assert!(text(&bare.stderr).contains("without --ca"), "{}", text(&bare.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn checking_a_configuration_compares_it_with_the_name_that_joined() {
    let place = one_node().await;
    let file = place.path("web-1/agent.toml");
    let check = || place.run(&["agent", "run", "--config", &file, "--check"]);
    assert_eq!((code(&check()), text(&check().stderr).as_str()), (0, "the configuration is valid\n"));
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, written.replace("name = \"web-1\"", "name = \"web-2\"")).unwrap();
    let renamed = check();
    assert_eq!(code(&renamed), 7);
    assert!(text(&renamed.stderr).contains("this node joined as default/web-1"), "{}", text(&renamed.stderr));
    std::fs::write(&file, written.replace("web-1/data", "web-1/other")).unwrap();
    let absent = check();
    assert_eq!(code(&absent), 0);
    assert!(text(&absent.stderr).contains("this node has not joined yet"), "{}", text(&absent.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_decommissioned_shows_when_and_why() {
    let mut place = one_node().await;
    place.kill_agent("web-1");
    let shown = || text(&place.run(&["node", "get", "web-1"]).stdout);
    assert!(shown().contains("state     up since "), "{}", shown());
    assert_eq!(code(&place.run(&["node", "decommission", "web-1", "--yes"])), 0);
    let node = place.client().node("default", "web-1").await.unwrap().node;
    assert_ne!(node.decommissioned.as_ref().unwrap().at_ms / 1000, 0);
    let said = shown();
    let of = |word: &str| said.lines().find(|line| line.starts_with(word)).unwrap().to_owned();
    let time = of("state").split_once("decommissioned since ").unwrap().1.to_owned();
    assert_eq!(of("removed"), format!("removed   by admin at {time}"), "no dangling colon: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_force_is_on_the_summary() {
    let place = Setup::new().await;
    assert!(!text(&place.run(&["status"]).stdout).contains("stopped"));
    assert_eq!(code(&place.run(&["stop-everything", "--reason", "fire", "--yes"])), 0);
    let said = text(&place.run(&["status"]).stdout);
    assert!(
        said.contains("stopped    stop-everything by admin covers everything in this namespace: fire"),
        "{said}"
    );
    assert_eq!(code(&place.run(&["stop-everything", "--off"])), 0);
    assert!(!text(&place.run(&["status"]).stdout).contains("stopped"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_no_plan_token_is_wrong_usage() {
    let place = one_node().await;
    assert_eq!(code(&place.run(&["entity", "set", "web", "--selector", "all"])), 0);
    let start = |token: &str| place.run(&["rollout", "start", "web", "v1", "--plan", token]);
    let nonsense = start("tuesday");
    assert_eq!(code(&nonsense), 64);
    assert!(text(&nonsense.stderr).contains("is not a plan token"), "{}", text(&nonsense.stderr));
    let other = start("plan-0000000000000000");
    assert_eq!(code(&other), 7, "{}", text(&other.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_keep_where_and_who() {
    let place = Setup::new().await;
    let token = place.path("server/admin-token");
    let set = place.run(&["context", "set", "home", "--token-file", &token]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    let mut status = place.command(&["status"]);
    let status =
        status.env_remove("BELLWETHER_SERVER").env_remove("BELLWETHER_TOKEN").env_remove("BELLWETHER_CA");
    let status = status.output().unwrap();
    assert!(status.status.success(), "{}", text(&status.stderr));
    assert!(text(&place.run(&["context", "list"]).stdout).contains("home"));
    assert_eq!(code(&place.run(&["context", "use", "ghost"])), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn manual_pages_and_completions_are_made() {
    let place = Setup::new().await;
    let dir = place.path("man");
    assert!(place.run(&["man", &dir]).status.success());
    assert!(std::path::Path::new(&dir).join("bellwether-rollout-start.1").exists());
    for page in ["bellwether.1", "bellwether-rollout-start.1"] {
        let page = std::fs::read_to_string(std::path::Path::new(&dir).join(page)).unwrap();
        for part in [".SH ENVIRONMENT", "BELLWETHER_AGENT_DIR", ".SH \"EXIT STATUS\"", "invalid input"] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert!(!page.contains(".SH EXTRA"), "{page}");
    }
    let script = text(&place.run(&["completions", "bash"]).stdout);
    assert!(script.contains("_bellwether"), "no completion function");
}

#[tokio::test(flavor = "multi_thread")]
async fn local_health_names_what_is_missing_and_what_failed_also_without_checks() {
    let mut place = Setup::new().await;
    let (fetch, broken) = (place.path("fetch"), place.path("broken"));
    std::fs::write(&broken, "").unwrap();
    let sections = format!(
        "[entity.web]\nstatic = [\"sh\", \"-c\", \"test ! -e {broken}\"]\n[entity.other]\nstatic = [{fetch:?}]\n"
    );
    place.start_agent("web-1", &sections);
    let health = || {
        let output = place.run(&["local-health", "--data-dir", &place.path("web-1/data")]);
        (code(&output), text(&output.stdout))
    };
    let missing = format!("there is no program {fetch}");
    wait_for("what is missing is named", async || {
        let (code, said) = health();
        code == 1 && said.contains(&missing) && said.contains("machine")
    })
    .await;
    std::os::unix::fs::symlink("/bin/true", &fetch).unwrap();
    wait_for("nothing is missing", async || health() == (0, String::new())).await;

    for args in [&["entity", "set", "web", "--selector", "all"][..], &["rollout", "start", "web", "v1"]] {
        let output = place.run(args);
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    }
    wait_for("the failure is named", async || {
        let (code, said) = health();
        code == 1 && said.contains("failed: static: exit code 1")
    })
    .await;
    std::fs::remove_file(&broken).unwrap();
    wait_for("all is well", async || health().0 == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn small_courtesies_of_the_command_line() {
    let place = one_node().await;
    for args in
        [&["node", "drain", "-l", "all", "--yes", "-w"][..], &["node", "uncordon", "-l", "all", "--yes"]]
    {
        let output = place.run(args);
        assert_eq!(code(&output), 0, "{args:?}: {}", text(&output.stderr));
    }
    let output = place.run(&["history", "web"]);
    let said = text(&output.stderr);
    assert!(
        code(&output) == 64 && said.contains("hint: ") && said.contains("bellwether rollout history"),
        "{said}"
    );
    let output = place.run(&["stop-everything", "--yes"]);
    assert!(text(&output.stderr).contains("everything in this namespace"), "{}", text(&output.stderr));
    let output = place.run(&["stop-everything", "--off"]);
    assert!(
        text(&output.stderr).contains("everything in namespace default continues"),
        "{}",
        text(&output.stderr)
    );
}
