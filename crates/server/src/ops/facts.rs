//! Facts of nodes: absorbs what agents report, and records that a rescan is wanted.

use bellwether_api::v1;
use bellwether_core::access::Identity;
use bellwether_core::decide::facts::absorb;
use bellwether_core::records::facts::NodeFacts;
use bellwether_core::words::name::{Namespace, NodeName};

use super::node::{about_itself, active, put};
use super::scope::NodeScope;
use super::{OpError, event};
use crate::transactor::Transactor;

/// Absorbs the facts of a node.
///
/// # Errors
/// [`OpError::Invalid`] when they are of another node or exceed a limit; [`OpError::NotFound`] for a node that does not
/// exist.
pub async fn absorb_facts(
    transactor: &Transactor,
    namespace: &Namespace,
    node: &NodeName,
    shape: v1::facts::NodeFacts,
) -> Result<(), OpError> {
    about_itself(&shape.node, node)?;
    let facts = NodeFacts::try_from(shape)?;
    let actor = Identity::Node(node.clone()).actor();
    transactor
        .change(namespace, &actor, |_, fleet, now| {
            active(fleet, node)?;
            let last = fleet.facts.get(node).map(|kept| &*kept.value);
            Ok((absorb(last, facts.clone(), now), ()))
        })
        .await
}

/// Requests a rescan: the node's agent reads its facts again with its next order. Repeated requests are rescans of their own.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn rescan(
    transactor: &Transactor,
    scope: NodeScope<'_>,
) -> Result<v1::facts::RequestedRescan, OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let mut node = active(fleet, name)?;
            node.rescan = node.rescan.next_in(fleet.epoch);
            let requested = v1::facts::RequestedRescan { rescan: node.rescan.get() };
            let event =
                event("node.rescan_requested", format!("node/{name}"), "a rescan of its facts was requested");
            Ok((Some(put(node, event)), requested))
        })
        .await
}
