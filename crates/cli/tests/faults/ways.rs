//! The network between the parts: cut one way only, down and up in another order, slow and lossy.

use std::time::Duration;

use bellwether_testbed::Options;
use bellwether_testbed::proxy::LinkFaults;

use crate::bed::{Bed, options};
use crate::laws::Watch;
use crate::story_servers::etcd_leader;

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_goes_on_whichever_way_a_leader_is_cut_off() {
    let mut bed = Bed::start(options()).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    for (version, hears) in [("v1", false), ("v2", true)] {
        let leader = bed.leader_but(&[]).await;
        bed.roll(version).await;
        bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
        for member in 1..=3 {
            bed.obey(&match hears {
                true => format!("cut server-{leader} -> etcd-{member}"),
                false => format!("cut etcd-{member} -> server-{leader}"),
            });
        }
        bed.leader_but(&[leader]).await;
        bed.ended(version).await;
        bed.obey("heal");
    }
    for (version, hears) in [("v3", false), ("v4", true)] {
        let leader = etcd_leader(&bed);
        bed.roll(version).await;
        for member in (1..=3).filter(|member| *member != leader) {
            bed.obey(&match hears {
                true => format!("cut etcd-{leader} -> etcd-{member}"),
                false => format!("cut etcd-{member} -> etcd-{leader}"),
            });
        }
        bed.ended(version).await;
        bed.obey("heal");
    }
    // An agent whose words do not reach its server, though the server's reach it, finds another.
    let plane = bed.ask(async |client| client.control_plane().await).await.unwrap();
    let server = plane.sessions.keys().next().unwrap().clone();
    (1..=6).for_each(|agent| bed.obey(&format!("cut agent-{agent} -> {server}")));
    bed.roll("v5").await;
    bed.ended("v5").await;
    bed.wait_for("they are with others", async || {
        let plane = bed.ask(async |client| client.control_plane().await).await;
        plane.is_some_and(|plane| plane.sessions.iter().all(|(name, held)| *name != server || *held == 0))
    })
    .await;
    watch.holds(&bed, 2, &["v1", "v2", "v3", "v4", "v5"]).await;
}

/// All hosts of the control plane go dark one by one, and come back in another order.
async fn swizzle(pre_vote: bool) {
    let mut bed = Bed::start(Options { pre_vote, ..options() }).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    let rounds = [
        (["etcd-1", "server-2", "etcd-3", "server-1", "etcd-2", "server-3"], [3, 0, 5, 4, 1, 2]),
        (["server-3", "etcd-2", "server-1", "etcd-1", "server-2", "etcd-3"], [5, 1, 2, 0, 3, 4]),
        (["etcd-3", "etcd-2", "etcd-1", "server-3", "server-2", "server-1"], [0, 5, 1, 4, 2, 3]),
    ];
    for (version, (down, up)) in ["v1", "v2", "v3"].into_iter().zip(rounds) {
        bed.roll(version).await;
        for host in down {
            bed.obey(&format!("cut {host}"));
            // What is cut off must have the time to notice: that is the fault.
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        for at in up {
            bed.obey(&format!("heal {}", down.get(at).unwrap()));
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        bed.ended(version).await;
    }
    watch.holds(&bed, 2, &["v1", "v2", "v3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_go_down_and_come_back_in_another_order_lose_nothing() {
    swizzle(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_do_they_when_members_stand_for_election_unasked() {
    swizzle(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_and_lossy_way_to_etcd_loses_nothing() {
    let bed = Bed::start(Options { proxied: true, ..options() }).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    let weathers = [(20, 0), (100, 5), (5, 30)];
    for (version, (latency_ms, broken_per_mille)) in ["v1", "v2", "v3"].into_iter().zip(weathers) {
        for member in 1..=3 {
            let latency = Duration::from_millis(latency_ms);
            bed.inner.proxy(member).unwrap().set(LinkFaults {
                latency,
                broken_per_mille,
                ..LinkFaults::FAIR
            });
        }
        bed.roll(version).await;
        bed.ended(version).await;
    }
    (1..=3).for_each(|member| bed.inner.proxy(member).unwrap().set(LinkFaults::FAIR));
    watch.holds(&bed, 2, &["v1", "v2", "v3"]).await;
}
