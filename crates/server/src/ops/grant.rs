//! Granting of rights: nobody grants what their own rights do not cover.

use bellwether_api::shape::{ShapeError, read};
use bellwether_core::access::{Claim, Rights};
use bellwether_core::words::name::{Actor, Namespace};

use super::OpError;

/// Who sets a role or creates a token, and with what rights.
#[derive(Debug, Clone, Copy)]
pub struct Grantor<'a> {
    /// The actor of the event.
    pub actor: &'a Actor,
    /// What they may do.
    pub rights: &'a Rights,
}

/// Refuses to grant a claim that the rights of the granting one do not cover.
pub(super) fn grantable(rights: &Rights, claims: &[Claim], what: &str) -> Result<(), OpError> {
    match rights.lacks(claims) {
        None => Ok(()),
        Some(claim) => Err(OpError::Ungrantable { what: what.to_owned(), claim: claim.to_string() }),
    }
}

/// The namespace whose event log has the events of tokens and roles.
pub(super) fn access_namespace() -> Result<Namespace, ShapeError> {
    read("namespace", "default")
}
