//! Freezes, the big red switch, approvals and descriptions, on the command line.

use serde_json::Value;

use crate::place::{Setup, code, done, text, wait_for};

async fn two_nodes() -> Setup {
    let mut place = Setup::new().await;
    for name in ["web-1", "web-2"] {
        place.start_agent(name, "[entity.web]\nstatic = [\"/bin/true\"]\n");
    }
    wait_for("both nodes are up", async || {
        let nodes = place.client().nodes("default", false).await.unwrap().items;
        nodes.iter().filter(|node| node.presence.state == "up").count() == 2
    })
    .await;
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn freezes_come_and_go_on_the_command_line() {
    let place = Setup::new().await;
    let on =
        place.run(&["freeze", "on", "sale", "--selector", "zone=b", "--for", "4h", "--reason", "television"]);
    assert!(code(&on) == 0 && text(&on.stderr).contains("freeze off sale"), "{}", text(&on.stderr));
    done(&place, &["freeze", "on", "audit", "--all-namespaces", "--stop"]);
    let table = done(&place, &["freeze", "list"]);
    assert!(table.contains("targets zone=b") && table.contains("television"), "{table}");
    assert!(table.contains("everything in every namespace"), "{table}");
    assert_eq!(done(&place, &["freeze", "list", "-o", "name"]), "audit\nsale\n");
    let json: Value = serde_json::from_str(&done(&place, &["freeze", "list", "-o", "json"])).unwrap();
    assert_eq!((&json[0]["global"], &json[1]["expired"]), (&Value::Bool(true), &Value::Bool(false)));
    let yaml = done(&place, &["freeze", "list", "-o", "yaml"]);
    assert!(yaml.contains("kind: freeze\nname: audit\n") && yaml.contains("freeze_kind: stop"), "{yaml}");
    let described = done(&place, &["describe", "freeze/sale"]);
    assert!(described.contains("freeze.on") && described.contains("television"), "{described}");
    done(&place, &["freeze", "off", "sale"]);
    assert_eq!(code(&place.run(&["freeze", "off", "sale"])), 1, "there is none any more");
    assert_eq!(code(&place.run(&["freeze", "off", "audit"])), 1, "it holds everywhere, not here");
    done(&place, &["freeze", "off", "audit", "--all-namespaces"]);
    assert_eq!(done(&place, &["freeze", "list"]), "nothing is frozen\n");
    assert_eq!(code(&place.run(&["freeze", "on", "x", "--for", "0s"])), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_big_red_switch_asks_first_stops_and_lifts() {
    let place = two_nodes().await;
    let unasked = place.run(&["stop-everything"]);
    assert!(code(&unasked) == 64 && text(&unasked.stderr).contains("--yes"), "{}", text(&unasked.stderr));
    done(&place, &["entity", "set", "web", "--selector", "role=web", "--batch", "1", "--soak", "2s"]);
    done(&place, &["rollout", "start", "web", "v1"]);
    let stop = place.run(&["stop-everything", "--yes", "--reason", "smoke"]);
    let said = text(&stop.stderr);
    assert!(code(&stop) == 0 && said.contains("bellwether stop-everything --off"), "{said}");
    wait_for("it stands still", async || code(&place.run(&["rollout", "status", "web"])) == 4).await;
    let status = done_or_four(&place, &["rollout", "status", "web"]);
    assert!(status.contains("stop-everything") && status.contains("smoke"), "{status}");
    let resume = place.run(&["rollout", "resume", "web"]);
    let said = text(&resume.stderr);
    assert!(
        code(&resume) == 7
            && said.contains("bellwether stop-everything --off")
            && said.contains("stopped by stop-everything (admin: smoke)"),
        "{said}"
    );
    let narrower = place.run(&["stop-everything", "--entity", "web", "--yes"]);
    assert_eq!(code(&narrower), 7, "the rest would go on: {}", text(&narrower.stderr));
    done(&place, &["stop-everything", "--off"]);
    // A wait that begins before the rollout has resumed would end at its pause.
    wait_for("it goes on", async || code(&place.run(&["rollout", "status", "web"])) != 4).await;
    assert_eq!(code(&place.run(&["rollout", "status", "web", "--wait", "--timeout", "60s"])), 0);
    assert_eq!(code(&place.run(&["stop-everything", "--off"])), 1);
}

fn done_or_four(place: &Setup, args: &[&str]) -> String {
    let output = place.run(args);
    assert!(matches!(code(&output), 0 | 4), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_that_needs_a_person_says_what_to_type() {
    let place = two_nodes().await;
    let stages = "1,100% approve";
    done(&place, &["entity", "set", "web", "--selector", "role=web", "--soak", "0s", "--stages", stages]);
    let started = place.run(&["rollout", "start", "web", "v1", "-w", "--timeout", "60s"]);
    assert_eq!(code(&started), 4, "{}", text(&started.stderr));
    let said = text(&started.stderr);
    let (_, command) = said.split_once("approve it with: bellwether ").unwrap();
    let tree = done(&place, &["rollout", "get", "web"]);
    assert!(tree.contains("stage 1 of 2: up to 1") || tree.contains("stage 2 of 2"), "{tree}");
    let described = done(&place, &["describe", "entity/web"]);
    for part in ["targets", "role=web", "stages", "events", "rollout.started", "why", "needs approval"] {
        assert!(described.contains(part), "{part} is not in\n{described}");
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    done(&place, &words);
    assert_eq!(code(&place.run(&["rollout", "status", "web", "--wait", "--timeout", "60s"])), 0);
    assert_eq!(code(&place.run(&words)), 7, "nothing waits any more");
    for subject in ["web-1", "node/web-1", "rollout/web", "web"] {
        assert!(done(&place, &["describe", subject]).contains("why"), "{subject}");
    }
    assert_eq!(code(&place.run(&["describe", "ghost"])), 1);
    assert_eq!(code(&place.run(&["describe", "thing/ghost"])), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_explained_without_a_server() {
    let place = Setup::new().await;
    let batch = done(&place, &["explain", "policy.batch"]);
    assert!(batch.contains("in flight at once") && batch.contains("default  5%"), "{batch}");
    assert!(done(&place, &["explain", "policy"]).contains("policy.hooks.approval.url"));
    assert!(done(&place, &["explain", "freeze.lasts"]).contains("4h"));
    let wrong = place.run(&["explain", "policy.batsh"]);
    assert!(
        code(&wrong) == 1 && text(&wrong.stderr).contains("did you mean policy.batch?"),
        "{}",
        text(&wrong.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_described_with_its_events_and_why() {
    let place = two_nodes().await;
    done(&place, &["entity", "set", "web", "--selector", "all", "--soak", "0s", "--batch", "100%"]);
    done(&place, &["rollout", "start", "web", "v1", "-w", "--timeout", "60s"]);
    let described = done(&place, &["describe", "target/web/web-1"]);
    for word in ["web-1", "succeeded", "v1", "why"] {
        assert!(described.contains(word), "{word} is not in\n{described}");
    }
    assert!(!described.contains("web-2"), "{described}");
    let json: Value =
        serde_json::from_str(&done(&place, &["describe", "target/web/web-1", "-o", "json"])).unwrap();
    assert_eq!(json["subject"], "target/web/web-1");
    for (asked, exit) in [("target/web/ghost", 1), ("target/ghost/web-1", 1), ("target/web", 64)] {
        let output = place.run(&["describe", asked]);
        assert_eq!(code(&output), exit, "{asked}: {}", text(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_by_selector_is_named_by_what_it_keeps() {
    let place = two_nodes().await;
    done(&place, &["entity", "set", "web", "--selector", "role=web", "--soak", "0s"]);
    done(&place, &["freeze", "on", "incident", "-l", "role=web", "--reason", "incident 4711"]);
    let again = place.run(&["freeze", "on", "incident", "-l", "role=web", "--reason", "incident 4711"]);
    assert!(text(&again.stderr).contains("freeze incident: unchanged, covers"), "{}", text(&again.stderr));
    done(&place, &["rollout", "start", "web", "v1"]);
    let lift = "bellwether freeze off incident";
    let frozen = "2 targets are frozen by incident (admin: incident 4711)";
    wait_for("the rollout names the freeze", async || {
        let said = text(&place.run(&["why", "entity/web"]).stdout);
        said.contains(frozen) && said.contains(lift)
    })
    .await;
    let node = done(&place, &["why", "web-1"]);
    assert!(
        node.contains("web-1: frozen by incident (admin: incident 4711)") && node.contains(lift),
        "{node}"
    );
    let resume = place.run(&["rollout", "resume", "web"]);
    let said = text(&resume.stderr);
    assert!(code(&resume) == 7 && said.contains("not paused") && said.contains(lift), "{said}");
    let sheet = done(&place, &["describe", "freeze/incident"]);
    assert!(sheet.contains("scope   targets role=web") && !sheet.contains("expired"), "{sheet}");
    let absent = place.run(&["lock", "describe", "nope"]);
    let said = text(&absent.stderr);
    assert!(code(&absent) == 1 && said.contains("cannot find lock nope"), "{said}");
    let reserved = place.run(&["update-status", "configure", "failed", "--node", "web-1"]);
    let said = text(&reserved.stderr);
    assert!(code(&reserved) == 64 && said.contains("provision, configure, validate, files"), "{said}");
    assert_eq!(done(&place, &["get-failures"]), "nothing failed\n");
    let unmade = place.path("unmade");
    let check = place.run(&["server", "run", "--check", "--data-dir", &unmade]);
    let said = text(&check.stderr);
    assert!(code(&check) == 7 && said.contains("cannot find an installation"), "{said}");
}
