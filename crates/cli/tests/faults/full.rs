//! etcd without room, by its quota and by its disk; and history that is cut while a server stands still.

use std::time::Duration;

use bellwether_api::v1::server::StoreCondition;
use bellwether_testbed::Options;

use crate::bed::{Bed, options};
use crate::laws::{Watch, history};
use crate::story_servers::etcd_leader;

/// How the store is, as a server says.
async fn condition(bed: &Bed, server: usize) -> Option<StoreCondition> {
    let overview = bed.client(server).overview("default").await;
    overview.ok().and_then(|overview| overview.store).map(|store| store.condition)
}

async fn all_say(bed: &Bed, wanted: StoreCondition) {
    bed.wait_for(&format!("all servers say that the store is {wanted:?}"), async || {
        let mut all = true;
        for server in 1..=3 {
            all &= condition(bed, server).await == Some(wanted);
        }
        all
    })
    .await;
}

/// Puts 100 kB under a key that is not ours.
fn put(bed: &Bed, member: usize, number: usize) -> bool {
    let (key, value) = (format!("filler-{number}"), "x".repeat(100_000));
    tokio::task::block_in_place(|| bed.inner.etcdctl(member, &["put", &key, &value])).is_ok()
}

/// Forgets everything that was before now.
fn cut_history(bed: &Bed) {
    let said = bed.inner.etcdctl(1, &["endpoint", "status", "-w", "json"]).unwrap();
    let revision = said.split("\"revision\":").nth(1).unwrap();
    let digits: String = revision.chars().take_while(char::is_ascii_digit).collect();
    bed.inner.etcdctl(1, &["compact", &digits]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_etcd_is_said_to_be_read_only_calls_nobody_dead_and_goes_on_once_it_has_room() {
    let bed = Bed::start(Options { quota_bytes: Some(16 << 20), ..options() }).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    bed.roll("v1").await;
    bed.ended("v1").await;
    assert!((0..1_000).any(|number| !put(&bed, 1, number)), "etcd never filled up");
    all_say(&bed, StoreCondition::ReadOnly).await;
    let said = bed.run(1, &["status"]);
    assert!(said.contains("read-only") && said.contains("disarm"), "{said}");
    // Longer than a node may be quiet, servers' places and the agents' sessions go on.
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bed.up().await, bed.inner.options.agents);
    assert!(bed.leader().await.is_some());

    tokio::task::block_in_place(|| {
        bed.inner.etcdctl(1, &["del", "filler", "--prefix"]).unwrap();
        cut_history(&bed);
        (1..=3).for_each(|member| drop(bed.inner.etcdctl(member, &["defrag"]).unwrap()));
        bed.inner.etcdctl(1, &["alarm", "disarm"]).unwrap();
    });
    all_say(&bed, StoreCondition::Writable).await;
    bed.roll("v2").await;
    bed.ended("v2").await;
    watch.holds(&bed, 2, &["v1", "v2"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_disk_is_full_stops_nothing_and_is_back_once_it_has_room() {
    let mut bed = Bed::start(Options { disk_mib: Some(256), ..options() }).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    let member = etcd_leader(&bed);
    let full = format!("etcd-{member}");
    bed.obey(&format!("fill {full}"));
    let another = member % 3 + 1;
    let ends = |bed: &mut Bed, number| {
        put(bed, another, number);
        !bed.inner.part(&full).unwrap().runs()
    };
    assert!((0..2_000).any(|number| ends(&mut bed, number)), "the member lives on without a disk");
    bed.roll("v1").await;
    bed.ended("v1").await;
    bed.obey(&format!("free {full}"));
    bed.obey(&format!("start {full}"));
    bed.roll("v2").await;
    bed.ended("v2").await;
    watch.holds(&bed, 2, &["v1", "v2"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_slept_while_history_was_cut_lists_anew_and_knows_everything() {
    let mut bed = Bed::start(options()).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    let leader = bed.leader_but(&[]).await;
    let sleeper = leader % 3 + 1;
    bed.obey(&format!("pause server-{sleeper}"));
    bed.roll("v1").await;
    bed.ended("v1").await;
    tokio::task::block_in_place(|| cut_history(&bed));
    bed.obey(&format!("resume server-{sleeper}"));
    bed.wait_for("it knows everything", async || {
        let last_event = bed.client(sleeper).overview("default").await.map(|overview| overview.last_event);
        let known = bed.client(leader).overview("default").await.map(|overview| overview.last_event);
        last_event.is_ok_and(|last_event| known.is_ok_and(|known| last_event >= known))
    })
    .await;
    history(&bed).await;
    bed.roll("v2").await;
    bed.ended("v2").await;
    watch.holds(&bed, 2, &["v1", "v2"]).await;
}
