//! Everything is killed and started again under as many agents as one machine takes.

use bellwether_testbed::Options;

use crate::bed::{Bed, options};
use crate::laws::Watch;

/// Real agents, a host each.
const AGENTS: usize = 500;

/// How many of them may change at the same time.
const BATCH: u64 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn everything_killed_and_started_again_under_five_hundred_agents_goes_on_with_its_rollout() {
    let mut bed = Bed::start(Options { agents: AGENTS, ..options() }).await;
    bed.make_entity(BATCH);
    let watch = Watch::begin(&bed);
    bed.roll("v1").await;
    bed.ended("v1").await;
    bed.roll("v2").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    let of =
        |kind: &str| bed.inner.names().into_iter().filter(|name| name.starts_with(kind)).collect::<Vec<_>>();
    let (members, servers) = (of("etcd"), of("server"));
    members.iter().chain(&servers).for_each(|part| bed.obey(&format!("kill {part}")));
    tokio::task::block_in_place(|| {
        bed.inner.start_parts(&members).unwrap();
        bed.inner.start_parts(&servers).unwrap();
    });
    bed.ended("v2").await;
    bed.wait_for("every agent is up", async || bed.up().await == AGENTS).await;
    watch.holds(&bed, BATCH, &["v1", "v2"]).await;
}
