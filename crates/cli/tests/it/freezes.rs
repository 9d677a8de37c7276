//! Freezes, the big red switch, approvals, descriptions and objects in files, on the command line.

use std::process::Output;

use serde_json::Value;

use crate::place::{Place, text, wait_for};

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Runs it, and answers what it said on stdout; it must succeed.
fn done(place: &Place, args: &[&str]) -> String {
    let output = place.run(args);
    assert_eq!(code(&output), 0, "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

async fn two_nodes() -> Place {
    let mut place = Place::new().await;
    for name in ["web-1", "web-2"] {
        place.start_agent(name, "[entity.web]\nstatic = [\"/bin/true\"]\n");
    }
    wait_for("both nodes are up", async || {
        let nodes = place.client().nodes("default", None, None, false).await.unwrap().items;
        nodes.iter().filter(|node| node.presence.state == "up").count() == 2
    })
    .await;
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn freezes_come_and_go_on_the_command_line() {
    let place = Place::new().await;
    let on =
        place.run(&["freeze", "on", "sale", "--targets", "zone=b", "--for", "4h", "--why", "television"]);
    assert!(code(&on) == 0 && text(&on.stderr).contains("freeze off sale"), "{}", text(&on.stderr));
    done(&place, &["freeze", "on", "audit", "--all-namespaces", "--stop"]);
    let table = done(&place, &["freeze", "list"]);
    assert!(table.contains("targets zone=b") && table.contains("television"), "{table}");
    assert!(table.contains("everything in every namespace"), "{table}");
    assert_eq!(done(&place, &["freeze", "list", "-o", "name"]), "audit\nsale\n");
    let json: Value = serde_json::from_str(&done(&place, &["freeze", "list", "-o", "json"])).unwrap();
    assert_eq!((&json[0]["global"], &json[1]["expired"]), (&Value::Bool(true), &Value::Bool(false)));
    assert!(done(&place, &["freeze", "list", "-o", "yaml"]).contains("kind: stop"));
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
    let stop = place.run(&["stop-everything", "--yes", "--why", "smoke"]);
    let said = text(&stop.stderr);
    assert!(code(&stop) == 0 && said.contains("bellwether stop-everything --off"), "{said}");
    wait_for("it stands still", async || code(&place.run(&["rollout", "status", "web"])) == 4).await;
    let status = done_or_four(&place, &["rollout", "status", "web"]);
    assert!(status.contains("stop-everything") && status.contains("smoke"), "{status}");
    let resume = place.run(&["rollout", "resume", "web"]);
    let said = text(&resume.stderr);
    assert!(code(&resume) == 7 && said.contains("bellwether freeze off stop-everything"), "{said}");
    let narrower = place.run(&["stop-everything", "--entity", "web", "--yes"]);
    assert_eq!(code(&narrower), 7, "the rest would go on: {}", text(&narrower.stderr));
    done(&place, &["stop-everything", "--off"]);
    assert_eq!(code(&place.run(&["rollout", "status", "web", "--wait", "--timeout", "60s"])), 0);
    assert_eq!(code(&place.run(&["stop-everything", "--off"])), 1);
}

fn done_or_four(place: &Place, args: &[&str]) -> String {
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
    for part in
        ["selector", "role=web", "stages", "events", "rollout.started", "why", "needs a person's approval"]
    {
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
    let place = Place::new().await;
    let batch = done(&place, &["explain", "policy.batch"]);
    assert!(batch.contains("in flight at once") && batch.contains("default  5%"), "{batch}");
    assert!(done(&place, &["explain", "policy"]).contains("policy.hooks.approval.url"));
    assert!(done(&place, &["explain", "freeze.lasts"]).contains("4h"));
    let wrong = place.run(&["explain", "policy.batsh"]);
    assert!(
        code(&wrong) == 1 && text(&wrong.stderr).contains("explain policy.batch"),
        "{}",
        text(&wrong.stderr)
    );
}

const FILE: &str = "kind: entity
name: web
selector: role=web
policy:
  batch: 10%
  stages: ['1', '25% approve', '100%']
  hooks:
    approval:
      url: http://127.0.0.1:9/approve
  monitor:
    url: http://127.0.0.1:9/judge
---
kind: freeze
name: sale
entity: web
why: television
lasts: 4h
";

#[tokio::test(flavor = "multi_thread")]
async fn files_are_compared_applied_and_applied_again() {
    let place = Place::new().await;
    let file = place.path("web.yaml");
    std::fs::write(&file, FILE).unwrap();
    let diff = place.run(&["diff", "-f", &file]);
    assert_eq!(code(&diff), 1, "{}", text(&diff.stderr));
    assert!(text(&diff.stdout).contains("policy.hooks.approval.url: - → http"), "{}", text(&diff.stdout));
    let said = done(&place, &["apply", "-f", &file, "--dry-run"]);
    assert_eq!(said, "entity/web created\nfreeze/sale created\n");
    assert_eq!(code(&place.run(&["entity", "get", "web"])), 1, "a dry run writes nothing");
    assert_eq!(done(&place, &["apply", "-f", &file]), "entity/web created\nfreeze/sale created\n");
    let before = done(&place, &["events", "-o", "name"]);
    assert_eq!(done(&place, &["apply", "-f", &file]), "entity/web unchanged\nfreeze/sale unchanged\n");
    assert_eq!(done(&place, &["events", "-o", "name"]), before, "nothing is written when nothing changes");
    assert_eq!(done(&place, &["diff", "-f", &file]), "");
    let entity = done(&place, &["entity", "get", "web", "-o", "json"]);
    assert!(entity.contains("127.0.0.1:9/judge"), "{entity}");

    let input = FILE.replace("batch: 10%", "batch: 20%").replace("lasts: 4h", "lasts: 2h");
    let diff = place.run_with(&["diff", "-f", "-"], &input);
    let said = text(&diff.stdout);
    assert_eq!(code(&diff), 1);
    assert!(said.contains("policy.batch: 10% → 20%") && said.contains("lasts: 4h → 2h"), "{said}");
    let applied = place.run_with(&["apply", "-f", "-"], &input);
    assert_eq!(text(&applied.stdout), "entity/web changed\nfreeze/sale changed\n");

    let everywhere = "kind: freeze\nname: sale\nall_namespaces: true\nwhy: television\nlasts: 1h\n";
    let applied = place.run_with(&["apply", "-f", "-"], everywhere);
    assert_eq!(text(&applied.stdout), "freeze/sale created\n", "another one than that of the namespace");
    let applied = place.run_with(&["apply", "-f", "-"], everywhere);
    assert_eq!(text(&applied.stdout), "freeze/sale unchanged\n");
    assert!(done(&place, &["freeze", "list"]).contains("in every namespace"));
    done(&place, &["freeze", "off", "sale", "--all-namespaces"]);

    let toml = place.path("api.toml");
    std::fs::write(&toml, "kind = \"entity\"\nname = \"api\"\nselector = \"all\"\n[policy]\nbatch = \"1\"\n")
        .unwrap();
    assert_eq!(done(&place, &["apply", "-f", &toml]), "entity/api created\n");
    let json = place.path("api.json");
    std::fs::write(
        &json,
        "{\"kind\": \"entity\", \"name\": \"api\", \"selector\": \"all\", \"policy\": {\"batch\": \"1\"}}",
    )
    .unwrap();
    assert_eq!(done(&place, &["apply", "-f", &json]), "entity/api unchanged\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_in_a_file_hold_one_node_a_role_and_everybody_and_are_whose_token_it_was() {
    let place = two_nodes().await;
    let file = place.path("pauses.yaml");
    let all = "kind: pause\nname: inventory\nnodes: all\n";
    let pauses = format!(
        "kind: pause\nname: disks\nnodes: role=db or role=mail\nwhy: the disks are being replaced\n---\n\
         kind: pause\nname: one\nnamespace: default\nnodes: name=web-1\n---\n{all}"
    );
    std::fs::write(&file, &pauses).unwrap();
    let diff = place.run(&["diff", "-f", &file]);
    let said = text_of(&diff);
    assert!(code(&diff) == 1 && said.contains("pause/disks (new)"), "{said}");
    assert!(said.contains("nodes: - → role=db or role=mail"), "{said}");
    let created = "pause/disks created\npause/one created\npause/inventory created\n";
    assert_eq!(done(&place, &["apply", "-f", &file, "--dry-run"]), created);
    assert_eq!(done(&place, &["pause", "list", "-o", "name"]), "");
    let applied = place.run(&["apply", "-f", &file]);
    assert_eq!(text_of(&applied), created);
    assert!(text(&applied.stderr).contains("pause/one holds 1 node(s) now"), "{}", text(&applied.stderr));
    let list: Value = serde_json::from_str(&done(&place, &["pause", "list", "-o", "json"])).unwrap();
    let held = |name: &str| {
        let views = list.as_array().unwrap();
        let view = views.iter().find(|view| view["pause"]["name"] == name).unwrap();
        (view["held"].as_u64().unwrap(), view["pause"]["mark"]["by"].as_str().unwrap().to_owned())
    };
    let owner = held("disks").1;
    assert!(!owner.is_empty());
    assert_eq!([held("disks").0, held("one").0, held("inventory").0], [0, 1, 2]);
    wait_for("the node says who holds it", async || done(&place, &["node", "why", "web-1"]).contains(&owner))
        .await;

    let before = done(&place, &["events", "-o", "name"]);
    assert_eq!(done(&place, &["apply", "-f", &file]), created.replace("created", "unchanged"));
    assert_eq!(done(&place, &["events", "-o", "name"]), before, "nothing is written when nothing changes");
    let changed = pauses.replace("replaced", "cleaned");
    let applied = place.run_with(&["apply", "-f", "-"], &changed);
    assert!(
        text_of(&applied).starts_with("pause/disks changed\npause/one unchanged\n"),
        "{}",
        text_of(&applied)
    );
    assert!(done(&place, &["pause", "list"]).contains("cleaned"));
    done(&place, &["pause", "off", "inventory"]);
    assert_eq!(text_of(&place.run_with(&["apply", "-f", "-"], all)), "pause/inventory created\n");
    assert!(done(&place, &["explain", "pause.nodes"]).contains("role=db"));
}

fn text_of(output: &Output) -> String {
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_a_mistake_anywhere_changes_nothing() {
    let place = Place::new().await;
    let good = "kind: entity\nname: web\nselector: all\n---\n";
    let cases = [
        (
            "kind: entity\nname: x\nselector: all\npolicy:\n  batsh: 5%\n",
            &["document 2", "line 9", "did you mean batch?"][..],
        ),
        ("kind: entity\nname: x\nselektor: all\n", &["did you mean selector?"]),
        ("kind: entty\nname: x\n", &["did you mean entity?"]),
        ("kind: freeze\nname: x\nnamespace: default\nall_namespaces: true\n", &["leave one of them out"]),
        ("name: x\n", &["missing field `kind`"]),
        ("kind: entity\nname: x\nselector: role=\n", &["entity/x", "selector"]),
        ("kind: entity\nname: x\nselector: all\npolicy:\n  batch: lots\n", &["entity/x", "policy.batch"]),
        ("kind: freeze\nname: x\nlasts: 0s\n", &["freeze/x", "lasts"]),
        ("kind: freeze\nname: x\nwhy: \"two\\nlines\"\n", &["freeze/x", "why", "one line"]),
        ("kind: pause\nname: x\nnodse: all\n", &["document 2", "line 7", "did you mean nodes?"]),
        ("kind: pause\nname: x\n", &["document 2", "missing field `nodes`"]),
        ("kind: pause\nname: x\nnodes: role=\n", &["pause/x", "nodes"]),
        ("kind: pause\nname: X\nnodes: all\n", &["pause/X", "name"]),
        ("kind: pause\nname: x\nnodes: all\nall_namespaces: true\n", &["unknown field `all_namespaces`"]),
        ("kind: pause\nname: x\nnodes: all\nwhy: \"two\\nlines\"\n", &["pause/x", "why", "one line"]),
        ("kind: entity\nname: web\nselector: all\n", &["entity/web is there twice"]),
    ];
    for (second, says) in cases {
        let output = place.run_with(&["apply", "-f", "-"], &format!("{good}{second}"));
        let said = text(&output.stderr);
        assert_eq!(code(&output), 64, "{second}{said}");
        for word in says {
            assert!(said.contains(word), "{second}{word} is not in: {said}");
        }
        assert_eq!(code(&place.run(&["entity", "get", "web"])), 1, "the first document was written");
    }
    assert_eq!(code(&place.run(&["apply", "-f", "/nowhere.yaml"])), 64);
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
