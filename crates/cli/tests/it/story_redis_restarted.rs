//! The members of a real Redis are restarted one after the other under a client that keeps count of what was acknowledged: the primary last, after it
//! has handed over, and as a replica. A handover that has not begun is withdrawn.

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

#[tokio::test(flavor = "multi_thread")]
async fn a_handover_to_a_member_that_does_not_know_of_it_is_withdrawn() {
    let place = installed().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let first = primary(&members);
    let next = members.iter().find(|member| member.number != first.number).unwrap().clone();
    let number = next.number.to_string();
    let signal = |signal| rustix::process::kill_process(place.agent_pid(&next.node), signal).unwrap();
    // Until its silence is noticed, it is asked to take over, and does not hear of it.
    wait_for("it is asked of a member whose agent stands still", async || {
        signal(rustix::process::Signal::STOP);
        let is_asked = code(&place.run(&["ensemble", "failover", "cache", "--to", &number])) == 0;
        if !is_asked {
            signal(rustix::process::Signal::CONT);
        }
        is_asked
    })
    .await;
    let why = || text(&place.run(&["why", "ensemble/cache"]).stdout);
    let waits = format!("the primary is to hand over to member {number}");
    assert!(why().contains(&waits), "{}", why());
    let other = members.iter().find(|member| ![first.number, next.number].contains(&member.number)).unwrap();
    let refused = place.run(&["ensemble", "failover", "cache", "--to", &other.number.to_string()]);
    assert!(code(&refused) != 0 && text(&refused.stderr).contains("--withdraw"), "{refused:?}");
    done(&place, &["ensemble", "failover", "cache", "--withdraw", "--reason", "the wrong one"]);
    assert!(!why().contains(&waits), "{}", why());
    signal(rustix::process::Signal::CONT);
    assert_eq!(primary(&complete(&place, 3).await).number, first.number);
    let events = done(&place, &["events", "--limit", "1000"]);
    assert!(events.contains("ensemble.failover_withdrawn") && events.contains("the wrong one"), "{events}");
    done(&place, &["ensemble", "failover", "cache", "--withdraw"]);
    let refused = place.run(&["ensemble", "failover", "cache", "--withdraw", "--to", &number]);
    assert!(text(&refused.stderr).contains("--withdraw"), "{refused:?}");
}
