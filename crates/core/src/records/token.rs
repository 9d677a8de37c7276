//! Tokens: what people, programs and joining machines show. Written only by operations; the secret itself is never kept.

use alloc::string::String;

use crate::access::Role;
use crate::words::name::{Actor, Namespace, NodeName};
use crate::words::time::Timestamp;

/// A person's or program's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its name; what events call whoever shows it.
    pub name: Actor,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops working; never, if absent.
    pub expires_at: Option<Timestamp>,
}

/// A token that lets one machine join, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// The namespace it lets into.
    pub namespace: Namespace,
    /// The one name it may join under; any free one, if absent.
    pub node: Option<NodeName>,
    /// Who made it.
    pub created_by: Actor,
    /// When it stops working; at most an hour after it was made.
    pub expires_at: Timestamp,
    /// Which machine used it up, and when.
    pub used: Option<(NodeName, Timestamp)>,
}
