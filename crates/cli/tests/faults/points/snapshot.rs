//! An agent that takes a snapshot of an etcd, killed at every named moment of it: the next one leaves nothing that is not whole, and the
//! snapshot that was asked for is taken.

use bellwether_api::v1::ensemble::snapshots::{EnsembleSnapshots, TakeSnapshot};
use bellwether_testbed::Options;

use super::member::{complete, spec};
use super::{small, under};
use crate::bed::Bed;

const AGENT: &str = "agent-1";

async fn snapshots(bed: &Bed) -> Option<EnsembleSnapshots> {
    let ensemble = bed.client(1).ensemble("default", "store").await.ok()?;
    ensemble.status?.snapshots
}

/// The files of snapshots by their extensions.
fn files(bed: &Bed, extension: &str) -> usize {
    let dir = bed.inner.home(AGENT).join("data/ensembles/store.snapshots");
    let paths = std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|of| of == extension)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_every_named_moment_of_a_snapshot_is_followed_by_one_that_takes_it() {
    let sections = "[ensembles]\n".to_owned();
    let mut bed = Bed::start(Options { sections, ..small(0, 1, 1) }).await;
    bed.wait_for("the agent is up", async || bed.up().await == 1).await;
    bed.client(1).set_ensemble("default", "store", &spec(1, None)).await.unwrap();
    for (number, point) in (1..).zip(under("snapshot.")) {
        let name = point.name();
        complete(&bed, 1, name).await;
        bed.obey(&format!("kill {AGENT}"));
        bed.arm(AGENT, point, 0);
        bed.client(1).snapshot_ensemble("default", "store", &TakeSnapshot::default()).await.unwrap();
        bed.killed(AGENT);
        bed.obey(&format!("start {AGENT}"));
        bed.wait_for(&format!("it is taken after {name}"), async || {
            let all = snapshots(&bed).await;
            all.is_some_and(|all| all.taken.iter().any(|taken| taken.id.number == number))
        })
        .await;
        let taken = snapshots(&bed).await.unwrap().taken;
        let count = taken.len();
        assert_eq!((files(&bed, "part"), files(&bed, "db")), (0, count), "{name}: {taken:?}");
        assert_eq!(files(&bed, "json"), count, "{name}");
    }
}
