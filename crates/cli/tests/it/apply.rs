//! Documents in files, on the command line: applied, compared, pruned, exported, and refused with their place.

use std::process::Output;

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

const FILE: &str = "kind: entity
name: web
selector: role=web
policy:
  batch: 10%
  stages: ['1', '25% approve', '100%']
  hooks:
    approval:
      url: http://10.0.0.9:9/approve
  monitor:
    url: http://10.0.0.9:9/judge
---
kind: freeze
name: sale
entity: web
reason: television
lasts: 4h
";

#[tokio::test(flavor = "multi_thread")]
async fn files_are_compared_applied_and_applied_again() {
    let place = Setup::new().await;
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
    assert!(entity.contains("10.0.0.9:9/judge"), "{entity}");

    let input = FILE.replace("batch: 10%", "batch: 20%").replace("lasts: 4h", "lasts: 2h");
    let diff = place.run_with(&["diff", "-f", "-"], &input);
    let said = text(&diff.stdout);
    assert_eq!(code(&diff), 1);
    assert!(said.contains("policy.batch: 10% → 20%") && said.contains("lasts: 4h → 2h"), "{said}");
    let applied = place.run_with(&["apply", "-f", "-"], &input);
    assert_eq!(text(&applied.stdout), "entity/web changed\nfreeze/sale changed\n");

    let everywhere = "kind: freeze\nname: sale\nall_namespaces: true\nreason: television\nlasts: 1h\n";
    let applied = place.run_with(&["apply", "-f", "-"], everywhere);
    assert_eq!(text(&applied.stdout), "freeze/sale created\n", "another one than that of the namespace");
    let applied = place.run_with(&["apply", "-f", "-"], everywhere);
    assert_eq!(text(&applied.stdout), "freeze/sale unchanged\n");
    assert!(done(&place, &["freeze", "list"]).contains("in every namespace"));
    done(&place, &["freeze", "off", "sale", "--all-namespaces"]);

    let workflow = "kind: workflow\nname: up\nstages: [none]\nrollback: down\n";
    for command in ["diff", "apply"] {
        let said = text(&place.run_with(&[command, "-f", "-"], workflow).stderr);
        let lacks = "workflow/up: no run starts until there is";
        assert!(said.contains(lacks) && said.contains("workflow/down"), "{command}: {said}");
    }

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
        "kind: pause\nname: disks\nnodes: role=db or role=mail\nreason: the disks are being replaced\n---\n\
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
    assert!(text(&applied.stderr).contains("pause/one: covers 1 node now"), "{}", text(&applied.stderr));
    let list: Value = serde_json::from_str(&done(&place, &["pause", "list", "-o", "json"])).unwrap();
    let held = |name: &str| {
        let views = list.as_array().unwrap();
        let view = views.iter().find(|view| view["pause"]["name"] == name).unwrap();
        (view["held"].as_u64().unwrap(), view["pause"]["annotation"]["by"].as_str().unwrap().to_owned())
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
    let place = Setup::new().await;
    let good = "kind: entity\nname: web\nselector: all\n---\n";
    let cases = [
        (
            "kind: entity\nname: x\nselector: all\npolicy:\n  batsh: 5%\n",
            &["document 2", "line 9", "did you mean batch?"][..],
        ),
        ("kind: entity\nname: x\nselektor: all\n", &["did you mean selector?"]),
        ("kind: entty\nname: x\n", &["did you mean entity?"]),
        ("kind: freeze\nname: x\nnamespace: default\nall_namespaces: true\n", &["exclude each other"]),
        ("name: x\n", &["missing field `kind`"]),
        ("kind: entity\nname: x\nselector: role=\n", &["entity/x", "selector"]),
        ("kind: entity\nname: x\nselector: all\npolicy:\n  batch: lots\n", &["entity/x", "policy.batch"]),
        ("kind: freeze\nname: x\nlasts: 0s\n", &["freeze/x", "lasts"]),
        ("kind: freeze\nname: x\nreason: \"two\\nlines\"\n", &["freeze/x", "reason", "one line"]),
        ("kind: pause\nname: x\nnodse: all\n", &["document 2", "line 7", "did you mean nodes?"]),
        ("kind: pause\nname: x\n", &["document 2", "missing field `nodes`"]),
        ("kind: pause\nname: x\nnodes: role=\n", &["pause/x", "nodes"]),
        ("kind: pause\nname: X\nnodes: all\n", &["pause/X", "name"]),
        ("kind: pause\nname: x\nnodes: all\nall_namespaces: true\n", &["unknown field `all_namespaces`"]),
        ("kind: pause\nname: x\nnodes: all\nreason: \"two\\nlines\"\n", &["pause/x", "reason", "one line"]),
        ("kind: entity\nname: web\nselector: all\n", &["entity/web occurs twice"]),
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

/// Writes a file below the place's directory, with the directories it is in.
pub(crate) fn write(place: &Setup, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = place.path(name);
    std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

const PROFILE: &str = "kind: profile\nname: greeting\nlabels: {app: shop}\nparams: {workers: 4}\n";

#[tokio::test(flavor = "multi_thread")]
async fn directories_several_files_and_stdin_are_applied_in_one_piece() {
    let place = Setup::new().await;
    // The entity is read before its profile, which is fine: the server sees all of them.
    let toml = "kind = \"entity\"\nname = \"motd\"\nselector = \"all\"\nprofile = \"greeting\"\n\
                version = \"greeting\"\n---\nkind = \"slot\"\nname = \"reboot\"\ncapacity = 2\n";
    write(&place, "objects/a.toml", toml);
    write(&place, "objects/b.yml", PROFILE);
    write(&place, "objects/empty.yaml", "# nothing yet\n---\n");
    write(&place, "objects/.hidden.yaml", "kind: nonsense\n");
    write(&place, "objects/notes.txt", "not a document");
    write(&place, "objects/deeper/c.yaml", "kind: pause\nname: disks\nnodes: role=db\n");
    let directory = place.path("objects");
    let web = write(&place, "web.yaml", "kind: entity\nname: web\nselector: all\nversion: v1\n");
    let planned = done(&place, &["apply", "-f", &directory, "-f", &web, "--dry-run"]);
    let expected = "entity/motd created, rollout to greeting@1 requested\nslot/reboot created\n\
                    profile/greeting created\nentity/web created, rollout to v1 requested\n";
    assert_eq!(planned, expected);
    assert_eq!(done(&place, &["apply", "-f", &directory, "-f", &web]), expected);
    assert!(done(&place, &["entity", "list"]).contains("greeting@1"));
    let again = done(&place, &["apply", "-f", &directory, "-f", &web]);
    assert!(again.lines().count() == 4 && again.lines().all(|line| line.ends_with(" unchanged")), "{again}");
    let deeper = done(&place, &["apply", "-R", "-f", &directory]);
    assert!(deeper.contains("pause/disks created"), "{deeper}");
    let next = "kind: entity\nname: web\nselector: all\nversion: v2\nreason: ticket 4711\n";
    let output = place.run_with(&["diff", "-f", "-", "-f", &directory], next);
    let said = text(&output.stdout);
    assert!(code(&output) == 1 && said == "entity/web\n  version: v1 → v2\n", "{said}");
    let output = place.run_with(&["apply", "-f", "-"], next);
    assert_eq!(text(&output.stdout), "entity/web changed, rollout to v2 requested\n");
    assert!(done(&place, &["entity", "get", "web"]).contains("ticket 4711"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_asks_before_it_deletes_an_entity() {
    let place = Setup::new().await;
    let both =
        format!("{PROFILE}---\nkind: entity\nname: old\nselector: all\nlabels: {{app: shop, tier: web}}\n");
    let file = write(&place, "both.yaml", &both);
    done(&place, &["apply", "-f", &file]);
    assert!(done(&place, &["describe", "entity/old"]).contains("tier"));
    let file = write(&place, "one.yaml", PROFILE);
    assert_eq!(code(&place.run(&["apply", "-f", &file, "--prune"])), 64, "it needs labels");
    let labels = ["-l", "app=shop"];
    let prune = |further: &[&'static str]| {
        let args = ["apply", "-f", &file, "--prune"].into_iter().chain(labels);
        place.run(&args.chain(further.iter().copied()).collect::<Vec<_>>())
    };
    let dry = prune(&["--dry-run"]);
    assert_eq!(text(&dry.stdout), "profile/greeting unchanged\nentity/old pruned\n", "{}", text(&dry.stderr));
    let diff = place.run(&["diff", "-f", &file, "--prune", "-l", "app=shop"]);
    assert!(code(&diff) == 1 && text(&diff.stdout).contains("entity/old (pruned)"), "{}", text(&diff.stdout));
    let asked = prune(&[]);
    let said = text(&asked.stderr);
    assert!(code(&asked) == 64 && said.contains("entity/old") && said.contains("--yes"), "{said}");
    assert!(done(&place, &["entity", "list"]).contains("old"));
    assert_eq!(text(&prune(&["--yes"]).stdout), "profile/greeting unchanged\nentity/old pruned\n");
    assert_eq!(code(&place.run(&["entity", "get", "old"])), 1);
    assert_eq!(code(&prune(&[])), 0, "there is nothing to ask about");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_commands_print_as_yaml_can_be_applied_and_changes_nothing() {
    let place = Setup::new().await;
    done(&place, &["profile", "set", "greeting", "text=\"1.10\"", "workers=4", "on=true"]);
    done(&place, &["entity", "set", "motd", "--selector", "all", "--profile", "greeting"]);
    done(
        &place,
        &["entity", "set", "web", "--selector", "role=web", "--stages", "1,100% approve", "--batch", "3"],
    );
    done(&place, &["entity", "set", "lambda", "--external", "--unreachable-after", "2m"]);
    done(&place, &["rollout", "start", "web", "1.10"]);
    done(&place, &["rollout", "start", "motd", "greeting@1"]);
    done(
        &place,
        &["freeze", "on", "sale", "--entity", "web", "--for", "4h", "--reason", "it's: \"television\" #1"],
    );
    done(&place, &["freeze", "on", "audit", "--all-namespaces", "--selector", "zone=b"]);
    done(&place, &["pause", "on", "disks", "--selector", "role=db", "--reason", "new disks"]);
    done(&place, &["slot", "set", "reboot", "--capacity", "2", "--lease", "30m"]);
    let commands: [&[&str]; 8] = [
        &["entity", "list"],
        &["entity", "get", "web"],
        &["freeze", "list"],
        &["pause", "list"],
        &["profile", "list"],
        &["profile", "get", "greeting"],
        &["slot", "list"],
        &["export"],
    ];
    for command in commands {
        let yaml = done(&place, &[command, &["-o", "yaml"]].concat());
        let applied = place.run_with(&["apply", "-f", "-"], &yaml);
        let said = text(&applied.stdout);
        assert_eq!(code(&applied), 0, "{command:?}: {}\n{yaml}", text(&applied.stderr));
        assert!(
            !said.is_empty() && said.lines().all(|line| line.ends_with(" unchanged")),
            "{command:?}: {said}"
        );
    }
    let all = done(&place, &["export", "-o", "name"]);
    let expected =
        "profile/greeting\nslot/reboot\nentity/lambda\nentity/motd\nentity/web\npause/disks\nfreeze/sale\n";
    assert_eq!(all, expected);
    let web = done(&place, &["entity", "get", "web", "-o", "yaml"]);
    assert!(web.starts_with("kind: entity\nname: web\n") && web.contains("\nstatus:\n"), "{web}");
    // Elsewhere they make the same.
    let other = Setup::new().await;
    let yaml = done(&place, &["export"]);
    let applied = other.run_with(&["apply", "-f", "-"], &yaml);
    assert_eq!(text(&applied.stdout).matches(" created").count(), 7, "{}", text(&applied.stderr));
    assert_eq!(done(&other, &["export"]), yaml);
    let json = done(&place, &["export", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap().as_array().unwrap().len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_read_are_refused_with_their_place() {
    let place = Setup::new().await;
    let good = write(&place, "good.yaml", "kind: entity\nname: web\nselector: all\n");
    let late = "kind: slot\nname: a\n---\n# a comment\nkind: entity\nname: api\nselector: all\npolicy:\n  batch: lots\n";
    let late = write(&place, "late.yaml", late);
    let late_toml = "kind = \"slot\"\nname = \"a\"\n---\nkind = \"slot\"\nname = \"b\"\ncapacity = 4000\n";
    let late_toml = write(&place, "late.toml", late_toml);
    let elsewhere = write(
        &place,
        "else.yaml",
        "kind: slot\nname: a\nnamespace: other\n---\nkind: slot\nname: b\nnamespace: default\n",
    );
    let twice = write(&place, "twice.yaml", "kind: entity\nname: web\nselector: name=x\n");
    let huge = format!("kind: slot\nname: a\n# {}\n", "x".repeat(16 << 20));
    std::fs::create_dir_all(place.path("none")).unwrap();
    let none = place.path("none");
    let cases: [(String, &[&str]); 13] = [
        (write(&place, "empty.yaml", ""), &["empty.yaml", "it contains no document"]),
        (write(&place, "empty.toml", "# only this\n"), &["empty.toml", "it contains no document"]),
        (write(&place, "kind.yaml", "kind: entty\nname: x\n"), &["kind.yaml", "did you mean entity?"]),
        (
            write(&place, "key.toml", "kind = \"slot\"\nname = \"x\"\ncapcity = 1\n"),
            &["key.toml", "line 3", "capacity"],
        ),
        (write(&place, "binary.yaml", [0x7f, b'E', b'L', b'F', 0xff, 0x00]), &["binary.yaml", "not text"]),
        (write(&place, "zero.yaml", "kind: slot\0"), &["zero.yaml", "not text", "byte 10"]),
        (write(&place, "huge.yaml", huge), &["huge.yaml", "16777216"]),
        (place.path("missing.yaml"), &["missing.yaml", "No such file"]),
        (none, &["none", "no .toml, .yaml or .yml file"]),
        (late, &["entity/api: policy.batch", "late.yaml, document 2, line 9"]),
        (late_toml, &["slot/b: capacity", "late.toml, document 2, line 6"]),
        (elsewhere, &["else.yaml, document 2, line 7", "namespace default", "other"]),
        (twice, &["entity/web occurs twice", "twice.yaml, line 2", "good.yaml, line 2"]),
    ];
    for (file, says) in cases {
        let output = place.run(&["apply", "-f", &good, "-f", &file]);
        let said = text(&output.stderr);
        assert_eq!(code(&output), 64, "{file}: {said}");
        for word in says {
            assert!(said.contains(word), "{file}: {word} is not in: {said}");
        }
        assert_eq!(code(&place.run(&["entity", "get", "web"])), 1, "{file}: another file was applied");
    }
    let output = place.run_with(&["apply", "-f", "-", "-f", "-"], "kind: slot\nname: a\n");
    assert!(code(&output) == 64 && text(&output.stderr).contains("stdin twice"), "{}", text(&output.stderr));
    assert_eq!(code(&place.run(&["apply"])), 64, "there is nothing to apply without -f");
    let other =
        place.run_with(&["apply", "-f", "-", "-n", "default"], "kind: slot\nname: a\nnamespace: other\n");
    assert!(
        code(&other) == 64 && text(&other.stderr).contains("-n names default"),
        "{}",
        text(&other.stderr)
    );
}

/// A directory without read permission; root may read everything, so only another user notices.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_may_not_be_read_is_refused_by_name() {
    use std::os::unix::fs::PermissionsExt;
    let place = Setup::new().await;
    let file = write(&place, "closed/a.yaml", "kind: slot\nname: a\n");
    let directory = place.path("closed");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o000)).unwrap();
    let may_read = std::fs::read_dir(&directory).is_ok();
    let output = place.run(&["apply", "-f", &directory]);
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
    let said = text(&output.stderr);
    let refused = code(&output) == 64 && said.contains("closed") && said.contains("ermission denied");
    assert!(refused || may_read && code(&output) == 0, "{file}: {said}");
}
