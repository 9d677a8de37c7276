//! What an operation applies to, and who requested it.

use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName, ProfileName, SlotName};

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

/// One profile, for a change.
#[derive(Debug, Clone, Copy)]
pub struct ProfileScope<'a> {
    /// The profile's namespace.
    pub namespace: &'a Namespace,
    /// The profile.
    pub profile: &'a ProfileName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// Number of the revision that must be the newest, 0 if the profile must not exist; `None` for any.
    pub only_at: Option<u64>,
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
