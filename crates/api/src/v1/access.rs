//! Tokens and joining, as they travel and are kept.

use bellwether_core::records::token as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, read_some};
use crate::word::words;

words! {
    /// What a token permits; each role includes those before it.
    Role = bellwether_core::access::Role {
        /// Read everything but secrets.
        Viewer = "viewer",
        /// Also change entities, rollouts, labels, pauses, freezes and slots.
        Operator = "operator",
        /// Also manage tokens and join tokens, decommission nodes, and delete entities and profiles.
        Admin = "admin",
    }
}

/// Asks for a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Its name; what events call whoever shows it.
    pub name: String,
    /// What the token permits.
    pub role: Role,
    /// How long it works, like `30d`; for ever, if absent.
    #[serde(default)]
    pub expires_in: Option<String>,
}

/// A token as listed: without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TokenInfo {
    /// Its name.
    pub name: String,
    /// What the token permits.
    pub role: Role,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// When it stops working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}

/// A secret, shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Secret {
    /// What to show from now on.
    pub secret: String,
}

/// A token as kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// Its name.
    pub name: String,
    /// What the token permits.
    pub role: Role,
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// When it was made.
    pub created_at_ms: u64,
    /// When it stops working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}

/// Asks for a join token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJoinToken {
    /// The namespace it lets into; `default` if absent.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The one name it may join under; any free one, if absent.
    #[serde(default)]
    pub node: Option<String>,
    /// How long it works, at most `1h`; `1h` if absent.
    #[serde(default)]
    pub expires_in: Option<String>,
}

/// A join token as listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JoinTokenInfo {
    /// First 12 characters of its hash.
    pub id: String,
    /// The namespace it lets into.
    pub namespace: String,
    /// The one name it may join under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Who made it.
    pub created_by: String,
    /// When it stops working.
    pub expires_at_ms: u64,
    /// Which machine used it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
}

/// A join token as kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredJoinToken {
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// The namespace it lets into.
    pub namespace: String,
    /// The one name it may join under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Who made it.
    pub created_by: String,
    /// When it stops working.
    pub expires_at_ms: u64,
    /// Which machine used it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at_ms: Option<u64>,
}

/// A machine asks to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The join token's secret.
    pub token: String,
    /// The namespace to join.
    pub namespace: String,
    /// The name to join under.
    pub node: String,
    /// Labels to start with.
    #[serde(default)]
    pub labels: std::collections::BTreeMap<String, String>,
    /// A certificate request (PEM) for a key that never leaves the machine.
    pub certificate_request: String,
}

/// A node asks for a fresh certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// A certificate request (PEM), for the key the node joined with.
    pub certificate_request: String,
}

/// A machine has joined, or renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Joined {
    /// The client certificate (PEM).
    pub certificate: String,
    /// The CA's certificate (PEM).
    pub ca: String,
    /// When the certificate ends, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// Who the server takes the caller for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WhoAmI {
    /// The actor that events would name.
    pub actor: String,
    /// The role of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl From<&core::Token> for StoredToken {
    fn from(from: &core::Token) -> Self {
        Self {
            name: from.name.to_string(),
            role: from.role.into(),
            secret_hash: from.secret_hash.clone(),
            created_at_ms: from.created_at.as_millis(),
            expires_at_ms: from.expires_at.map(Timestamp::as_millis),
        }
    }
}

impl TryFrom<StoredToken> for core::Token {
    type Error = ShapeError;
    fn try_from(from: StoredToken) -> Result<Self, ShapeError> {
        Ok(Self {
            name: read("name", &from.name)?,
            role: from.role.into(),
            secret_hash: from.secret_hash,
            created_at: Timestamp::from_millis(from.created_at_ms),
            expires_at: from.expires_at_ms.map(Timestamp::from_millis),
        })
    }
}

impl From<&core::Token> for TokenInfo {
    fn from(from: &core::Token) -> Self {
        Self {
            name: from.name.to_string(),
            role: from.role.into(),
            created_at_ms: from.created_at.as_millis(),
            expires_at_ms: from.expires_at.map(Timestamp::as_millis),
        }
    }
}

impl From<&core::JoinToken> for StoredJoinToken {
    fn from(from: &core::JoinToken) -> Self {
        Self {
            secret_hash: from.secret_hash.clone(),
            namespace: from.namespace.to_string(),
            node: from.node.as_ref().map(ToString::to_string),
            created_by: from.created_by.to_string(),
            expires_at_ms: from.expires_at.as_millis(),
            used_by: from.used.as_ref().map(|(node, _)| node.to_string()),
            used_at_ms: from.used.as_ref().map(|(_, at)| at.as_millis()),
        }
    }
}

impl TryFrom<StoredJoinToken> for core::JoinToken {
    type Error = ShapeError;
    fn try_from(from: StoredJoinToken) -> Result<Self, ShapeError> {
        let used_at = Timestamp::from_millis(from.used_at_ms.unwrap_or_default());
        Ok(Self {
            secret_hash: from.secret_hash,
            namespace: read("namespace", &from.namespace)?,
            node: read_some("node", from.node.as_deref())?,
            created_by: read("created_by", &from.created_by)?,
            expires_at: Timestamp::from_millis(from.expires_at_ms),
            used: read_some("used_by", from.used_by.as_deref())?.map(|node| (node, used_at)),
        })
    }
}

impl From<&core::JoinToken> for JoinTokenInfo {
    fn from(from: &core::JoinToken) -> Self {
        Self {
            id: from.secret_hash.chars().take(12).collect(),
            namespace: from.namespace.to_string(),
            node: from.node.as_ref().map(ToString::to_string),
            created_by: from.created_by.to_string(),
            expires_at_ms: from.expires_at.as_millis(),
            used_by: from.used.as_ref().map(|(node, _)| node.to_string()),
        }
    }
}
