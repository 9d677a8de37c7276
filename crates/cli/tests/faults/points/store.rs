//! A server with its own store dies at every named moment of a commit.

use bellwether_rt::fail::FailPoint;

use super::{small, under};
use crate::bed::Bed;
use crate::laws::Watch;
use crate::written::Written;

/// What is written to each of the large profiles at once: the journal is long after some seventy of them.
const FILLER_BYTES: usize = 60_000;

/// How often each point is passed unharmed before the server dies there: from its first commits, with which it takes its place,
/// to the midst of others'. The store's file is written when a server starts after a death, and then when the journal is long.
fn passings(point: FailPoint) -> &'static [u32] {
    if matches!(point, FailPoint::PagesWritten | FailPoint::CaughtUp) { &[0, 1, 2] } else { &[0, 40] }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_at_every_named_moment_of_a_commit_keeps_what_it_acknowledged() {
    let mut bed = Bed::start(small(0, 1, 2)).await;
    bed.make_entity(1);
    let watch = Watch::begin(&bed);
    let stop = bed.tasks.token().child_token();
    let large: Vec<Written> = (1..=3)
        .map(|number| Written::begin(&bed, &format!("large-{number}"), FILLER_BYTES, stop.clone()))
        .collect();
    let mut versions = Vec::new();
    for point in under("commit.embedded.") {
        for passings in passings(point) {
            versions.push(format!("v{}", versions.len() + 1));
            let version = versions.last().unwrap();
            bed.roll(version).await;
            bed.obey("kill server-1");
            bed.arm("server-1", point, *passings);
            bed.killed("server-1");
            bed.obey("start server-1");
            bed.ended(version).await;
        }
    }
    stop.cancel();
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    watch.holds(&bed, 1, &versions).await;
    for written in large {
        assert!(written.count() > 0, "large writes were acknowledged");
        written.nothing_acknowledged_is_lost(&bed).await;
    }
}
