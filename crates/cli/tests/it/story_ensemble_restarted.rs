//! The members of a real etcd are restarted, and their databases defragmented, one after the other under a client that keeps count of what was
//! acknowledged: the leader last, after another one leads, and no two are away at once.

use std::collections::BTreeMap;

use bellwether_api::v1::service::InstanceStatus;

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::story_ensembles::{Writer, complete, etcds, installed, key, nothing_is_lost, post, spec};

/// The node of the member that leads, once exactly one does.
async fn leader(place: &Setup) -> String {
    let client = place.client();
    let mut found = None;
    wait_for("one member leads", async || {
        let service = client.service("default", "store", None, std::time::Duration::ZERO).await;
        let instances = service.map(|service| service.instances).unwrap_or_default();
        let leaders: Vec<_> = instances
            .iter()
            .filter(|instance| {
                instance.status == InstanceStatus::Passing && instance.tags.iter().any(|tag| tag == "leader")
            })
            .collect();
        found = leaders.first().map(|instance| instance.node.clone());
        leaders.len() == 1
    })
    .await;
    found.unwrap()
}

/// The size of the database of each member that serves there, in bytes.
fn sizes(addresses: &[String]) -> Vec<u64> {
    let size = |address: &String| {
        let answer = post(address, "/v3/maintenance/status", "{}")?;
        let status: serde_json::Value = serde_json::from_str(answer.get(answer.find('{')?..)?).ok()?;
        status.get("dbSize")?.as_str()?.parse().ok()
    };
    addresses.iter().filter_map(size).collect()
}

/// Data come and go, and what they leave free in the databases of all is returned.
async fn defragmented(place: &Setup, addresses: &[String]) {
    let at = addresses.iter().find(|at| post(at, "/v3/maintenance/status", "{}").is_some()).unwrap();
    let value = "A".repeat(256 * 1024);
    for number in 0..40 {
        let body = format!(r#"{{"key": "{}", "value": "{value}"}}"#, key(0xf0_0000 + number));
        assert!(post(at, "/v3/kv/put", &body).is_some(), "{number}");
    }
    let gone = format!(r#"{{"key": "{}", "range_end": "{}"}}"#, key(0xf0_0000), key(0xf0_ffff));
    let answer = post(at, "/v3/kv/deleterange", &gone).unwrap();
    let revision = answer.split(r#""revision":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let compaction = format!(r#"{{"revision": "{revision}", "physical": true}}"#);
    assert!(post(at, "/v3/kv/compaction", &compaction).is_some());
    let before = sizes(addresses);
    assert!(before.len() == 3 && before.iter().all(|size| *size > 5_000_000), "{before:?}");

    let asked = place.run(&["ensemble", "defragment", "store"]);
    let said = text(&asked.stderr);
    assert!(code(&asked) == 64 && said.contains("one after the other, the leader last"), "{said}");
    let led = leader(place).await;
    done(place, &["ensemble", "defragment", "store", "--yes", "--reason", "space"]);
    let events = async || done(place, &["events", "--limit", "1000"]);
    wait_for("all are defragmented", async || events().await.contains("ensemble.defragmented")).await;
    let events = events().await;
    let lines: Vec<&str> =
        events.lines().filter(|line| line.contains("ensemble.member_defragmented")).collect();
    let is_last = lines.last().is_some_and(|line| line.contains(&format!(" on {led}")));
    assert!(lines.len() == 3 && is_last, "{led} is not the last: {lines:?}");
    let after = sizes(addresses);
    assert!(after.len() == 3 && after.iter().all(|size| *size < 2_000_000), "{before:?} and {after:?}");
    assert!(!done(place, &["why", "ensemble/store"]).contains("defragmented"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_an_etcd_are_restarted_one_after_the_other_and_the_leader_last() {
    let place = installed().await;
    let ports = free_ports();
    place.client().set_ensemble("default", "store", &spec(3, ports, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let processes = || -> BTreeMap<String, Vec<String>> {
        members.iter().map(|member| (member.node.clone(), etcds(&place, &member.node))).collect()
    };
    let (before, led) = (processes(), leader(&place).await);
    let addresses: Vec<String> = (1..=5).map(|number| format!("127.0.31.{number}:{}", ports[0])).collect();
    let writer = Writer::start(addresses.clone());

    let asked = place.run(&["ensemble", "restart", "store"]);
    let said = text(&asked.stderr);
    assert!(
        code(&asked) == 64 && said.contains("3 members of ensemble store: those that do not work first"),
        "{said}"
    );
    assert!(!said.contains("does not serve while"), "{said}");
    done(&place, &["ensemble", "restart", "store", "--yes", "--reason", "another release"]);
    let events = async || done(&place, &["events", "--limit", "1000"]);
    wait_for("all are restarted", async || events().await.contains("ensemble.restarted")).await;
    assert_eq!(complete(&place, 3).await, members, "they are the same members");

    let after = processes();
    for (node, pids) in &after {
        assert!(pids.len() == 1 && before.get(node) != Some(pids), "{node}: {before:?} and {after:?}");
    }
    let events = events().await;
    let restarted: Vec<&str> =
        events.lines().filter(|line| line.contains("ensemble.member_restarted")).collect();
    assert_eq!(restarted.len(), 3, "each once: {events}");
    assert!(
        restarted.last().unwrap().contains(&format!(" on {led}")),
        "{led} is not the last: {restarted:?}"
    );
    assert_ne!(leader(&place).await, led);
    assert!(!done(&place, &["why", "ensemble/store"]).contains("restarted"));
    defragmented(&place, &addresses).await;
    nothing_is_lost(writer, &addresses);

    // One alone does not serve meanwhile, and is restarted, too.
    done(&place, &["ensemble", "scale", "store", "1", "--yes"]);
    let alone = complete(&place, 1).await;
    let asked = place.run(&["ensemble", "restart", "store"]);
    assert!(text(&asked.stderr).contains("it does not serve while one of them is away"), "{asked:?}");
    let pids = etcds(&place, &alone[0].node);
    done(&place, &["ensemble", "restart", "store", "--yes"]);
    wait_for("it is restarted", async || {
        let now = etcds(&place, &alone[0].node);
        now.len() == 1 && now != pids && !done(&place, &["why", "ensemble/store"]).contains("restarted")
    })
    .await;
    assert_eq!(complete(&place, 1).await, alone);
}
