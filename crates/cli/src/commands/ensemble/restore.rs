//! The snapshot that a new ensemble is founded from.

use bellwether_api::v1::ensemble::restore::RestoreSpec;

use crate::context::Context;
use crate::exit::Failure;

/// The snapshot that was named, and where it is: on the node that was named, or on the one that the ensemble lists it on.
pub(super) async fn source(
    context: &Context,
    snapshot: Option<String>,
    node: Option<String>,
) -> Result<Option<RestoreSpec>, Failure> {
    let Some(snapshot) = snapshot else { return Ok(None) };
    if let Some(node) = node {
        return Ok(Some(RestoreSpec { node, snapshot }));
    }
    let ensembles = context.client.ensembles(context.namespace.as_str()).await?.items;
    let all = ensembles.into_iter().filter_map(|ensemble| ensemble.status?.snapshots);
    let mut taken = all.flat_map(|snapshots| snapshots.taken);
    let name = snapshot.strip_suffix(".db").unwrap_or(&snapshot);
    match taken.find(|taken| taken.name == name) {
        Some(taken) => Ok(Some(RestoreSpec { node: taken.node, snapshot })),
        None => Err(Failure::usage(format!(
            "find snapshot {snapshot}: no ensemble lists it; if its ensemble was deleted, name the node on which its file is: --snapshot-node NODE"
        ))),
    }
}
