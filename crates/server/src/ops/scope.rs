//! What an operation applies to, and who requested it.

use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName, SlotName};

/// One entity, for an operation.
#[derive(Debug, Clone, Copy)]
pub struct EntityScope<'a> {
    /// The entity's namespace.
    pub namespace: &'a Namespace,
    /// The entity.
    pub entity: &'a EntityName,
    /// Who requested the operation; events name them.
    pub actor: &'a Actor,
}

/// One node, for an operation.
#[derive(Debug, Clone, Copy)]
pub struct NodeScope<'a> {
    /// The node's namespace.
    pub namespace: &'a Namespace,
    /// The node.
    pub node: &'a NodeName,
    /// Who requested the operation; events name them.
    pub actor: &'a Actor,
}

/// One slot, for an operation.
#[derive(Debug, Clone, Copy)]
pub struct SlotScope<'a> {
    /// The slot's namespace.
    pub namespace: &'a Namespace,
    /// The slot.
    pub slot: &'a SlotName,
    /// Who requested the operation; events name them.
    pub actor: &'a Actor,
}
