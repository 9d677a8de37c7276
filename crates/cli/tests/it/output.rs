//! What commands print: data in every format, one line for each change, the nearest name, completion, and a quiet end.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::{PROGRAM, Setup, code, done, text, wait_for};

/// A fleet of one node with one of everything that can be listed.
pub(crate) async fn furnished() -> Setup {
    let mut place = Setup::new().await;
    place.start_agent("web-1", "[entity.shop]\nstatic = [\"/bin/true\"]\n[[service]]\nname = \"till\"\n");
    for args in [
        &["entity", "set", "shop", "--selector", "all", "--soak", "0s", "--batch", "10%"][..],
        &["rollout", "start", "shop", "v1", "-w", "--timeout", "60s"],
        &["profile", "set", "colours", "red=1"],
        &["freeze", "on", "sale", "--selector", "zone=b"],
        &["pause", "on", "disks", "-l", "role=db"],
        &["slot", "set", "reboot", "--capacity", "2"],
        &["token", "create", "reader"],
        &["context", "set", "home", "--token-file", &place.path("server/admin-token")],
    ] {
        let output = place.run(args);
        assert_eq!(code(&output), 0, "{args:?}: {}", text(&output.stderr));
    }
    wait_for("the service is known", async || code(&place.run(&["service", "get", "till"])) == 0).await;
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_shows_something_prints_json_yaml_and_names() {
    let place = furnished().await;
    let dir = place.path("web-1/data");
    let commands: [&[&str]; 39] = [
        &["status"],
        &["server", "list"],
        &["agent", "status", "--data-dir", &dir],
        &["node", "list"],
        &["node", "get", "web-1"],
        &["node", "why", "web-1"],
        &["node", "list", "--unaccounted"],
        &["entity", "list"],
        &["entity", "get", "shop"],
        &["rollout", "list"],
        &["rollout", "get", "shop"],
        &["rollout", "status", "shop"],
        &["rollout", "history", "shop"],
        &["rollout", "plan", "shop", "v2"],
        &["profile", "list"],
        &["profile", "get", "colours"],
        &["profile", "history", "colours"],
        &["profile", "diff", "colours", "1"],
        &["service", "list"],
        &["service", "get", "till"],
        &["service", "local", "--data-dir", &dir],
        &["freeze", "list"],
        &["pause", "list"],
        &["slot", "list", "--all"],
        &["lock", "list", "--all"],
        &["token", "list"],
        &["token", "whoami"],
        &["join-token", "list"],
        &["context", "list"],
        &["describe", "node/web-1"],
        &["describe", "rollout/shop"],
        &["describe", "slot/reboot"],
        &["why", "entity/shop"],
        &["explain", "policy.batch"],
        &["get-failures"],
        &["running-versions", "-e", "shop"],
        &["current-version", "-e", "shop"],
        &["local-version", "-e", "shop", "--data-dir", &dir],
        &["check-single-version", "v1", "-e", "shop"],
    ];
    for args in commands {
        let run = |format: &str| place.run(&[args, &["-o", format]].concat());
        let json = run("json");
        let parsed: Result<Value, _> = serde_json::from_slice(&json.stdout);
        assert!(parsed.is_ok(), "{args:?}: {}{}", text(&json.stdout), text(&json.stderr));
        assert!(!text(&json.stdout).contains("_at_ms\": 1"), "{args:?}: {}", text(&json.stdout));
        for format in ["yaml", "name", "wide", "table"] {
            let output = run(format);
            assert_eq!(code(&output), code(&json), "{args:?} -o {format}: {}", text(&output.stderr));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_prints_one_line_and_quiet_silences_it() {
    let place = furnished().await;
    let cases: [(&[&str], &str); 18] = [
        (&["entity", "set", "shop", "--batch", "20%"], "entity shop: batch 10% → 20%\n"),
        (&["entity", "set", "shop", "--batch", "20%"], "entity shop: unchanged\n"),
        (&["entity", "set", "shop", "--domain", "zone"], "entity shop: domain - → zone\n"),
        (&["entity", "set", "shop", "--unset", "domain"], "entity shop: domain zone → -\n"),
        (&["entity", "set", "shop", "--owner", "shop team"], "entity shop: owner - → shop team\n"),
        (&["entity", "set", "shop", "--owner", ""], "entity shop: owner shop team → -\n"),
        (&["node", "label", "web-1", "zone=b"], "node web-1: zone - → b\n"),
        (&["node", "cordon", "web-1"], "node web-1: cordoned\n"),
        (&["node", "cordon", "web-1"], "node web-1: unchanged, it was cordoned already\n"),
        (&["node", "uncordon", "web-1"], "node web-1: uncordoned\n"),
        (&["node", "uncordon", "web-1"], "node web-1: unchanged, it was not cordoned\n"),
        (&["node", "resume", "web-1"], "node web-1: unchanged, it was not paused\n"),
        (&["profile", "set", "colours", "sky=\"blue\""], "profile colours: revision 1 → 2\n"),
        (&["freeze", "off", "sale"], "freeze sale: ended\n"),
        (&["pause", "off", "disks"], "pause disks: ended\n"),
        (&["slot", "delete", "reboot", "--yes"], "slot reboot: deleted\n"),
        (&["token", "delete", "reader", "--yes"], "token reader: deleted\n"),
        (&["context", "delete", "home", "--yes"], "context home: deleted\n"),
    ];
    for (args, line) in cases {
        let output = place.run(args);
        assert_eq!((code(&output), text(&output.stderr).as_str()), (0, line), "{args:?}");
    }
    let events = text(&place.run(&["events", "--about", "shop"]).stdout);
    assert!(events.contains("policy.batch 10% → 20% (admin)"), "the event names the field: {events}");
    assert!(events.contains("owner - → shop team (admin)"), "{events}");
    let shown = place.run(&["entity", "get", "shop", "-o", "json"]).stdout;
    let revision = serde_json::from_slice::<Value>(&shown).unwrap()["revision"].to_string();
    let set =
        |owner: &str| place.run(&["entity", "set", "shop", "--owner", owner, "--if-revision", &revision]);
    assert_eq!(set("team one").status.code(), Some(0));
    let late = set("team two");
    assert_eq!(late.status.code(), Some(6), "{}", text(&late.stderr));
    assert!(text(&late.stderr).contains(&format!("at revision {revision}: it is at revision ")));
    assert_eq!(code(&place.run(&["-n", "depot", "entity", "set", "lift", "--external"])), 0);
    assert_eq!(text(&place.run(&["namespace", "list", "-o", "name"]).stdout), "default\ndepot\n");
    let full = place.run(&["namespace", "delete", "depot", "--yes"]);
    assert_eq!(code(&full), 7, "{}", text(&full.stderr));
    assert!(text(&full.stderr).contains("it contains 1 entity"));
    assert_eq!(code(&place.run(&["-n", "depot", "entity", "delete", "lift", "--yes"])), 0);
    let deleted = place.run(&["namespace", "delete", "depot", "--yes"]);
    assert_eq!((code(&deleted), text(&deleted.stderr).as_str()), (0, "namespace depot: deleted\n"));
    let quiet = place.run(&["entity", "set", "shop", "--batch", "30%", "-q"]);
    assert_eq!((code(&quiet), text(&quiet.stderr)), (0, String::new()));
    let started = place.run(&["rollout", "start", "shop", "v2", "--batch", "50%"]);
    assert!(text(&started.stderr).contains("apply to this rollout alone"), "{}", text(&started.stderr));
    let entity = text(&place.run(&["entity", "get", "shop"]).stdout);
    assert!(entity.contains("batch        30%"), "{entity}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_name_is_answered_with_the_nearest_one() {
    let place = furnished().await;
    let cases: [(&[&str], &str); 10] = [
        (&["node", "get", "web1"], "did you mean web-1?"),
        (&["entity", "get", "shp"], "did you mean shop?"),
        (&["entity", "set", "shp", "--batch", "1"], "did you mean shop?"),
        (&["rollout", "status", "shpo"], "did you mean shop?"),
        (&["service", "get", "tilll"], "did you mean till?"),
        (&["profile", "get", "colors"], "did you mean colours?"),
        (&["freeze", "off", "sael"], "did you mean sale?"),
        (&["describe", "entity/shp"], "did you mean shop?"),
        (&["context", "use", "hom"], "did you mean home?"),
        (&["explain", "policy.batsh"], "did you mean policy.batch?"),
    ];
    let destructive = place.run(&["token", "delete", "raeder", "--yes"]);
    let said = text(&destructive.stderr);
    assert!(
        code(&destructive) == 1 && !said.contains("did you mean"),
        "a near name is another object: {said}"
    );
    for (args, hint) in cases {
        let output = place.run(args);
        assert!(
            code(&output) != 0 && text(&output.stderr).contains(hint),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_about_an_object_are_those_of_its_parts_too() {
    let place = furnished().await;
    let about = |subject: &str| place.run(&["events", "--about", subject, "-o", "json"]);
    let kinds = |subject: &str| {
        let lines = text(&about(subject).stdout);
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.map(|event| event["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for subject in ["entity/shop", "shop", "rollout/shop"] {
        let found = kinds(subject);
        assert!(found.iter().any(|kind| kind == "rollout.started"), "{subject}: {found:?}");
        assert!(found.iter().any(|kind| kind == "target.succeeded"), "{subject}: {found:?}");
    }
    let few = place.run(&["events", "--about", "shop", "--limit", "2", "-o", "name"]);
    assert_eq!(text(&few.stdout).lines().count(), 2);
    let none = place.run(&["events", "--about", "entity/shop", "--after", "100000"]);
    assert_eq!((code(&none), text(&none.stderr).as_str()), (0, "no events about entity/shop\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_in_use_is_not_deleted_by_accident() {
    let place = Setup::new().await;
    let me = text(&place.run(&["token", "whoami", "-o", "name"]).stdout);
    let name = me.trim().rsplit('/').next().unwrap().to_owned();
    let refused = place.run(&["token", "delete", &name, "--yes"]);
    assert_eq!(code(&refused), 7, "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--force"), "{}", text(&refused.stderr));
}

/// What bash offers for a line, by the script that `completions` prints.
fn completed(place: &Setup, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = place.command(&["--"]);
    let answered = command
        .args(&words)
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "true")
        .env("_CLAP_IFS", "\n")
        .output()
        .unwrap();
    text(&answered.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn completion_knows_commands_options_and_names() {
    let place = furnished().await;
    assert_eq!(completed(&place, "bellwether node get we").trim(), "web-1");
    assert_eq!(completed(&place, "bellwether rollout start sh").trim(), "shop");
    assert_eq!(completed(&place, "bellwether describe slot/re").trim(), "slot/reboot");
    assert_eq!(completed(&place, "bellwether context use ho").trim(), "home");
    for (line, found) in [
        ("bellwether describe we", "web-1"),
        ("bellwether why tar", "target/"),
        ("bellwether why target/sh", "target/shop/"),
        ("bellwether why target/shop/we", "target/shop/web-1"),
        ("bellwether why ro", ""),
        ("bellwether events --about ro", "rollout/"),
        ("bellwether events --about rollout/", "rollout/shop"),
        ("bellwether entity set shop --on-failure ", "rollback\npause\ncontinue"),
        ("bellwether entity set shop --order ", "name\nlabel:\nshuffle:\nfollowers-first"),
        ("bellwether entity set shop --supersede f", "finish"),
        ("bellwether entity set shop --unset max", "max-unavailable"),
        ("bellwether token create x --role ", "admin\noperator\nviewer"),
        ("bellwether update-status scrub s", "success"),
    ] {
        assert_eq!(completed(&place, line).trim(), found, "{line}");
    }
    assert!(completed(&place, "bellwether ro").contains("rollout"));
    let hidden = completed(&place, "bellwether ");
    assert!(hidden.contains("node") && !hidden.contains("lock-child"), "{hidden}");

    let script = place.path("completion.bash");
    std::fs::write(&script, &place.run(&["completions", "bash"]).stdout).unwrap();
    let bin = std::path::Path::new(PROGRAM).parent().unwrap().display().to_string();
    let shell = format!(
        "source {script}; COMP_WORDS=(bellwether entity get s); COMP_CWORD=3; COMP_TYPE=9; \
         _clap_complete_bellwether bellwether s get; echo \"${{COMPREPLY[*]}}\""
    );
    let plain = place.command(&[]);
    let mut bash = Command::new("bash");
    bash.args(["-c", &shell]).env_clear();
    for (key, value) in plain.get_envs() {
        bash.env(key, value.unwrap());
    }
    let answered = bash.env("PATH", format!("{bin}:/usr/bin:/bin")).output().unwrap();
    assert_eq!(text(&answered.stdout).trim(), "shop", "{}", text(&answered.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_ends_a_command_quietly() {
    let place = furnished().await;
    let slow = place.run(&["rollout", "start", "shop", "v2", "--soak", "10m", "--deadline", "20m"]);
    assert_eq!(code(&slow), 0, "{}", text(&slow.stderr));
    // What is followed has not ended: a script must not take it for done.
    let cases: [(&[&str], i32); 5] = [
        (&["completions", "bash"], 0),
        (&["entity", "list"], 0),
        (&["explain"], 0),
        (&["events", "-w"], 141),
        (&["rollout", "get", "shop", "-w"], 141),
    ];
    for (args, exit) in cases {
        let mut command = place.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        // A command that follows events notices with the next one.
        let labelled = place.run(&["node", "label", "web-1", &format!("seen={}", args.len())]);
        assert_eq!(code(&labelled), 0);
        let ended = child.wait_with_output().unwrap();
        assert_eq!((code(&ended), text(&ended.stderr)), (exit, String::new()), "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_written_is_a_failure() {
    let place = furnished().await;
    for args in [&["export"][..], &["status"], &["explain"], &["completions", "bash"], &["events"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = place.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = text(&ended.stderr);
        assert_eq!(code(&ended), 1, "{args:?}: {said}");
        assert!(
            said.contains("cannot write to standard output: No space left on device"),
            "{args:?}: {said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_sorted_cut_and_counted_by_the_same_flags() {
    let place = Setup::new().await;
    for (name, role) in [("web-1", "web"), ("db-1", "db"), ("web-2", "web")] {
        done(&place, &["entity", "set", name, "--selector", &format!("role={role}")]);
        done(&place, &["profile", "set", name, "a=1"]);
    }
    assert_eq!(done(&place, &["entity", "list", "name =~ \"^web\"", "-o", "name"]), "web-1\nweb-2\n");
    assert_eq!(
        done(&place, &["profile", "list", "--sort", "-name", "--limit", "2", "-o", "name"]),
        "web-2\nweb-1\n"
    );
    assert_eq!(done(&place, &["entity", "list", "-l", "name=db-1", "--count"]), "1\n");
    assert_eq!(done(&place, &["profile", "list", "--count", "-o", "json"]), "3\n");
    let chosen = done(&place, &["profile", "list", "name=db-1", "--fields", "name,revision"]);
    assert_eq!(chosen.split_whitespace().collect::<Vec<_>>(), ["NAME", "REVISION", "db-1", "1"]);
    let refused = place.run(&["profile", "list", "name in db-1"]);
    assert_eq!(refused.status.code(), Some(64), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains("name in db-1\n"),
        "the place is shown: {}",
        text(&refused.stderr)
    );
    let refused = place.run(&["entity", "list", "--count", "--limit", "1"]);
    assert_eq!(refused.status.code(), Some(64), "{}", text(&refused.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_filter_is_set_described_and_pointed_at_where_it_cannot_be_used() {
    let place = Setup::new().await;
    let set = |name: &str, filter: &str| place.run(&["filter", "set", name, filter, "--of", "profiles"]);
    assert!(set("mine", "by = admin").status.success());
    assert!(set("old", "@mine and revision > 3").status.success());
    let sheet = done(&place, &["describe", "filter/old"]);
    assert!(
        sheet.contains("filter       @mine and revision > 3") && sheet.contains("filter.changed"),
        "{sheet}"
    );
    for (refused, code, says) in [
        (set("new", "all or @mien"), 64, "all or @mien\n         ^"),
        (set("new", "all or @mien"), 64, "there is no saved filter mien; did you mean mine?"),
        (place.run(&["profile", "list", "not @lod"]), 64, "not @lod\n      ^"),
        (
            place.run(&["entity", "set", "web", "--selector", "@mine"]),
            64,
            "a selector is kept with its object",
        ),
        (place.run(&["filter", "get", "od"]), 1, "did you mean old?"),
        (place.run(&["filter", "delete", "mine", "--yes"]), 7, "filter old names it"),
        (
            place.run(&["filter", "set", "old", "all", "--if-revision", "7"]),
            6,
            "it is at revision 1, by admin",
        ),
    ] {
        let said = text(&refused.stderr);
        assert!(said.contains(says), "{says} is not in\n{said}");
        assert_eq!(refused.status.code(), Some(code), "{said}");
    }
    done(&place, &["filter", "delete", "old", "--yes"]);
    done(&place, &["filter", "delete", "mine", "--yes"]);
    assert_eq!(done(&place, &["filter", "list", "-o", "json"]).trim(), "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_wrote_can_neither_forge_lines_nor_reach_the_terminal() {
    let place = Setup::new().await;
    let refused = place.client().delete_profile("default", "nobody\nFORGED\u{1b}[31m").await;
    assert!(refused.is_err());
    let printed = done(&place, &["audit", "list"]);
    assert!(printed.contains(r"nobody\u{a}FORGED\u{1b}[31m"), "{printed}");
    let obeyed = |c: char| c.is_control() && c != '\n';
    assert!(!printed.contains(obeyed) && !printed.contains("\nFORGED"), "{printed:?}");
    let refused = place.run(&["profile", "get", "a\u{1b}]2;x\u{7}"]);
    assert!(!text(&refused.stderr).contains(obeyed), "{:?}", text(&refused.stderr));
}
