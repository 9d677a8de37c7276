//! Authorisation: who may do what. Owns roles and requirements; never reads a token itself.

use alloc::string::String;
use core::fmt;

use crate::words::name::{Actor, NODE_ACTOR, NodeName};

/// Role of a token. Each includes the rights of the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read everything except secrets.
    Viewer,
    /// Also change entities, rollouts, labels and pauses.
    Operator,
    /// Also manage tokens and join tokens, decommission and delete.
    Admin,
}

/// The client of a request, after its token or certificate was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A person or program with a token.
    Token {
        /// Name of the token.
        name: Actor,
        /// Role of the token.
        role: Role,
    },
    /// A node, identified by its client certificate.
    Node(NodeName),
    /// Without a valid token or certificate.
    Anonymous,
}

/// What a route requires of its client. A route cannot be registered without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAccess {
    /// Nothing: the route reveals nothing about the fleet (liveness, and joining, which checks a token of its
    /// own).
    Open,
    /// Role viewer.
    Read,
    /// Role operator.
    Operate,
    /// Role admin.
    Administer,
    /// The node that the path names.
    OwnNode,
    /// The node that the path names, or role viewer.
    OwnNodeOrRead,
    /// The node that the path names, or role operator.
    OwnNodeOrOperate,
    /// A node of the namespace, or role viewer. What a node may read depends on its assignments.
    NodeOrRead,
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
        needed: &'static str,
    },
}

impl Role {
    /// All roles, weakest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// Name used in the API, the CLI and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Reads the name of a role.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl RequiredAccess {
    /// All requirements, for tests of every route against every identity.
    pub const ALL: [Self; 8] = [
        Self::Open,
        Self::Read,
        Self::Operate,
        Self::Administer,
        Self::OwnNode,
        Self::OwnNodeOrRead,
        Self::OwnNodeOrOperate,
        Self::NodeOrRead,
    ];

    const fn role(self) -> Option<Role> {
        match self {
            Self::Open | Self::OwnNode => None,
            Self::Read | Self::OwnNodeOrRead | Self::NodeOrRead => Some(Role::Viewer),
            Self::Operate | Self::OwnNodeOrOperate => Some(Role::Operator),
            Self::Administer => Some(Role::Admin),
        }
    }

    const fn own_node(self) -> bool {
        matches!(self, Self::OwnNode | Self::OwnNodeOrRead | Self::OwnNodeOrOperate | Self::NodeOrRead)
    }

    /// The requirement, in words for people.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Open => "nothing",
            Self::Read => "role viewer, operator or admin",
            Self::Operate => "role operator or admin",
            Self::Administer => "role admin",
            Self::OwnNode => "that node's own certificate",
            Self::OwnNodeOrRead => "that node's own certificate, or role viewer, operator or admin",
            Self::OwnNodeOrOperate => "that node's own certificate, or role operator or admin",
            Self::NodeOrRead => "the certificate of a node in question, or role viewer, operator or admin",
        }
    }
}

/// Checks that `identity` meets the requirement `need`, on a path that names `node` (if it names one).
///
/// # Errors
/// [`Denied`], with the requirement.
pub fn authorise(identity: &Identity, need: RequiredAccess, node: Option<&NodeName>) -> Result<(), Denied> {
    let allowed = match identity {
        _ if need == RequiredAccess::Open => true,
        Identity::Anonymous => return Err(Denied::Unknown),
        Identity::Token { role, .. } => need.role().is_some_and(|needed| *role >= needed),
        Identity::Node(own) => need.own_node() && node == Some(own),
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
    fn right(&self) -> String {
        match self {
            Self::Token { name, role } => alloc::format!("token {name} has role {role}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(role: Role) -> Identity {
        Identity::Token { name: Actor::parse("kim").unwrap(), role }
    }

    #[test]
    fn roles_include_each_other_upwards_and_never_a_nodes_own() {
        let node = NodeName::parse("web-1").unwrap();
        for role in Role::ALL {
            assert!(authorise(&bearer(role), RequiredAccess::Read, None).is_ok());
            assert_eq!(
                authorise(&bearer(role), RequiredAccess::Operate, None).is_ok(),
                role >= Role::Operator
            );
            assert_eq!(
                authorise(&bearer(role), RequiredAccess::Administer, None).is_ok(),
                role == Role::Admin
            );
            assert!(authorise(&bearer(role), RequiredAccess::OwnNode, Some(&node)).is_err());
        }
    }

    #[test]
    fn a_node_reaches_its_own_path_and_no_other() {
        let (own, other) = (NodeName::parse("web-1").unwrap(), NodeName::parse("web-2").unwrap());
        let node = Identity::Node(own.clone());
        assert!(authorise(&node, RequiredAccess::OwnNode, Some(&own)).is_ok());
        assert!(authorise(&node, RequiredAccess::OwnNode, Some(&other)).is_err());
        assert!(authorise(&node, RequiredAccess::OwnNodeOrRead, Some(&other)).is_err());
        assert!(authorise(&node, RequiredAccess::NodeOrRead, Some(&own)).is_ok());
        assert!(authorise(&node, RequiredAccess::NodeOrRead, None).is_err());
        for need in [RequiredAccess::Read, RequiredAccess::Operate, RequiredAccess::Administer] {
            assert!(authorise(&node, need, Some(&own)).is_err());
        }
    }

    #[test]
    fn nobody_gets_nothing_but_what_is_open() {
        for need in RequiredAccess::ALL {
            assert_eq!(authorise(&Identity::Anonymous, need, None).is_ok(), need == RequiredAccess::Open);
        }
    }
}
