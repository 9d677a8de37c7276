//! API tokens, join tokens and node certificates: requests, answers and stored records.

use bellwether_core::access::NamePattern;
use bellwether_core::records::token as core;
use bellwether_core::words::name::ServiceName;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, read_some};
use crate::v1::role::{Claim, role_names};
use crate::word::words;

/// Most patterns of labels or services.
const MAX_PATTERNS: usize = 64;

words! {
    /// What a machine becomes that joins with a token.
    #[derive(Default)]
    JoinsAs = core::JoinsAs {
        /// A node, which runs an agent.
        #[default]
        Node = "node",
        /// A server of the control plane.
        Server = "server",
    }
}

/// Request to create an API token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Token name; events name it as the actor of what the token's bearer does.
    pub name: String,
    /// Names of the roles whose rights the token has, 1 to 16.
    pub roles: Vec<String>,
    /// The only namespaces in which it has them: a name, which may end with `*`; every namespace if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_in: Option<String>,
    /// How long the token is valid, such as `30d`; it does not expire if absent.
    #[serde(default)]
    pub expires_in: Option<String>,
}

/// A token in a list, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TokenInfo {
    /// Token name.
    pub name: String,
    /// Names of the roles whose rights the token has.
    pub roles: Vec<String>,
    /// The only namespaces in which it has them, as a name or the beginning of names before `*`; absent if it is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_in: Option<String>,
    /// Time of creation, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Time at which the token expires, in milliseconds since the Unix epoch; absent if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}

/// A new secret. The server stores only its hash and does not show it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Secret {
    /// The secret, as it is sent in requests.
    pub secret: String,
}

/// Stored record of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// Token name.
    pub name: String,
    /// Names of the roles whose rights the token has.
    pub roles: Vec<String>,
    /// The only namespaces in which it has them, as a name or the beginning of names before `*`; absent if it is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_in: Option<String>,
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// Time of creation, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Time at which the token expires, in milliseconds since the Unix epoch; absent if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}

/// Request to create a join token. It can be used once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJoinToken {
    /// Namespace that a node can join with it; `default` if absent.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The only node name that can be used with it; any free name if absent.
    #[serde(default)]
    pub node: Option<String>,
    /// How long it is valid, at most `1h`; `1h` if absent.
    #[serde(default)]
    pub expires_in: Option<String>,
    /// Labels of the node, as `KEY=VALUE`, at most 64. Of those that end with `*` the machine chooses when it joins; it may choose no
    /// others. None if absent.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Names of the services that the node may register, at most 64; each may end with `*`. All if absent.
    #[serde(default = "any_service")]
    pub services: Vec<String>,
}

/// A join token in a list, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JoinTokenInfo {
    /// First 12 characters of its hash.
    pub id: String,
    /// What the machine becomes that joins with it.
    #[serde(default)]
    pub joins_as: JoinsAs,
    /// The namespace it lets into.
    pub namespace: String,
    /// The only node name that can be used with it; absent if any free name can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Labels of the node; of those that end with `*` the machine chooses when it joins.
    pub labels: Vec<String>,
    /// Names of the services that the node may register.
    pub services: Vec<String>,
    /// Name of the token of its creator.
    pub created_by: String,
    /// Time at which it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
    /// Name of the node or server that joined with it; absent while it is unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
}

/// Stored record of a join token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredJoinToken {
    /// SHA-256 of the secret, lower-case hex.
    pub secret_hash: String,
    /// What the machine becomes that joins with it; a node if absent.
    #[serde(default, skip_serializing_if = "joins_as_node")]
    pub joins_as: JoinsAs,
    /// Namespace that a node can join with it.
    pub namespace: String,
    /// The only node name that can be used with it; absent if any free name can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Labels of the node; of those that end with `*` the machine chooses when it joins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Names of the services that the node may register; all if absent.
    #[serde(default = "any_service", skip_serializing_if = "is_any_service")]
    pub services: Vec<String>,
    /// The authority that it names, SHA-256 of its certificate in lower-case hex; absent for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// Name of the token of its creator.
    pub created_by: String,
    /// Time at which it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
    /// Name of the node or server that joined with it; absent while it is unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
    /// Time at which it was used, in milliseconds since the Unix epoch; absent while it is unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at_ms: Option<u64>,
}

/// Request of a machine to join a namespace as a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The join token's secret.
    pub token: String,
    /// Namespace to join.
    pub namespace: String,
    /// Node name to join under.
    pub node: String,
    /// Initial labels of the node.
    #[serde(default)]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Certificate signing request (PEM) for a private key that never leaves the machine.
    pub certificate_request: String,
}

/// Request of a node for a new certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// Certificate signing request (PEM) for the key with which the node joined.
    pub certificate_request: String,
}

/// Answer to a join or a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Joined {
    /// The node's client certificate (PEM).
    pub certificate: String,
    /// The CA's certificate (PEM).
    pub ca: String,
    /// Time at which the certificate expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// The identity of the caller, as the server authenticated it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WhoAmI {
    /// Actor name that events contain for this caller.
    pub actor: String,
    /// Names of the token's roles.
    pub roles: Vec<String>,
    /// The only namespaces in which it has their rights; absent if it is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_in: Option<String>,
    /// What the token permits: the claims of its roles in these namespaces.
    pub claims: Vec<Claim>,
}

/// The namespaces that a token is limited to.
///
/// # Errors
/// [`ShapeError`] if it is no pattern.
pub fn only_in(text: Option<&str>) -> Result<Option<NamePattern>, ShapeError> {
    text.map(|text| NamePattern::parse(text).map_err(|reason| ShapeError::at("only_in", reason))).transpose()
}

impl Default for NewJoinToken {
    /// For any node of the namespace `default`, which chooses no labels and registers any service.
    fn default() -> Self {
        Self { namespace: None, node: None, expires_in: None, labels: Vec::new(), services: any_service() }
    }
}

/// Whether a token is for a node.
fn joins_as_node(joins_as: &JoinsAs) -> bool {
    matches!(joins_as, JoinsAs::Node)
}

/// Every service.
pub(crate) fn any_service() -> Vec<String> {
    vec!["*".to_owned()]
}

/// Whether it is every service.
pub(crate) fn is_any_service(services: &[String]) -> bool {
    matches!(services, [all] if all == "*")
}

/// Reads patterns of names.
///
/// # Errors
/// [`ShapeError`] at the field if there are more than 64, or one is no pattern.
pub fn patterns(field: &str, texts: &[String]) -> Result<Vec<NamePattern>, ShapeError> {
    if texts.len() > MAX_PATTERNS {
        return Err(ShapeError::at(field, format!("more than {MAX_PATTERNS}")));
    }
    let read = |text: &String| NamePattern::parse(text).map_err(|reason| ShapeError::at(field, reason));
    texts.iter().map(read).collect()
}

/// Reads patterns of names of services.
///
/// # Errors
/// [`ShapeError`] at the field if there are more than 64, or one is no pattern, or matches no name that a service can have.
pub fn service_patterns(field: &str, texts: &[String]) -> Result<Vec<NamePattern>, ShapeError> {
    let all = patterns(field, texts)?;
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let fits = |pattern: &NamePattern| match pattern {
        NamePattern::Any => Ok(()),
        NamePattern::Exact(name) => ServiceName::parse(name).map(drop).map_err(|error| error.to_string()),
        NamePattern::Prefix(stem) if stem.starts_with('-') || !stem.chars().all(is_letter) => Err(format!(
            "{pattern} matches no name of a service; names have lower-case letters, digits and hyphens, like web-*"
        )),
        NamePattern::Prefix(_) => Ok(()),
    };
    all.iter().try_for_each(|pattern| fits(pattern).map_err(|reason| ShapeError::at(field, reason)))?;
    Ok(all)
}

pub(crate) fn texts(patterns: &[NamePattern]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

impl From<&core::Token> for StoredToken {
    fn from(from: &core::Token) -> Self {
        Self {
            name: from.name.to_string(),
            roles: from.roles.iter().map(ToString::to_string).collect(),
            only_in: from.only_in.as_ref().map(ToString::to_string),
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
            roles: role_names(&from.roles)?,
            only_in: only_in(from.only_in.as_deref())?,
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
            roles: from.roles.iter().map(ToString::to_string).collect(),
            only_in: from.only_in.as_ref().map(ToString::to_string),
            created_at_ms: from.created_at.as_millis(),
            expires_at_ms: from.expires_at.map(Timestamp::as_millis),
        }
    }
}

impl From<&core::JoinToken> for StoredJoinToken {
    fn from(from: &core::JoinToken) -> Self {
        Self {
            secret_hash: from.secret_hash.clone(),
            joins_as: from.joins_as.into(),
            namespace: from.namespace.to_string(),
            node: from.node.as_ref().map(ToString::to_string),
            labels: texts(&from.labels),
            services: texts(&from.services),
            authority: from.authority.clone(),
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
            joins_as: from.joins_as.into(),
            namespace: read("namespace", &from.namespace)?,
            node: read_some("node", from.node.as_deref())?,
            labels: patterns("labels", &from.labels)?,
            services: patterns("services", &from.services)?,
            authority: from.authority,
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
            joins_as: from.joins_as.into(),
            namespace: from.namespace.to_string(),
            node: from.node.as_ref().map(ToString::to_string),
            labels: texts(&from.labels),
            services: texts(&from.services),
            created_by: from.created_by.to_string(),
            expires_at_ms: from.expires_at.as_millis(),
            used_by: from.used.as_ref().map(|(node, _)| node.to_string()),
        }
    }
}
