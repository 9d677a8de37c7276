//! What programs and people read of a node and of objects: the fields of JSON answers, and the sheets of `describe`.

use serde_json::{Value, json};

use crate::place::{Setup, code, done, text, wait_for};

/// A server and one agent, which offers a service whose check passes by a command.
async fn one_node() -> Setup {
    let mut place = Setup::new().await;
    let service = "[[service]]\nname = \"web\"\nport = 80\n[[service.check]]\nname = \"up\"\nexec = [\"true\"]\n\
                   interval = \"200ms\"\n[entity.system]\ndynamic = [\"true\"]\n";
    place.start_agent("web-1", service);
    place
}

fn answer(place: &Setup, args: &[&str]) -> Value {
    let output = place.run(args);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}\n{}{}", text(&output.stdout), text(&output.stderr)))
}

/// Fails if a key ends with `_ms` and its value is a point in time.
fn no_raw_times(value: &Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let raw =
                    key.ends_with("_ms") && value.as_u64().is_some_and(|millis| millis > 1_000_000_000_000);
                assert!(!raw, "{key} is {value}");
                no_raw_times(value);
            }
        }
        Value::Array(items) => items.iter().for_each(no_raw_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_about_this_node_have_named_fields_and_times_as_text() {
    let place = one_node().await;
    let dir = place.path("web-1/data");
    done(&place, &["trigger-update", "r7"]);
    wait_for("r7 runs", async || code(&place.run(&["verify-hosts", "r7", "web-1"])) == 0).await;
    wait_for("the agent reports r7", async || code(&place.run(&["local-version", "--data-dir", &dir])) == 0)
        .await;
    let pending = answer(&place, &["pending-update", "--data-dir", &dir, "-o", "json"]);
    let expected = json!({ "entity": "system", "pending": false, "running": "r7", "assigned": "r7" });
    assert_eq!(pending, expected);

    let status = answer(&place, &["agent", "status", "--data-dir", &dir, "-o", "json"]);
    no_raw_times(&status);
    let system = &status["entities"]["system"];
    assert_eq!((&system["running"], &system["assigned"]), (&json!("r7"), &json!("r7")), "{status}");
    for time in [&status["written_at"], &status["connected_since"], &system["healthy_since"]] {
        assert!(time.as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')), "{status}");
    }

    done(&place, &["service", "register", "batch", "--ttl", "1m", "--data-dir", &dir]);
    let unhealthy = answer(&place, &["local-health", "--data-dir", &dir, "-o", "json"]);
    let first = &unhealthy[0];
    assert_eq!((&first["kind"], &first["name"]), (&json!("service"), &json!("batch")), "{unhealthy}");
    assert!(first["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{unhealthy}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_slots_services_and_targets_are_described_as_sheets() {
    let place = one_node().await;
    done(&place, &["pause", "on", "audit", "-l", "name=web-1", "--reason", "an audit"]);
    done(&place, &["slot", "set", "reboot", "--capacity", "2"]);
    wait_for("the service is functional", async || {
        text(&place.run(&["why", "service/web"]).stdout)
            .contains("1 of 1 registered instances are functional")
    })
    .await;
    done(&place, &["entity", "set", "app", "-l", "all", "--owner", "shop team"]);
    for (subject, lines) in [
        ("pause/audit", &["name    audit", "nodes   name=web-1", "pauses  1 node now"][..]),
        ("slot/reboot", &["reboot", "capacity", "2"]),
        ("service/web", &["web", "web-1", "functional"]),
        ("target/app/web-1", &["name      web-1", "contact   up", "reason"]),
    ] {
        let sheet = done(&place, &["describe", subject]);
        for line in lines {
            assert!(sheet.contains(line), "{line} is not in the sheet of {subject}:\n{sheet}");
        }
        for raw in ["_ms", "null", "{", "}"] {
            assert!(!sheet.contains(raw), "{raw} is in the sheet of {subject}:\n{sheet}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_an_unknown_category_are_a_wrong_usage() {
    let place = Setup::new().await;
    let output = place.run(&["node", "logs", "web-1", "--category", "foo"]);
    assert_eq!(code(&output), 64, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("configure, validate"), "{}", text(&output.stderr));
}
