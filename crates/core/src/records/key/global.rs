//! The typed key of a record that belongs to the installation and to no namespace, and that record.

use alloc::string::String;

use crate::access::Role;
use crate::records::authorities::Authorities;
use crate::records::freeze::Freeze;
use crate::records::server::{Leader, Server};
use crate::records::token::{JoinToken, Token};
use crate::words::name::{FreezeName, RoleName, ServerName};

/// Key of a record that belongs to the installation and to no namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GlobalKey {
    /// A freeze of every namespace, by name.
    Freeze(FreezeName),
    /// A server, by name.
    Server(ServerName),
    /// The leader; there is one such record.
    Leader,
    /// An API token, by its secret's SHA-256 in lower-case hex.
    Token(String),
    /// A join token, by its secret's SHA-256 in lower-case hex.
    JoinToken(String),
    /// A role of the installation's own, by name.
    Role(RoleName),
    /// The certificate authorities; there is one such record.
    Authorities,
}

/// A record that belongs to the installation and to no namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GlobalRecord {
    /// A freeze of every namespace.
    Freeze(Freeze),
    /// A server.
    Server(Server),
    /// The leader among the servers.
    Leader(Leader),
    /// An API token.
    Token(Token),
    /// A join token.
    JoinToken(JoinToken),
    /// A role of the installation's own.
    Role(Role),
    /// The certificate authorities.
    Authorities(Authorities),
}

impl GlobalRecord {
    /// The key under which it is stored.
    #[must_use]
    pub fn key(&self) -> GlobalKey {
        match self {
            Self::Freeze(freeze) => GlobalKey::Freeze(freeze.name.clone()),
            Self::Server(server) => GlobalKey::Server(server.name.clone()),
            Self::Leader(_) => GlobalKey::Leader,
            Self::Token(token) => GlobalKey::Token(token.secret_hash.clone()),
            Self::JoinToken(token) => GlobalKey::JoinToken(token.secret_hash.clone()),
            Self::Role(role) => GlobalKey::Role(role.name.clone()),
            Self::Authorities(_) => GlobalKey::Authorities,
        }
    }
}
