//! A restored backup, and a data directory that was copied back, on a real fleet: what happened after the backup is forgotten by the
//! control plane and known to agents, holders of locks and managers. Whatever is decided afterwards reaches them all the same.

use rustix::process::{Signal, kill_process};

use crate::place::{Setup, done, text, wait_for};
use crate::story_workflows::{apply, installed, lines, start, state, why};

const NODES: [&str; 3] = ["web-1", "web-2", "web-3"];

/// An agent's sections: an entity that writes a param of its profile and a live one to a file, and an action that counts its runs.
fn sections(place: &Setup, name: &str) -> String {
    let (file, ran) = (place.path(&format!("{name}.web")), place.path(&format!("{name}.ran")));
    let script = format!("echo run >> {ran}");
    format!(
        "[[entity.web.file]]\npath = {file:?}\ntext = \"{{{{ params.number }}}} {{{{ params.greeting }}}}\"\n\n\
         [action.says]\nrun = [\"sh\", \"-c\", {script:?}]\n[entity.says]\naction = \"says\"\n"
    )
}

async fn fleet() -> Setup {
    let mut place = Setup::new().await;
    done(&place, &["profile", "set", "season", "greeting=hello"]);
    done(&place, &["profile", "live", "season"]);
    for name in NODES {
        let sections = sections(&place, name);
        place.start_agent(name, &sections);
        wait_for("it has joined", async || place.run(&["node", "profiles", name, "season"]).status.success())
            .await;
    }
    done(&place, &["profile", "set", "web", "number=0"]);
    let entity = ["entity", "set", "web", "--selector", "role=web", "--profile", "web", "--soak", "0s"];
    done(&place, &[&entity[..], &["--batch", "100%"]].concat());
    let action = ["entity", "set", "says", "--selector", "role=web", "--action", "says", "--soak", "0s"];
    done(&place, &[&action[..], &["--batch", "100%"]].concat());
    place
}

fn roll(place: &Setup, number: u32) {
    done(place, &["profile", "set", "web", &format!("number={number}")]);
    let rolled = place.run(&["rollout", "start", "web", "-w", "--timeout", "60s"]);
    assert!(rolled.status.success(), "{}\n{}", text(&rolled.stderr), done(place, &["why", "entity/web"]));
}

fn act(place: &Setup) {
    done(place, &["rollout", "start", "says", "-w", "--timeout", "60s"]);
}

async fn all_have(place: &Setup, expected: &str) {
    for name in NODES {
        let file = place.path(&format!("{name}.web"));
        wait_for(&format!("{name} has {expected}"), async || {
            std::fs::read_to_string(&file).is_ok_and(|found| found == expected)
        })
        .await;
    }
}

/// The number of runs of the action on each node.
fn ran(place: &Setup) -> Vec<usize> {
    NODES.iter().map(|name| lines(&place.path(&format!("{name}.ran"))).len()).collect()
}

/// Takes the lock and answers its fencing number.
fn fence(place: &Setup) -> u64 {
    let said = done(place, &["lock", "run", "db", "--", "sh", "-c", "echo $BELLWETHER_FENCE"]);
    said.trim().parse().unwrap()
}

/// What happens before a backup, and after it.
async fn lives_on(place: &Setup, versions: std::ops::Range<u32>) -> u64 {
    let mut last = 0;
    for number in versions {
        roll(place, number);
        act(place);
        done(place, &["profile", "set", "season", &format!("greeting=g{number}")]);
        all_have(place, &format!("{number} g{number}")).await;
        let next = fence(place);
        assert!(next > last, "fencing number {next} after {last}");
        last = next;
    }
    last
}

/// Whatever the fleet knows that the control plane forgot, what is decided now reaches everybody.
async fn goes_on(place: &Setup, (last, runs): (u64, Vec<usize>)) {
    // What agents took after the backup is not what is wanted now: they are back at what the records say, and later ones come.
    all_have(place, "2 g2").await;
    done(place, &["profile", "set", "season", "greeting=again"]);
    all_have(place, "2 again").await;
    roll(place, 20);
    all_have(place, "20 again").await;
    act(place);
    assert_eq!(ran(place), runs.iter().map(|before| before + 1).collect::<Vec<_>>(), "each ran it once more");
    let next = fence(place);
    assert!(next > last, "fencing number {next} after {last}");
    let bad = done(place, &["rollout", "get", "web", "-o", "json"]);
    let view: serde_json::Value = serde_json::from_str(&bad).unwrap();
    assert!(view.pointer("/progress/bad").is_none_or(|bad| bad.as_array().unwrap().is_empty()), "{bad}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_the_next_rollout_reaches_every_node_and_no_number_is_issued_twice() {
    let mut place = fleet().await;
    let (config, file) = (place.path("server.toml"), place.path("all.backup"));
    lives_on(&place, 1..3).await;
    place.kill_server();
    done(&place, &["server", "backup", "--config", &config, &file]);
    place.start_server().await;
    let mut last = lives_on(&place, 3..13).await;
    // The same backup twice: the second history has numbers of its own, too.
    for _ in 0..2 {
        let runs = ran(&place);
        place.kill_server();
        std::fs::remove_dir_all(place.path("server/store")).unwrap();
        let restored = place.run(&["server", "restore", "--config", &config, &file]);
        assert!(restored.status.success(), "{}", text(&restored.stderr));
        place.start_server().await;
        goes_on(&place, (last, runs)).await;
        last = fence(&place);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_was_copied_back_goes_on_once_that_is_told() {
    let mut place = fleet().await;
    let (config, store, copy) = (place.path("server.toml"), place.path("server/store"), place.path("copy"));
    lives_on(&place, 1..3).await;
    place.kill_server();
    let copied = |from: &str, to: &str| {
        assert!(std::process::Command::new("cp").args(["-a", from, to]).status().unwrap().success());
    };
    copied(&store, &copy);
    place.start_server().await;
    let last = (lives_on(&place, 3..6).await, ran(&place));
    place.kill_server();
    std::fs::remove_dir_all(&store).unwrap();
    copied(&copy, &store);
    let told = done(&place, &["server", "restore", "--in-place", "--config", &config]);
    assert!(told.contains("no fencing number is issued twice"), "{told}");
    place.start_server().await;
    goes_on(&place, last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_was_copied_back_untold_is_seen_wherever_people_look() {
    let mut place = fleet().await;
    let (config, store, copy) = (place.path("server.toml"), place.path("server/store"), place.path("copy"));
    lives_on(&place, 1..2).await;
    place.kill_server();
    let copied = |from: &str, to: &str| {
        assert!(std::process::Command::new("cp").args(["-a", from, to]).status().unwrap().success());
    };
    copied(&store, &copy);
    // Each start is a term of its own.
    for version in 2..4 {
        place.start_server().await;
        lives_on(&place, version..version + 1).await;
        place.kill_server();
    }
    std::fs::remove_dir_all(&store).unwrap();
    copied(&copy, &store);
    place.start_server().await;
    let shows = |args: &[&str]| text(&place.run(args).stdout);
    wait_for("every node is marked", async || {
        shows(&["node", "list"]).matches("up, refuses orders").count() == NODES.len()
    })
    .await;
    let next = "server restore --in-place";
    let summary = shows(&["status"]);
    assert!(summary.contains("3 nodes do not accept their orders; web-1: cannot"), "{summary}");
    assert!(summary.contains(next), "{summary}");
    for subject in ["entity/web", "node/web-1", "target/web/web-1"] {
        let told = shows(&["why", subject]);
        assert!(told.contains("does not accept orders") && told.contains(next), "{subject}: {told}");
        assert!(!told.contains("nothing to do"), "{subject}: {told}");
    }
    place.kill_server();
    done(&place, &["server", "restore", "--in-place", "--config", &config]);
    place.start_server().await;
    wait_for("no node is marked", async || !text(&place.run(&["node", "list"]).stdout).contains("refuses"))
        .await;
    all_have(&place, "1 g1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_went_on_after_the_backup_runs_nothing_twice_and_nothing_of_it_is_stopped() {
    let nodes = ["web-1", "web-2", "web-3", "web-4"];
    let mut place = installed(&nodes).await;
    let (config, file) = (place.path("server.toml"), place.path("all.backup"));
    let (out, gate) = (place.path("out"), place.path("gate"));
    let first = format!(
        "echo \"$BELLWETHER_NODE\" >> {out}\nwhile [ ! -e {gate}.$BELLWETHER_NODE ]; do sleep 0.1; done"
    );
    apply(
        &place,
        &[("first", "", &first), ("second", "", &format!("echo \"$BELLWETHER_NODE second\" >> {out}"))],
    );
    let opens = |node: &str| std::fs::write(format!("{gate}.{node}"), "").unwrap();
    let begun = |node: &'static str| {
        let out = out.clone();
        async move {
            wait_for(&format!("{node} has begun"), async || lines(&out).contains(&node.to_owned())).await;
        }
    };
    opens("web-1");
    let run = start(&place, &["--batch", "1", "--order", "name"]);
    begun("web-2").await;
    place.kill_server();
    done(&place, &["server", "backup", "--config", &config, &file]);
    place.start_server().await;
    opens("web-2");
    opens("web-3");
    begun("web-4").await;
    place.kill_server();
    std::fs::remove_dir_all(place.path("server/store")).unwrap();
    done(&place, &["server", "restore", "--config", &config, &file]);
    place.start_server().await;
    wait_for("web-3 tells what it did", async || done(&place, &["run", "get", &run]).contains("3 done"))
        .await;
    opens("web-4");
    wait_for("the run is complete", async || state(&place, &run) == "succeeded").await;
    let mut ran = lines(&out);
    ran.sort();
    let expected = nodes.iter().flat_map(|node| [(*node).to_owned(), format!("{node} second")]);
    assert_eq!(ran, expected.collect::<Vec<_>>(), "each task once on each node");
    // Whatever they keep of it, the next run is carried out by all.
    let next = start(&place, &[]);
    wait_for("the next run is complete", async || state(&place, &next) == "succeeded").await;
    assert_eq!(lines(&out).len(), 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_started_after_the_backup_is_forgotten_by_nobody_and_holds_nothing() {
    let mut place = installed(&["web-1", "web-2"]).await;
    let (config, file) = (place.path("server.toml"), place.path("all.backup"));
    let (out, gate) = (place.path("out"), place.path("gate"));
    let script = format!(
        "echo \"$BELLWETHER_NODE\" >> {out}\nwhile [ ! -e {gate} ]; do sleep 0.1; done\necho \"$BELLWETHER_NODE end\" >> {out}"
    );
    apply(&place, &[("first", "", &script), ("second", "", "true")]);
    place.kill_server();
    done(&place, &["server", "backup", "--config", &config, &file]);
    place.start_server().await;
    start(&place, &["--batch", "100%"]);
    wait_for("it runs on both", async || lines(&out).len() == 2).await;
    place.kill_server();
    std::fs::remove_dir_all(place.path("server/store")).unwrap();
    done(&place, &["server", "restore", "--config", &config, &file]);
    place.start_server().await;
    // It waits for the job of the other one, which nobody ends.
    let next = start(&place, &["--batch", "100%"]);
    wait_for("it is held", async || {
        text(&place.run(&["why", &format!("target/{next}/web-1")]).stdout).contains("another job or action")
    })
    .await;
    std::fs::write(&gate, "").unwrap();
    wait_for("the next run is complete", async || state(&place, &next) == "succeeded").await;
    assert_eq!(lines(&out).iter().filter(|line| line.ends_with("end")).count(), 4, "{:?}", lines(&out));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_deleted_after_the_backup_is_lost_and_not_run_again() {
    let mut place = installed(&["web-1", "web-2"]).await;
    let (config, file) = (place.path("server.toml"), place.path("all.backup"));
    let (out, gate) = (place.path("out"), place.path("gate"));
    let script = format!(
        "echo \"$BELLWETHER_NODE\" >> {out}\nwhile [ ! -e {gate}.$BELLWETHER_NODE ]; do sleep 0.1; done"
    );
    apply(&place, &[("first", "", &script)]);
    let run = start(&place, &["--batch", "1", "--order", "name"]);
    wait_for("web-1 has begun", async || lines(&out) == ["web-1"]).await;
    place.kill_server();
    done(&place, &["server", "backup", "--config", &config, &file]);
    place.start_server().await;
    for node in ["web-1", "web-2"] {
        std::fs::write(format!("{gate}.{node}"), "").unwrap();
    }
    wait_for("the run is complete", async || state(&place, &run) == "succeeded").await;
    done(&place, &["run", "delete", &run, "--yes"]);
    for node in ["web-1", "web-2"] {
        let entry = place.path(&format!("{node}/data/ledger/entities/{run}.json"));
        wait_for("it is forgotten there", async || !std::path::Path::new(&entry).exists()).await;
    }
    place.kill_server();
    std::fs::remove_dir_all(place.path("server/store")).unwrap();
    done(&place, &["server", "restore", "--config", &config, &file]);
    place.start_server().await;
    wait_for("web-1 says that it is lost", async || why(&place, &run, "web-1").contains("lost")).await;
    done(&place, &["rollout", "resume", &run]);
    wait_for("web-2 says that it is lost", async || why(&place, &run, "web-2").contains("lost")).await;
    assert_eq!(lines(&out), ["web-1", "web-2"], "once each");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_ran_after_the_backup_is_lost_with_the_ledger_of_its_node_and_not_run_again() {
    let nodes = ["web-1", "web-2", "web-3"];
    let mut place = installed(&nodes).await;
    let (config, file, out) = (place.path("server.toml"), place.path("all.backup"), place.path("out"));
    apply(&place, &[("first", "", &format!("echo \"$BELLWETHER_NODE\" >> {out}"))]);
    // The backup has the run: it is assigned to the first node, which has not begun it, and to no other.
    kill_process(place.agent_pid("web-1"), Signal::STOP).unwrap();
    let run = start(&place, &["--batch", "1", "--order", "name"]);
    wait_for("web-1 has it", async || {
        done(&place, &["rollout", "get", &run, "-o", "json"]).contains("in_flight")
    })
    .await;
    assert_eq!(done(&place, &["job", "list", "-o", "name"]), "");
    place.kill_server();
    done(&place, &["server", "backup", "--config", &config, &file]);
    place.start_server().await;
    kill_process(place.agent_pid("web-1"), Signal::CONT).unwrap();
    wait_for("the run is complete", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&out), nodes, "once on each node");
    place.kill_server();
    std::fs::remove_dir_all(place.path("server/store")).unwrap();
    done(&place, &["server", "restore", "--config", &config, &file]);
    // Of the third one, the ledger is there.
    for node in ["web-1", "web-2"] {
        place.kill_agent(node);
        std::fs::remove_dir_all(place.path(&format!("{node}/data/ledger"))).unwrap();
        place.resume_agent(node);
    }
    place.start_server().await;
    for node in ["web-1", "web-2"] {
        wait_for("it says that it is lost, or runs again", async || {
            why(&place, &run, node).contains("lost") || lines(&out).len() > nodes.len()
        })
        .await;
        assert_eq!(lines(&out), nodes, "once on each node");
        let told = why(&place, &run, node);
        let next = format!("bellwether workflow run work -l 'name = \"{node}\"' --from all/first");
        assert!(told.contains(&next), "{told}");
        done(&place, &["rollout", "resume", &run]);
    }
    wait_for("the third one tells that it ran", async || {
        done(&place, &["run", "get", &run]).contains("1 done")
    })
    .await;
    assert_eq!(lines(&out), nodes, "once on each node");
    // What is started now is carried out by all.
    for node in ["web-1", "web-2"] {
        done(&place, &["node", "runnable", node]);
    }
    let next = start(&place, &["--force", "--batch", "100%"]);
    wait_for("the next run is complete", async || state(&place, &next) == "succeeded").await;
    assert_eq!(lines(&out).len(), 6);
}
