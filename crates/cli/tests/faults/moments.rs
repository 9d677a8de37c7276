//! The leader dies at any moment: between any two of its writes, sooner or later.

use std::time::Duration;

use bellwether_testbed::Options;

use crate::bed::{Bed, options};
use crate::laws::Watch;

/// How often it dies.
const ROUNDS: u64 = 20;

/// Within how much of a rollout's beginning, in milliseconds: some three of its batches.
const WITHIN_MS: u64 = 4_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_any_moment_of_a_rollout_is_followed_without_harm() {
    let mut bed = Bed::start(Options { agents: 4, ..options() }).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    let mut random = u64::from(std::process::id());
    let versions: Vec<String> = (1..=ROUNDS).map(|round| format!("v{round}")).collect();
    for version in &versions {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = Duration::from_millis((random >> 33) % WITHIN_MS);
        eprintln!("{version}: the leader dies after {moment:?}");
        let leader = bed.leader_but(&[]).await;
        bed.roll(version).await;
        tokio::time::sleep(moment).await;
        bed.obey(&format!("kill server-{leader}"));
        bed.leader_but(&[leader]).await;
        bed.obey(&format!("start server-{leader}"));
        bed.ended(version).await;
    }
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    watch.holds(&bed, 2, &versions).await;
}
