//! Authorisation: who may do what. Owns requirements of routes; claims and roles stand below it. Never reads a token itself.

mod claim;
mod pattern;
mod role;
#[cfg(test)]
mod tests;
mod words;

use alloc::string::String;
use alloc::sync::Arc;

pub use self::claim::{
    AccessRequest, AccessScope, Claim, Claims, KindPattern, MAX_ENTRIES, NameScope, VerbPattern,
};
pub use self::pattern::{FieldPath, MAX_PATTERN_BYTES, NamePattern};
pub use self::role::{BUILT_IN, BuiltInRole, MAX_CLAIMS, MAX_ROLES, Rights, Role, built_in, reading};
pub use self::words::{ObjectKind, Verb};
use crate::words::name::{Actor, NODE_ACTOR, NodeName};

/// The client of a request, after its token or certificate was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A person or program with a token.
    Token {
        /// Name of the token.
        name: Actor,
        /// What the token may do.
        rights: Arc<Rights>,
    },
    /// A node, identified by its client certificate.
    Node(NodeName),
    /// Without a valid token or certificate.
    Anonymous,
}

/// What a route requires of its client. A route cannot be registered without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAccess {
    /// Nothing: the route reveals nothing about the fleet (liveness, and joining, which checks a token of its own).
    Open,
    /// A valid token. The handler examines what it may see or do.
    Token,
    /// A right of a token.
    Right(Right),
    /// The node that the path names.
    OwnNode,
    /// The node that the path names, or a right of a token.
    OwnNodeOr(Right),
    /// A node of the namespace, or a right of a token. What a node may read depends on its assignments.
    NodeOr(Right),
}

/// A right that a route requires: a verb on the object that its path names; on some object of the kind, if it names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// What is to be done.
    pub verb: Verb,
    /// The field that it is about, as a JSON pointer; empty for the whole object.
    pub field: &'static str,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// Whether all objects of the kind are needed together.
    pub is_of_all: bool,
    /// Whether a right to something below the field is enough; the handler examines which fields change.
    pub is_partial: bool,
}

/// Why a request is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token and no certificate, or none that is valid.
    #[error("authentication failed: no valid token or node certificate")]
    Unknown,
    /// Authenticated, but without the required right.
    #[error("{who}; this needs {needed}")]
    Forbidden {
        /// The client and its right: `token NAME has role ROLE`.
        who: String,
        /// The required right.
        needed: String,
    },
}

impl Right {
    /// Reading objects of a kind.
    #[must_use]
    pub const fn get(kind: ObjectKind) -> Self {
        Self { verb: Verb::Get, field: "", kind, is_of_all: false, is_partial: false }
    }

    /// Creating or changing an object.
    #[must_use]
    pub const fn update(kind: ObjectKind) -> Self {
        Self { verb: Verb::Update, ..Self::get(kind) }
    }

    /// Changing one field of an object.
    #[must_use]
    pub const fn update_field(kind: ObjectKind, field: &'static str) -> Self {
        Self { field, ..Self::update(kind) }
    }

    /// Deleting an object.
    #[must_use]
    pub const fn delete(kind: ObjectKind) -> Self {
        Self { verb: Verb::Delete, ..Self::get(kind) }
    }

    /// Reading the secrets of an object.
    #[must_use]
    pub const fn reveal(kind: ObjectKind) -> Self {
        Self { verb: Verb::Reveal, ..Self::get(kind) }
    }

    /// The same right to all objects of the kind.
    #[must_use]
    pub const fn of_all(self) -> Self {
        Self { is_of_all: true, ..self }
    }

    /// The same right, for which a right to something below the field is enough. The handler examines which fields change.
    #[must_use]
    pub const fn partial(self) -> Self {
        Self { is_partial: true, ..self }
    }

    /// The request for this right to an object; to some, or to all, without a name.
    #[must_use]
    pub const fn on<'a>(self, name: Option<&'a str>, namespace: Option<&'a str>) -> AccessRequest<'a> {
        let name = match name {
            Some(name) => NameScope::Named(name),
            None if self.is_of_all => NameScope::All,
            None => NameScope::Some,
        };
        let scope = match namespace {
            Some(namespace) => AccessScope::Namespace(namespace),
            None if self.kind.is_global() => AccessScope::Installation,
            None => AccessScope::Some,
        };
        AccessRequest {
            verb: self.verb,
            field: self.field,
            is_partial: self.is_partial,
            kind: self.kind,
            name,
            scope,
        }
    }
}

impl RequiredAccess {
    /// The right to read objects of a kind.
    #[must_use]
    pub const fn get(kind: ObjectKind) -> Self {
        Self::Right(Right::get(kind))
    }

    /// The right to create or change an object.
    #[must_use]
    pub const fn update(kind: ObjectKind) -> Self {
        Self::Right(Right::update(kind))
    }

    /// The right to change one field of an object.
    #[must_use]
    pub const fn update_field(kind: ObjectKind, field: &'static str) -> Self {
        Self::Right(Right::update_field(kind, field))
    }

    /// The right to delete an object.
    #[must_use]
    pub const fn delete(kind: ObjectKind) -> Self {
        Self::Right(Right::delete(kind))
    }

    /// The right of a token that it asks for; `None` if no token can have it, or every one has it.
    #[must_use]
    pub const fn right(self) -> Option<Right> {
        match self {
            Self::Open | Self::Token | Self::OwnNode => None,
            Self::Right(right) | Self::OwnNodeOr(right) | Self::NodeOr(right) => Some(right),
        }
    }

    const fn is_for_nodes(self) -> bool {
        matches!(self, Self::OwnNode | Self::OwnNodeOr(_) | Self::NodeOr(_))
    }

    /// The requirement, in words for people.
    #[must_use]
    pub fn describe(self) -> String {
        let right = |right: Right| {
            let partial = if right.is_partial { ", or to what is changed of it" } else { "" };
            alloc::format!("the right {}{partial}", right.on(None, None))
        };
        match self {
            Self::Open => "nothing".into(),
            Self::Token => "a token".into(),
            Self::Right(needed) => right(needed),
            Self::OwnNode => "that node's own certificate".into(),
            Self::OwnNodeOr(needed) => alloc::format!("that node's own certificate, or {}", right(needed)),
            Self::NodeOr(needed) => {
                alloc::format!("the certificate of a node in question, or {}", right(needed))
            }
        }
    }
}

/// Checks that `identity` meets the requirement `need`, on a path that names `node` (if it names one), and an object and a namespace.
///
/// # Errors
/// [`Denied`], with the requirement.
pub fn authorise(
    identity: &Identity,
    need: RequiredAccess,
    node: Option<&NodeName>,
    (name, namespace): (Option<&str>, Option<&str>),
) -> Result<(), Denied> {
    let allowed = match (identity, need) {
        (_, RequiredAccess::Open) => true,
        // Whoever has no right in a namespace does not learn whether it exists.
        (Identity::Token { rights, .. }, RequiredAccess::Token) => match namespace {
            Some(namespace) if !rights.reach(namespace) => {
                let needed = alloc::format!("a right in namespace {namespace}");
                return Err(Denied::Forbidden { who: identity.right(), needed });
            }
            Some(_) | None => true,
        },
        (Identity::Anonymous, _) => return Err(Denied::Unknown),
        (Identity::Token { .. }, _) => match need.right() {
            Some(right) => return identity.require(&right.on(name, namespace)),
            None => false,
        },
        (Identity::Node(own), _) => need.is_for_nodes() && node == Some(own),
    };
    if allowed { Ok(()) } else { Err(Denied::Forbidden { who: identity.right(), needed: need.describe() }) }
}

impl Actor {
    /// Whether this actor is a node.
    #[must_use]
    pub fn is_node(&self) -> bool {
        self.as_str().starts_with(NODE_ACTOR)
    }
}

impl Identity {
    /// Checks that the client has a right of a token.
    ///
    /// # Errors
    /// [`Denied`], with the request.
    pub fn require(&self, request: &AccessRequest<'_>) -> Result<(), Denied> {
        match self {
            Self::Token { rights, .. } if rights.allows(request) => Ok(()),
            Self::Anonymous => Err(Denied::Unknown),
            Self::Token { .. } | Self::Node(_) => {
                Err(Denied::Forbidden { who: self.right(), needed: alloc::format!("the right {request}") })
            }
        }
    }

    /// What the token may do; `None` without one.
    #[must_use]
    pub fn rights(&self) -> Option<&Rights> {
        match self {
            Self::Token { rights, .. } => Some(rights),
            Self::Node(_) | Self::Anonymous => None,
        }
    }

    fn right(&self) -> String {
        match self {
            Self::Token { name, rights } => alloc::format!("token {name} has {}", rights.describe()),
            Self::Node(node) => alloc::format!("node {node} has its own certificate only"),
            Self::Anonymous => "the caller is not authenticated".into(),
        }
    }

    /// Name of this identity in events.
    #[must_use]
    pub fn actor(&self) -> Actor {
        let text = match self {
            Self::Token { name, .. } => return name.clone(),
            Self::Node(node) => alloc::format!("{NODE_ACTOR}{node}"),
            Self::Anonymous => "anonymous".into(),
        };
        Actor::parse(&text).expect("the name of a node behind its prefix is an actor")
    }
}
