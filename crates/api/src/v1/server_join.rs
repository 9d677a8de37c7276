//! Joining of servers: requests and answers.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Request to create a join token for a server. It can be used once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServerToken {
    /// How long it is valid, at most `1h`; `15m` if absent.
    #[serde(default)]
    pub expires_in: Option<String>,
}

/// Request of a machine to join the control plane as a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinServer {
    /// The join token's secret.
    pub token: String,
    /// Name of the server, unique among the servers.
    pub name: String,
}

/// What a server needs to be one of the installation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JoinedServer {
    /// Id of the installation.
    pub installation: String,
    /// The CA's certificate (PEM).
    pub ca: String,
    /// The CA's private key (PEM). Whoever has it can be any server and any node.
    pub ca_key: String,
    /// The keys that secrets are encrypted with, as they are in the file; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_keys: Option<String>,
    /// The etcd that the servers share.
    pub etcd: EtcdAccess,
}

/// The etcd that the servers share, as the answering server is configured. Certificates and keys for it are not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EtcdAccess {
    /// URLs of the members.
    pub endpoints: Vec<String>,
    /// Prefix of all keys.
    pub prefix: String,
    /// Path, on the answering server, of the authority of etcd's certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub ca_file: Option<PathBuf>,
    /// Path, on the answering server, of its client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cert_file: Option<PathBuf>,
    /// Path, on the answering server, of the key of its client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
}

impl fmt::Debug for JoinServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for JoinedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedServer").field("installation", &self.installation).finish_non_exhaustive()
    }
}
