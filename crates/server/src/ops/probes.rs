//! Data stores of nodes: absorbs what agents report of them.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_core::access::Identity;
use bellwether_core::decide::probes::absorb;
use bellwether_core::records::probes::NodeProbes;
use bellwether_core::words::name::{Namespace, NodeName};

use super::OpError;
use super::node::active;
use crate::transactor::Transactor;

/// Absorbs the data stores of a node.
///
/// # Errors
/// [`OpError::Invalid`] when they are of another node or exceed a limit; [`OpError::NotFound`] for a node that does not
/// exist.
pub async fn absorb_probes(
    transactor: &Transactor,
    namespace: &Namespace,
    node: &NodeName,
    shape: v1::probes::NodeProbes,
) -> Result<(), OpError> {
    if shape.node != node.as_str() {
        let reason = format!("{:?} is not {node}: a node reports about itself only", shape.node);
        return Err(ShapeError::at("node", reason).into());
    }
    let probes = NodeProbes::try_from(shape)?;
    let actor = Identity::Node(node.clone()).actor();
    transactor
        .change(namespace, &actor, |_, fleet, now| {
            active(fleet, node)?;
            let last = fleet.probes.get(node).map(|kept| &*kept.value);
            Ok((absorb(last, probes.clone(), now), ()))
        })
        .await
}
