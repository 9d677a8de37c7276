//! A real Redis on four hosts: the network between its members is cut, and all of them are heard of. A primary without its replicas takes no
//! writes, and another one takes over; a replica without its primary is replaced. No write that a replica had is lost.

use std::time::Duration;

use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::service::InstanceStatus;
use bellwether_testbed::Network;

use crate::place::{Setup, done, free_ports, text, wait_for};
use crate::story_redis_ensemble::{Writer, complete, primary, spec};

const HOSTS: usize = 4;

/// The host of a member.
fn host(member: &EnsembleMember) -> usize {
    member.node.trim_start_matches("mem-").parse().unwrap()
}

/// The hosts of the members but one.
fn others(members: &[EnsembleMember], than: usize) -> Vec<usize> {
    members.iter().map(host).filter(|host| *host != than).collect()
}

async fn is_told(place: &Setup, reason: &str) {
    wait_for(reason, async || text(&place.run(&["why", "ensemble/cache"]).stdout).contains(reason)).await;
}

/// Reads from the member of this host are old, and its instance says so.
async fn warns(place: &Setup, host: usize) {
    wait_for("its instance warns", async || {
        let found = place.client().service("default", "cache", None, Duration::ZERO).await.unwrap();
        let of_it = found.instances.iter().find(|instance| instance.node == format!("mem-{host}"));
        of_it.is_some_and(|instance| instance.status == InstanceStatus::Warning)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_are_cut_off_from_each_other_are_followed_and_replaced() {
    let hosts = Network::new(HOSTS).unwrap();
    let mut place = Setup::at(&hosts.outside()).await;
    for number in 1..=HOSTS {
        place.start_agent_on(&hosts.on(number).unwrap(), &format!("mem-{number}"), "[ensembles]\n");
    }
    let [port, _] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let first = complete(&place, 3).await;
    let addresses: Vec<String> =
        (1..=HOSTS).map(|number| format!("{}:{port}", hosts.address(number))).collect();

    // The primary alone is cut off from both of its replicas.
    let (writer, before) = (Writer::start(addresses.clone()), primary(&first));
    writer.goes_on().await;
    for replica in others(&first, host(&before)) {
        hosts.cut(host(&before), replica).unwrap();
        hosts.cut(replica, host(&before)).unwrap();
    }
    is_told(&place, "too few replicas are connected to it: another one takes over if that is still so in")
        .await;
    let failing = text(&place.run(&["get-failures"]).stdout);
    assert!(failing.contains("ensemble/cache"), "{failing}");
    wait_for("another member is the primary", async || {
        let status = place.client().ensemble("default", "cache").await.unwrap().status.unwrap();
        let leads = |member: &EnsembleMember| member.number != before.number && member.role == before.role;
        status.members.iter().any(leads)
    })
    .await;
    writer.goes_on().await;
    hosts.heal_all().unwrap();
    let second = complete(&place, 3).await;
    assert!(second.iter().any(|member| member.number == before.number), "it is a replica now: {second:?}");
    let after = primary(&second);
    writer.all_is_at(&format!("{}:{port}", hosts.address(host(&after))), "a primary that was cut off").await;

    // One replica alone is cut off from the primary, and the fourth host is free.
    let writer = Writer::start(addresses);
    writer.goes_on().await;
    let cut = others(&second, host(&after)).first().copied().unwrap();
    hosts.cut(host(&after), cut).unwrap();
    hosts.cut(cut, host(&after)).unwrap();
    let cut_off = second.iter().find(|member| host(member) == cut).unwrap().number;
    is_told(
        &place,
        &format!("member {cut_off} on mem-{cut} does not work; it is replaced if that is still so in"),
    )
    .await;
    warns(&place, cut).await;
    wait_for("another member is in its place", async || {
        complete(&place, 3).await.iter().all(|member| member.number != cut_off)
    })
    .await;
    let third = complete(&place, 3).await;
    assert_eq!(primary(&third).number, after.number, "the primary stays");
    writer.all_is_at(&format!("{}:{port}", hosts.address(host(&after))), "a replica that was cut off").await;
    let events = done(&place, &["events", "--limit", "1000"]);
    assert!(events.contains("ensemble.member_cut_off"), "{events}");
    let gone = format!("serving → removed: member {cut_off}");
    assert!(
        events.lines().any(|line| line.contains(&gone) && line.contains("not connected to the primary")),
        "{events}"
    );
}
