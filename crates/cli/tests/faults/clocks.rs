//! A rollout handed over between servers whose clocks are an hour apart.

use crate::bed::{Bed, options};
use crate::laws::Watch;

/// Lets a server lead that is `offset` away from the others, and hands a rollout over from it and to it.
async fn handed_over(offset: &str) {
    let mut bed = Bed::start(options()).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    bed.obey(&format!("clock server-1 {offset}"));
    bed.obey("stop server-2");
    bed.obey("stop server-3");
    bed.leader_but(&[2, 3]).await;
    bed.obey("start server-2");
    bed.roll("v1").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    bed.obey("kill server-1");
    bed.leader_but(&[1]).await;
    bed.ended("v1").await;

    bed.obey("start server-1");
    bed.roll("v2").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    bed.obey("kill server-2");
    bed.leader_but(&[2]).await;
    bed.ended("v2").await;
    bed.obey("start server-2");
    bed.obey("start server-3");
    watch.holds(&bed, 2, &["v1", "v2"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_goes_on_from_a_server_an_hour_ahead_and_to_it() {
    handed_over("+1h").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_goes_on_from_a_server_an_hour_behind_and_to_it() {
    handed_over("-1h").await;
}
