//! The members of a real Redis are restarted one after the other under a client that keeps count of what was acknowledged: the primary last, after it
//! has handed over, and as a replica.

use std::collections::BTreeMap;

use bellwether_api::v1::ensemble::members::EnsembleMember;

use crate::place::{code, done, free_ports, text, wait_for};
use crate::story_redis_ensemble::{Writer, complete, installed, primary, programs, spec};

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_a_redis_are_restarted_one_after_the_other_and_the_primary_last() {
    let place = installed().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let first = primary(&members);
    let processes = || -> BTreeMap<u64, Vec<String>> {
        members.iter().map(|member| (member.number, programs(port, member))).collect()
    };
    let before = processes();
    let at = |of: &EnsembleMember| of.peer_url.clone().unwrap().replace("redis://", "");
    let writer = Writer::start(members.iter().map(at).collect());
    writer.goes_on().await;

    let asked = place.run(&["ensemble", "restart", "cache"]);
    let said = text(&asked.stderr);
    assert!(code(&asked) == 64 && said.contains("the primary last, after it has handed over"), "{said}");
    assert!(!said.contains("takes no writes while"), "{said}");
    done(&place, &["ensemble", "restart", "cache", "--yes", "--reason", "another release"]);
    let events = async || done(&place, &["events", "--limit", "1000"]);
    wait_for("all are restarted", async || events().await.contains("ensemble.restarted")).await;
    let after = complete(&place, 3).await;
    let next = primary(&after);
    assert_ne!(next.number, first.number, "it has handed over");
    let numbers = |of: &[EnsembleMember]| of.iter().map(|member| member.number).collect::<Vec<_>>();
    assert_eq!(numbers(&after), numbers(&members), "they are the same members");
    for (number, pids) in processes() {
        assert!(pids.len() == 1 && before.get(&number) != Some(&pids), "{number}: {before:?} and {pids:?}");
    }
    let events = events().await;
    let restarted: Vec<&str> =
        events.lines().filter(|line| line.contains("ensemble.member_restarted")).collect();
    assert_eq!(restarted.len(), 3, "each once: {events}");
    assert!(restarted.last().unwrap().contains(&format!(" on {}", first.node)), "{restarted:?}");
    assert!(!events.contains("takes over from"), "no failover was needed: {events}");
    writer.all_is_at(&at(&next), "redis: restart of all members").await;
}
