//! Members of ensembles on nodes: absorbs what agents report of them.

use bellwether_api::v1;
use bellwether_core::access::Identity;
use bellwether_core::decide::ensembles::reports::absorb;
use bellwether_core::decide::ensembles::set_back;
use bellwether_core::records::member::NodeMembers;
use bellwether_core::words::counter::Generation;
use bellwether_core::words::name::{Namespace, NodeName};

use super::OpError;
use super::node::{about_itself, active, overtaken};
use crate::transactor::Transactor;

/// Absorbs what a node reports of the members that it has.
///
/// # Errors
/// [`OpError::Invalid`] when they are of another node or exceed a limit; [`OpError::Moved`] when a later report is known;
/// [`OpError::NotFound`] for a node that does not exist.
pub async fn absorb_members(
    transactor: &Transactor,
    namespace: &Namespace,
    node: &NodeName,
    shape: v1::ensemble::reports::NodeMembers,
) -> Result<(), OpError> {
    about_itself(&shape.node, node)?;
    let generation = Generation::new(shape.generation);
    let members = NodeMembers::try_from(shape)?;
    let actor = Identity::Node(node.clone()).actor();
    transactor
        .change(namespace, &actor, |_, fleet, now| {
            active(fleet, node)?;
            let last = fleet.node_members.get(node).map(|kept| &*kept.value);
            if last.is_some_and(|last| members.is_overtaken(last)) {
                return Err(overtaken("members of ensembles", node));
            }
            let reported = absorb(fleet, last, members.clone(), now);
            Ok((set_back::noted(fleet, (node, generation), reported), ()))
        })
        .await
}
