//! Absorbs the service registrations of a node.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_core::access::Identity;
use bellwether_core::decide::registrations::{absorb, next_part, recorded};
use bellwether_core::records::registrations::ServiceRegistrations;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Namespace, NodeName};

use super::OpError;
use crate::transactor::Transactor;

/// Absorbs the service registrations of a node. Returns the revision at which they are recorded; 0 if others were recorded meanwhile.
///
/// # Errors
/// [`OpError::Invalid`] when they are of another node or a field is not valid; [`OpError::NotFound`] for a node that
/// does not exist.
pub async fn absorb_registrations(
    transactor: &Transactor,
    namespace: &Namespace,
    node: &NodeName,
    shape: v1::registrations::ServiceRegistrations,
) -> Result<Revision, OpError> {
    if shape.node != node.as_str() {
        let reason = format!("{:?} is not {node}: a node registers its own services only", shape.node);
        return Err(ShapeError::at("node", reason).into());
    }
    let registrations = ServiceRegistrations::try_from(shape)?;
    let actor = Identity::Node(node.clone()).actor();
    loop {
        let absorbing = transactor.change(namespace, &actor, |_, fleet, now| {
            if fleet.active_node(node).is_none() {
                return Err(OpError::NotFound(format!("node {node}")));
            }
            let (part, is_all) = next_part(fleet, &registrations);
            Ok((absorb(fleet, part, now), is_all))
        });
        if absorbing.await? {
            let world = transactor.world();
            let fleet = world.fleets.get(namespace);
            let recorded = fleet.and_then(|fleet| recorded(fleet, &registrations));
            return Ok(recorded.unwrap_or_default());
        }
    }
}
