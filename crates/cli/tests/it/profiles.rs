//! `profile` and `action` on the command line: what they print, and what their exit codes say.

use serde_json::Value;

use crate::place::{Setup, code, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_written_read_compared_and_deleted() {
    let place = Setup::new().await;
    let run = |args: &[&str]| place.run(args);
    let said = |args: &[&str]| {
        let output = run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(
        said(&["profile", "set", "web", "workers=4", "name=front", "tls=\"on\"", "--if-revision", "0"]),
        "web@1\n"
    );
    assert_eq!(said(&["profile", "set", "web", "workers=4"]), "web@1\n", "nothing changed");
    assert_eq!(
        said(&["profile", "remove", "web", "tls", "--if-revision", "1", "--reason", "plain again"]),
        "web@2\n"
    );
    assert_eq!(said(&["profile", "get", "web", "--key", "name"]), "front\n");
    assert_eq!(said(&["profile", "get", "web", "--revision", "1", "--key", "tls"]), "on\n");
    let json: Value = serde_json::from_str(&said(&["profile", "get", "web", "-o", "json"])).unwrap();
    assert_eq!(json["params"], serde_json::json!({"name": "front", "workers": 4}));
    let file = place.path("web.json");
    std::fs::write(&file, r#"{"workers": 8, "list": [1, {"a": null}]}"#).unwrap();
    assert_eq!(said(&["profile", "replace", "web", "--file", &file]), "web@3\n");
    assert_eq!(
        said(&["profile", "diff", "web", "2"]),
        "+ list=[1,{\"a\":null}]\n- name=\"front\"\n- workers=4\n+ workers=8\n"
    );
    let history = said(&["profile", "history", "web"]);
    assert!(history.contains("plain again") && history.contains("-tls"), "{history}");
    assert!(history.contains("+list -name ~workers"), "{history}");
    assert_eq!(said(&["profile", "list", "-o", "name"]), "web\n");

    for (args, exit, says) in [
        (vec!["profile", "set", "web", "a=1", "--if-revision", "2"], 6, "it is at revision 3"),
        (vec!["profile", "set", "web", "a=1", "--if-revision", "0"], 6, "bellwether profile get web"),
        (vec!["profile", "set", "web", "nonsense"], 64, "KEY=VALUE"),
        (vec!["profile", "set", "web", "a b=1"], 64, "is not a valid key"),
        (vec!["profile", "remove", "web", "ghost"], 1, "cannot find param"),
        (vec!["profile", "get", "web", "--key", "ghost"], 1, "cannot find parameter ghost in web@3"),
        (vec!["profile", "get", "web", "--revision", "9"], 1, "bellwether profile history web"),
        (vec!["profile", "get", "ghost"], 1, "bellwether profile set ghost"),
        (vec!["profile", "delete", "web"], 64, "--yes"),
        (vec!["entity", "set", "db", "--selector", "all", "--profile", "ghost"], 7, "profile set ghost"),
    ] {
        let output = run(&args);
        let said = text(&output.stderr);
        assert_eq!(code(&output), exit, "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    said(&["profile", "delete", "web", "--yes"]);
    assert_eq!(said(&["profile", "set", "web", "a=1"]), "web@4\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_is_of_a_profile_or_an_action_for_ever_and_rolls_out_with_one_word() {
    let place = Setup::new().await;
    let run = |args: &[&str]| place.run(args);
    assert_eq!(code(&run(&["profile", "set", "web", "a=1"])), 0);
    assert_eq!(code(&run(&["entity", "set", "web", "--selector", "all", "--profile", "web"])), 0);
    assert_eq!(code(&run(&["entity", "set", "restart", "--selector", "all", "--action", "restart"])), 0);
    assert_eq!(code(&run(&["entity", "set", "web", "--batch", "2"])), 0, "it stays what it is");
    let listed = text(&run(&["entity", "list"]).stdout);
    assert!(listed.contains("profile web") && listed.contains("action restart"), "{listed}");
    for (args, exit, says) in [
        (vec!["entity", "set", "web", "--action", "restart"], 7, "it is one of profile web"),
        (vec!["entity", "set", "web", "--profile", "web", "--action", "restart"], 64, "cannot be used with"),
        (vec!["entity", "set", "restart", "--on-failure", "rollback"], 64, "cannot be rolled back"),
        (vec!["profile", "delete", "web", "--yes"], 7, "entity web uses it"),
        (vec!["rollout", "start", "web", "web@7"], 7, "bellwether profile history web"),
        (vec!["rollout", "start", "web", "v1"], 7, "bellwether rollout start web web"),
        (vec!["rollout", "undo", "restart"], 7, "neither undone nor retried"),
    ] {
        let output = run(&args);
        let said = text(&output.stderr);
        assert_eq!(code(&output), exit, "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    let started = run(&["profile", "set", "web", "a=2", "--rollout"]);
    assert!(text(&started.stderr).contains("rollout of web@2 started"), "{}", text(&started.stderr));
    assert!(text(&run(&["rollout", "get", "web"]).stdout).contains("web@2"));
    let ran = run(&["rollout", "start", "restart"]);
    assert!(text(&ran.stderr).contains("rollout of restart@"), "{}", text(&ran.stderr));

    let config = place.path("agent.toml");
    let agent = "[agent]\nname = \"a\"\nserver = \"https://x:1\"\n[action.restart]\nrun = [\"/bin/true\"]\n";
    std::fs::write(&config, agent).unwrap();
    let listed = text(&run(&["action", "list", "-c", &config]).stdout);
    assert!(listed.contains("restart  /bin/true  5m"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_is_changed_only_from_what_was_expected() {
    let place = Setup::new().await;
    let said = |args: &[&str]| {
        let output = place.run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(said(&["profile", "set", "web", "leader=a", "size=1", "--if-absent"]), "web@1\n");
    assert_eq!(said(&["profile", "set", "web", "leader=b", "--if", "a"]), "web@2\n");
    assert_eq!(said(&["profile", "set", "web", "size=2", "--if", "1.0"]), "web@3\n");
    assert_eq!(said(&["profile", "add", "web", "zone=null"]), "web@4\n");
    let (patch, merge, old) = (place.path("patch.json"), place.path("merge.json"), place.path("old.json"));
    let operations =
        r#"[{"op": "test", "path": "/size", "value": 2}, {"op": "replace", "path": "/size", "value": 3}]"#;
    std::fs::write(&patch, operations).unwrap();
    assert_eq!(said(&["profile", "patch", "web", &patch, "--reason", "more"]), "web@5\n");
    assert!(said(&["profile", "history", "web"]).contains("more"));
    for (args, exit, says) in [
        (
            vec!["profile", "set", "web", "leader=c", "--if", "a"],
            6,
            "/leader is \"b\", not \"a\" (revision 5)",
        ),
        (vec!["profile", "set", "web", "leader=c", "--if-absent"], 6, "/leader is \"b\", not absent"),
        (vec!["profile", "add", "web", "zone=a"], 6, "/zone is null, not absent (revision 5)"),
        (vec!["profile", "set", "web", "other=1", "--if", "null"], 6, "/other is absent, not null"),
        (vec!["profile", "remove", "web", "leader", "--if", "a"], 6, "nothing was changed"),
        (vec!["profile", "patch", "web", &patch], 6, "/size is 3, not 2 (revision 5)"),
        (vec!["profile", "patch", "web", &patch, "--if-revision", "4"], 6, "it is at revision 5"),
        (vec!["profile", "patch", "web", &patch, "--merge"], 64, "expected a JSON object"),
        (vec!["profile", "set", "web", "a=1", "b=2", "--if", "1"], 64, "it is for one parameter"),
        (vec!["profile", "set", "web", "a=1", "--if", "1", "--if-absent"], 64, "cannot be used with"),
    ] {
        let output = place.run(&args);
        let said = text(&output.stderr);
        assert_eq!(code(&output), exit, "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    std::fs::write(&old, r#"{"leader": "b", "size": 3.0, "zone": null}"#).unwrap();
    std::fs::write(&merge, r#"{"zone": null, "size": 4}"#).unwrap();
    assert_eq!(
        said(&["profile", "replace", "web", "-f", &old, "--if-file", &old]),
        "web@6\n",
        "3.0 is written"
    );
    assert_eq!(said(&["profile", "patch", "web", &merge, "--merge"]), "web@7\n");
    assert_eq!(code(&place.run(&["profile", "replace", "web", "-f", &merge, "--if-file", &old])), 6);
    let json: Value = serde_json::from_str(&said(&["profile", "get", "web", "-o", "json"])).unwrap();
    assert_eq!(json["params"], serde_json::json!({"leader": "b", "size": 4}));
    said(&["profile", "remove", "web", "leader", "--if", "b"]);
}
