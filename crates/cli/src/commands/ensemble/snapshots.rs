//! `ensemble snapshot` and `ensemble snapshots`.

use std::time::Duration;

use bellwether_api::v1::ensemble::snapshots::{EnsembleSnapshots, SnapshotSpec, TakeSnapshot, TakenSnapshot};
use bellwether_api::v1::ensemble::status::EnsembleStatus;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::show::table;
use crate::show::time::date;

/// Time between two questions whether a snapshot is taken.
const POLL: Duration = Duration::from_millis(500);

/// Asks for a snapshot, and may wait until it is taken.
pub(super) async fn take(
    context: &Context,
    name: &str,
    request: TakeSnapshot,
    waits: bool,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let before = client.ensemble(namespace, name).await?.status.and_then(|status| status.snapshots);
    let is_under_way = |of: &EnsembleSnapshots| of.ordered.is_some() || of.requested.is_some();
    let last = before.as_ref().map_or(0, |before| before.last);
    // One that is asked for already is not ordered yet, and one that is being taken is this one.
    let number = if before.as_ref().is_some_and(|before| before.ordered.is_some()) { last } else { last + 1 };
    client.snapshot_ensemble(namespace, name, &request).await?;
    if !waits {
        context.show.changed(&format!("ensemble {name}: snapshot {number} is requested"));
        context.show.note(&format!("see what comes of it: bellwether ensemble snapshots {name}"));
        return Ok(());
    }
    loop {
        let now = client.ensemble(namespace, name).await?.status.and_then(|status| status.snapshots);
        let now = now.unwrap_or_default();
        let failure = now.failure.as_ref().filter(|failure| failure.id.number >= number);
        if let Some(failure) = failure {
            let message = format!(
                "cannot take snapshot {} on node {}: {}",
                failure.id.number, failure.node, failure.reason
            );
            return Err(Failure::stated(Exit::No, message));
        }
        if let Some(taken) = now.taken.iter().find(|taken| taken.id.number >= number) {
            let (number, node, bytes) = (taken.id.number, &taken.node, taken.content.bytes);
            context
                .show
                .changed(&format!("ensemble {name}: snapshot {number} is on node {node}, {bytes} bytes"));
            return Ok(());
        }
        if !is_under_way(&now) {
            let message = format!("cannot find snapshot {number} of ensemble {name} any more");
            return Err(Failure::stated(Exit::No, message));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Shows the snapshots, and why the last one failed.
pub(super) async fn show(context: &Context, name: &str) -> Result<(), Failure> {
    let ensemble = context.client.ensemble(context.namespace.as_str(), name).await?;
    let snapshots = ensemble.status.and_then(|status| status.snapshots).unwrap_or_default();
    let none = match ensemble.service.etcd {
        Some(_) => format!("no snapshots; take one with: bellwether ensemble snapshot {name}"),
        None => "no snapshots; they are there for etcd alone".to_owned(),
    };
    let numbers = || snapshots.taken.iter().map(|taken| taken.id.number.to_string()).collect();
    context.show.data(&snapshots, numbers, |_| sheet(none, &snapshots))
}

fn sheet(none: String, snapshots: &EnsembleSnapshots) -> String {
    let rows = snapshots.taken.iter().map(|taken| {
        vec![
            taken.id.number.to_string(),
            date(taken.id.at_ms),
            taken.node.clone(),
            taken.content.bytes.to_string(),
            taken.content.revision.to_string(),
            taken.name.clone(),
        ]
    });
    let mut lines = vec![match snapshots.taken.is_empty() {
        true => none,
        false => table(&["number", "taken", "node", "bytes", "revision", "name"], rows),
    }];
    if let Some(ordered) = &snapshots.ordered {
        lines.push(format!("member {} takes snapshot {}", ordered.by, ordered.id.number));
    }
    if let Some(asked) = &snapshots.requested {
        lines.push(format!("another one is asked for by {}", asked.by));
    }
    if let Some(failure) = &snapshots.failure {
        let (at, node, reason) = (date(failure.at_ms), &failure.node, &failure.reason);
        lines.push(format!("snapshot {} failed on node {node}, {at}: {reason}", failure.id.number));
    }
    lines.join("\n")
}

/// Where the snapshots stay of an ensemble that is deleted, line by line.
pub(super) fn left_behind(status: Option<&EnsembleStatus>) -> Vec<String> {
    let taken = status.and_then(|status| status.snapshots.as_ref()).into_iter().flat_map(|all| &all.taken);
    let line = |taken: &TakenSnapshot| format!("snapshot {} stays on node {}", taken.name, taken.node);
    taken.map(line).collect()
}

/// The settings after a change of them.
pub(super) fn changed(
    before: Option<SnapshotSpec>,
    every: Option<String>,
    keep: Option<u32>,
) -> Option<SnapshotSpec> {
    let before = before.unwrap_or_default();
    let every = match every {
        None => before.every,
        Some(word) if word == "never" => None,
        every => every,
    };
    let after = SnapshotSpec { every, keep: keep.or(before.keep) };
    (after != SnapshotSpec::default()).then_some(after)
}

/// The settings in words.
pub(super) fn policy(spec: Option<&SnapshotSpec>) -> String {
    let spec = spec.cloned().unwrap_or_default();
    let every = spec.every.map_or_else(|| "when asked for".to_owned(), |every| format!("every {every}"));
    spec.keep.map_or_else(|| every.clone(), |keep| format!("{every}, {keep} kept"))
}
