//! The verbs for fleets run by version: their answers and their exit codes.

use std::process::Output;
use std::time::Duration;

use bellwether_api::v1::policy::OnFailure;

use crate::commands::one_node;
use crate::place::{Setup, code, text, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_verbs_answer_by_exit_code() {
    let place = one_node().await;
    let dir = place.path("web-1/data");
    let run = |args: &[&str]| place.run(args);
    for verb in [
        &["current-version"][..],
        &["running-versions"],
        &["hosts-at-version", "r7"],
        &["verify-hosts", "r7"],
        &["check-single-version", "r7"],
        &["pending-update", "--data-dir", &dir],
    ] {
        let missing = run(verb);
        let said = text(&missing.stderr);
        assert!(
            said.contains("cannot find entity system") && said.contains("trigger-update"),
            "{verb:?}: {said}"
        );
        assert_eq!(code(&missing), if verb[0] == "pending-update" { 3 } else { 1 }, "{verb:?}");
    }
    assert_eq!(code(&run(&["pending-update", "--data-dir", &dir])), 3, "unknown, and runs nothing");
    assert_eq!(code(&run(&["local-version", "--data-dir", &dir])), 1);
    let created = run(&["trigger-update", "r7"]);
    let said = text(&created.stderr);
    assert!(
        code(&created) == 0 && said.contains("created for every node, with the default policy"),
        "{said}"
    );
    assert_eq!(text(&run(&["current-version"]).stdout), "r7\n");
    wait_for("r7 runs", async || code(&run(&["verify-hosts", "r7", "web-1"])) == 0).await;
    assert_eq!(code(&run(&["verify-hosts", "r8", "web-1"])), 1);
    let ghost = run(&["verify-hosts", "r7", "web-1", "ghost"]);
    assert_eq!((code(&ghost), text(&ghost.stdout)), (1, "ghost not-found\n".to_owned()));
    assert_eq!(code(&place.run_with(&["verify-hosts", "r7", "-"], "web-1\n")), 0);
    let empty = place.run_with(&["verify-hosts", "r7", "-"], "\n");
    assert_eq!(
        (code(&empty), text(&empty.stderr).as_str()),
        (1, "cannot verify nodes: the list on stdin is empty\n")
    );
    assert_eq!(text(&run(&["hosts-at-version", "r7"]).stdout), "web-1\n");
    let nowhere = run(&["hosts-at-version", "r8"]);
    assert_eq!((code(&nowhere), text(&nowhere.stderr).as_str()), (1, "no node runs r8 of entity system\n"));
    assert_eq!(code(&run(&["check-single-version", "r7"])), 0);
    let other = run(&["check-single-version", "r8", "-v"]);
    assert_eq!((code(&other), text(&other.stdout)), (1, "web-1 r7\n".to_owned()));
    assert!(text(&run(&["running-versions"]).stdout).contains("r7"));
    wait_for("the agent says r7", async || code(&run(&["local-version", "--data-dir", &dir])) == 0).await;
    assert_eq!(code(&run(&["pending-update", "--data-dir", &dir])), 1, "up to date");
    let mut away = place.command(&["pending-update", "--data-dir", &dir]);
    let away = away.env("BELLWETHER_SERVER", "https://127.0.0.1:1").output().unwrap();
    assert_eq!(code(&away), 2, "unknown, but something runs: {}", text(&away.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_update_uses_the_policy_of_the_entity_unless_everybody_is_to_be_updated_at_once() {
    let place = one_node().await;
    let run = |args: &[&str]| place.run(args);
    assert_eq!(
        code(&run(&["entity", "set", "system", "-l", "all", "--batch", "0", "--stages", "1,100%"])),
        0
    );
    let policy = async || {
        let view = place.client().current_rollout("default", "system", None, Duration::ZERO).await.unwrap();
        let policy = view.rollout.unwrap().policy;
        (policy.batch, policy.stages.is_some())
    };
    assert_eq!(code(&run(&["trigger-update", "r1"])), 0);
    wait_for("a rollout started", async || text(&run(&["rollout", "get", "system"]).stdout).contains("r1"))
        .await;
    assert_eq!(policy().await, (Some("0".to_owned()), true));
    assert_eq!(code(&run(&["trigger-update", "r2", "--all-at-once"])), 0);
    wait_for("r2 runs", async || code(&run(&["verify-hosts", "r2", "web-1"])) == 0).await;
    assert_eq!(policy().await, (Some("100%".to_owned()), false));
    let kept = text(&run(&["entity", "get", "system", "-o", "json"]).stdout);
    assert!(kept.contains("\"batch\": \"0\""), "the entity keeps its policy: {kept}");
    assert_eq!(code(&run(&["trigger-update", "v1", "-e", "shop"])), 0);
    let made = place.client().entity("default", "shop").await.unwrap();
    assert_eq!(
        (made.policy.batch.as_deref(), made.policy.on_failure),
        (Some("5%"), Some(OnFailure::Rollback))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_silent_node_runs_is_unknown_and_not_wrong() {
    let mut place = one_node().await;
    place.start_agent("web-2", "[entity.system]\nstatic = [\"/bin/true\"]\n");
    assert_eq!(code(&place.run(&["trigger-update", "r7", "--all-at-once"])), 0);
    wait_for("both run r7", async || {
        text(&place.run(&["hosts-at-version", "r7"]).stdout) == "web-1\nweb-2\n"
    })
    .await;
    place.kill_agent("web-2");
    wait_for("web-2 is unreachable", async || {
        place.client().node("default", "web-2").await.is_ok_and(|node| node.presence.state == "unreachable")
    })
    .await;
    let run = |args: &[&str]| {
        let output = place.run(args);
        (code(&output), text(&output.stdout), text(&output.stderr))
    };
    let (exit, listed, said) = run(&["verify-hosts", "r7"]);
    assert_eq!((exit, listed.as_str()), (2, "web-2 unknown\n"));
    assert!(
        said.starts_with("web-2: unknown, unreachable since ") && said.ends_with("; it ran r7 before\n"),
        "{said}"
    );
    let (exit, listed, _) = run(&["verify-hosts", "r8"]);
    assert_eq!((exit, listed.as_str()), (1, "web-1 r7\nweb-2 unknown\n"), "one is wrong");
    let (exit, listed, said) = run(&["hosts-at-version", "r7"]);
    assert_eq!((exit, listed.as_str()), (0, "web-1\n"));
    assert!(said.starts_with("web-2: unknown"), "{said}");
    assert_eq!(run(&["verify-hosts", "r7", "--max-age", "1h"]).0, 0, "the last report is young enough");
    assert_eq!(run(&["hosts-at-version", "r7", "--max-age", "1h"]).1, "web-1\nweb-2\n");
    assert_eq!(run(&["verify-hosts", "r7", "web-2", "--max-age", "0s"]).0, 2);
}

/// Runs a command on a node, without a server, a context or a token.
fn on_node(place: &Setup, node: &str, args: &[&str]) -> Output {
    let mut command = place.command(args);
    for name in ["BELLWETHER_SERVER", "BELLWETHER_CA", "BELLWETHER_TOKEN"] {
        command.env_remove(name);
    }
    command.env("BELLWETHER_AGENT_DIR", place.path(&format!("{node}/data"))).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_a_token_asks_its_own_agent_also_while_cut_off() {
    let mut place = one_node().await;
    let own = |place: &Setup, args: &[&str]| {
        let output = on_node(place, "web-1", args);
        (code(&output), text(&output.stdout), text(&output.stderr))
    };
    let (exit, _, said) = own(&place, &["current-version"]);
    assert_eq!((exit, said.as_str()), (1, "no version of entity system is assigned to this node\n"));
    assert_eq!(own(&place, &["pending-update"]).0, 3, "unknown");
    assert_eq!(code(&place.run(&["trigger-update", "r7"])), 0);
    wait_for("r7 runs", async || own(&place, &["verify-hosts", "r7", "web-1"]).0 == 0).await;
    assert_eq!(own(&place, &["verify-hosts", "r8", "web-1"]), (1, "web-1 r7\n".to_owned(), String::new()));
    assert_eq!(own(&place, &["current-version"]), (0, "r7\n".to_owned(), String::new()));
    assert_eq!(own(&place, &["pending-update"]), (1, String::new(), "up to date: r7\n".to_owned()));
    for args in [
        &["verify-hosts", "r7"][..],
        &["verify-hosts", "r7", "web-1", "web-2"],
        &["current-version", "--consistent"],
    ] {
        let (exit, _, said) = own(&place, args);
        assert!(exit == 64 && said.contains("no server is given"), "{args:?}: {said}");
    }
    let (exit, _, said) = own(&place, &["current-version", "-n", "other"]);
    assert!(exit == 64 && said.contains("its namespace is default"), "{said}");

    let (exit, _, said) = own(&place, &["wait", "--service", "shop", "--timeout", "200ms"]);
    assert!(
        exit == 3 && said.contains("waiting: 1 functional of shop: no node ever registered it"),
        "{said}"
    );
    assert_eq!(own(&place, &["service", "register", "shop", "--ttl", "1h"]).0, 0);
    assert_eq!(own(&place, &["wait", "--service", "shop", "--addressable", "1", "--timeout", "60s"]).0, 0);
    let (exit, _, said) = own(&place, &["wait", "--service", "shop", "--timeout", "200ms"]);
    assert!(
        exit == 3 && said.contains("0 of 1 registered are functional; shop on web-1 is failing"),
        "{said}"
    );
    assert_eq!(own(&place, &["service", "check", "pass", "shop"]).0, 0);
    let opened = ["wait", "--service", "shop", "--timeout", "60s", "--", "echo", "open"];
    assert_eq!(own(&place, &opened).1, "open\n");

    place.kill_server();
    let old = "this machine's agent cannot reach the control plane: its answer is as of ";
    wait_for("the agent is cut off", async || own(&place, &["current-version"]).2.starts_with(old)).await;
    assert_eq!(own(&place, &["current-version"]).1, "r7\n");
    let (exit, _, said) = own(&place, &["pending-update"]);
    assert!(exit == 1 && said.starts_with(old) && said.ends_with("up to date: r7\n"), "{said}");
    let (exit, open, said) = own(&place, &opened);
    assert!(exit == 0 && open == "open\n" && said.starts_with(old), "{said}");

    place.kill_agent("web-1");
    let (exit, _, said) = own(&place, &["current-version"]);
    assert!(exit == 69 && said.contains("cannot reach the agent of this node at"), "{said}");
    let (exit, _, said) = own(&place, &["pending-update"]);
    assert!(exit == 2 && said.contains("cannot reach the agent of this node at"), "{said}");
    let nowhere = on_node(&place, "web-9", &["current-version"]);
    assert!(code(&nowhere) == 64 && text(&nowhere.stderr).contains("no server is given"), "no agent here");
}
