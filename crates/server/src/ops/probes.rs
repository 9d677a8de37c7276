//! Data stores of nodes: absorbs what agents report of them.

use bellwether_api::v1;
use bellwether_core::access::Identity;
use bellwether_core::decide::probes::absorb;
use bellwether_core::records::probes::NodeProbes;
use bellwether_core::words::name::{Namespace, NodeName};

use super::OpError;
use super::node::{about_itself, active, overtaken};
use crate::transactor::Transactor;

/// Absorbs the data stores of a node.
///
/// # Errors
/// [`OpError::Invalid`] when they are of another node or exceed a limit; [`OpError::Moved`] when a later report is known;
/// [`OpError::NotFound`] for a node that does not exist.
pub async fn absorb_probes(
    transactor: &Transactor,
    namespace: &Namespace,
    node: &NodeName,
    shape: v1::probes::NodeProbes,
) -> Result<(), OpError> {
    about_itself(&shape.node, node)?;
    let probes = NodeProbes::try_from(shape)?;
    let actor = Identity::Node(node.clone()).actor();
    transactor
        .change(namespace, &actor, |_, fleet, now| {
            active(fleet, node)?;
            let last = fleet.probes.get(node).map(|kept| &*kept.value);
            if last.is_some_and(|last| probes.is_overtaken(last)) {
                return Err(overtaken("data stores", node));
            }
            Ok((absorb(last, probes.clone(), now), ()))
        })
        .await
}
