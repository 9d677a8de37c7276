//! Facts: an agent joins and reports what machine it is on; people list nodes by it, roll out by it, and have it read again.

use bellwether_api::v1::facts::NodeFacts;

use crate::place::{Setup, code, done, text, wait_for};

async fn facts(place: &Setup, enough: impl Fn(&NodeFacts) -> bool) -> NodeFacts {
    let client = place.client();
    let mut found = None;
    wait_for("the facts are reported", async || {
        found = client.node("default", "web-1").await.unwrap().facts.filter(&enough);
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_found_by_its_facts_and_reads_them_again_on_request() {
    let mut place = Setup::new().await;
    place.start_agent("web-1", "");
    let first = facts(&place, |_| true).await;
    assert!(first.facts["cpus"].as_u64().unwrap() >= 1 && first.facts["memory_gib"].as_f64().unwrap() > 0.1);
    let shown = done(&place, &["node", "get", "web-1"]);
    for line in ["fact      cpus=", "fact      memory_gib=", "fact      arch="] {
        assert!(shown.contains(line), "{shown}");
    }
    let filter = "fact.cpus >= 1 and exists(fact.kernel)";
    assert_eq!(done(&place, &["node", "list", filter, "-o", "name"]).trim(), "web-1");
    let none = done(&place, &["node", "list", "fact.cpus < 1", "-o", "name"]);
    assert_eq!(none.trim(), "");
    done(&place, &["node", "set", "web-1", "role=db"]);
    done(
        &place,
        &["entity", "set", "web", "--selector", "fact.cpus >= 1 and param.role = db", "--soak", "0s"],
    );
    let targets = place.client().node("default", "web-1").await.unwrap();
    assert_eq!(targets.node.rescan, 0);
    let asked = place.run(&["node", "rescan", "-l", "fact.cpus >= 1"]);
    assert_eq!(text(&asked.stderr).trim(), "node web-1: rescan 1 requested");
    facts(&place, |facts| facts.rescan == 1).await;
    // A server that died in between has not forgotten it.
    place.stop_agent("web-1");
    done(&place, &["node", "rescan", "web-1"]);
    let waits = done(&place, &["node", "get", "web-1"]);
    assert!(waits.contains("rescan    requested, and not done yet; the facts are of "), "{waits}");
    place.kill_server();
    place.start_server().await;
    place.resume_agent("web-1");
    let last = facts(&place, |facts| facts.rescan == 2).await;
    assert_eq!(last.facts, first.facts);
    let unknown = place.run(&["node", "rescan", "web-9"]);
    assert!(code(&unknown) != 0 && text(&unknown.stderr).contains("node web-9"), "{}", text(&unknown.stderr));
}
