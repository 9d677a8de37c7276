//! Every part stands still for a while, one after the other, in the middle of a rollout.

use crate::bed::{Bed, options};
use crate::laws::Watch;

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_goes_on_whichever_part_stands_still() {
    let mut bed = Bed::start(options()).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    let parts = ["etcd-1", "etcd-2", "etcd-3", "server-1", "server-2", "server-3"];
    let versions: Vec<String> = (1..=parts.len() + 1).map(|number| format!("v{number}")).collect();
    for (part, version) in parts.iter().zip(&versions) {
        bed.roll(version).await;
        bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
        bed.obey(&format!("pause {part}"));
        bed.ended(version).await;
        bed.obey(&format!("resume {part}"));
        bed.wait_for("all servers have their places", async || {
            let plane = bed.ask(async |client| client.control_plane().await).await;
            plane.is_some_and(|plane| plane.servers.len() == 3 && plane.leader.is_some())
        })
        .await;
    }
    // An agent that stands still for less than would make it silent.
    let last = versions.last().unwrap();
    bed.roll(last).await;
    bed.obey("pause agent-1");
    bed.until("the others have succeeded", |view| view.counts.succeeded >= 4).await;
    bed.obey("resume agent-1");
    bed.ended(last).await;
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    watch.holds(&bed, 2, &versions).await;
}
