//! Joining: a node generates its key, sends its join token once, and stores the certificate it receives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{CallError, Client};
use bellwether_api::v1::access::Join;
use bellwether_core::words::name::{EntityName, NameError, Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::own_files::NotPrivate;
use bellwether_rt::tasks::BoxFuture;
use rcgen::{CertificateParams, KeyPair};

use crate::apply::former::ProcessOwner;
use crate::config::validate;
use crate::disk;
use crate::identity::{self, Identity, IdentityError};
use crate::lock::{DirectoryLock, LockError};

/// What an agent has from a control plane, in its data directory: another one, or the same after the node was decommissioned,
/// begins with orders of a lower generation.
const OF_THE_CONTROL_PLANE: [&str; 4] =
    ["ledger/order.json", "servers.json", "catalogue.json", "status.json"];

/// The parameters of a join.
#[derive(Debug, Clone)]
pub struct JoinRequest {
    /// The servers, `https://host:port`, in the order in which they are tried.
    pub servers: Vec<String>,
    /// The join token: `bwj_`, a secret, `.`, the CA's fingerprint.
    pub token: Secret,
    /// The node name to join under; upper-case letters become lower-case.
    pub node: String,
    /// The namespace to join.
    pub namespace: String,
    /// Labels to start with.
    pub labels: BTreeMap<String, String>,
    /// The agent's data directory.
    pub data_dir: PathBuf,
    /// Join also if this machine has joined before: its old identity, order and servers are forgotten then.
    pub force: bool,
}

/// The result of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedNode {
    /// The node's name.
    pub node: NodeName,
    /// The node's namespace.
    pub namespace: Namespace,
    /// When the certificate expires; the agent renews it at half its life.
    pub expires_at: Timestamp,
    /// The node had joined under this name before, and nothing was changed.
    pub already: bool,
    /// Entities of which a former agent of the data directory, whose ledger was lost, left processes running. The next agent
    /// ends them before it starts its own.
    pub left_running: Vec<EntityName>,
}

/// Why a join failed. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The join token is malformed.
    #[error("use the join token: {0}; create one with `bellwether join-token create`")]
    Token(&'static str),
    /// The server's address is not valid.
    #[error("use the server address: {0}")]
    Server(String),
    /// The node name or namespace is not valid.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The node has joined under another name.
    #[error(
        "join as {namespace}/{node}: this node has joined as {known}, with its data in {dir}; decommission that node, then join with \
         --force"
    )]
    Another {
        /// The requested namespace.
        namespace: Namespace,
        /// The requested name.
        node: NodeName,
        /// The name it joined under.
        known: String,
        /// The data directory.
        dir: PathBuf,
    },
    /// An agent is running on the data directory.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// A key or certificate file failed.
    #[error("{0}")]
    Identity(#[from] IdentityError),
    /// Others own the data directory or what is in it, or can use it.
    #[error("{0}")]
    NotPrivate(#[from] NotPrivate),
    /// A file of an earlier join cannot be removed.
    #[error("remove {path}, which is of an earlier join: {source}")]
    Forget {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The data directory cannot be created.
    #[error("create {dir}: {source}")]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A key or certificate request cannot be generated.
    #[error("generate a key for this node: {0}")]
    Key(#[from] rcgen::Error),
    /// The server refused, or did not answer.
    #[error("join at {server}: {}{}", reason(.source), hint(.source))]
    Call {
        /// The server.
        server: String,
        /// The error.
        source: CallError,
    },
}

/// The server's reason, without its repetition of what was tried.
fn reason(source: &CallError) -> String {
    match source {
        CallError::Problem(problem) => {
            let detail = &problem.detail;
            detail.strip_prefix("cannot join: ").unwrap_or(detail).to_owned()
        }
        CallError::Unreachable { reason, .. } => reason.clone(),
        CallError::Setup { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Timeout { .. }
        | CallError::Garbled { .. } => source.to_string(),
    }
}

fn hint(source: &CallError) -> String {
    match source {
        CallError::Problem(problem) => {
            problem.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"))
        }
        CallError::Setup { .. }
        | CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Timeout { .. }
        | CallError::Garbled { .. } => String::new(),
    }
}

/// Joins this node. Joining again under the same name changes nothing and needs no valid token, unless it is forced.
///
/// The key is generated here, another one for each join, and never leaves the node; it is stored before it is used, so that an
/// interrupted join can be repeated.
///
/// # Errors
/// [`JoinError`]; a token that the server refused has the server's reason.
pub fn join(request: JoinRequest) -> BoxFuture<'static, Result<JoinedNode, JoinError>> {
    Box::pin(join_here(request))
}

async fn join_here(request: JoinRequest) -> Result<JoinedNode, JoinError> {
    let servers = request.servers.iter().map(|server| validate::server(server));
    let servers: Vec<String> = servers.collect::<Result<_, _>>().map_err(JoinError::Server)?;
    let node = NodeName::parse(&request.node.to_ascii_lowercase())?;
    let namespace = Namespace::parse(&request.namespace)?;
    let dir = request.data_dir;
    disk::private_dir(&dir).map_err(|source| JoinError::Directory { dir: dir.clone(), source })?;
    // Before the token is spent: others may know a key that they have written, or can read.
    identity::own_files(&dir).check()?;
    let _lock = DirectoryLock::take(&dir).await?;
    let known = if request.force { None } else { Identity::load(&dir)? };
    if let Some(known) = known {
        if known.node == node && known.namespace == namespace {
            return Ok(JoinedNode {
                node,
                namespace,
                expires_at: known.expires_at,
                already: true,
                left_running: Vec::new(),
            });
        }
        let known = format!("{}/{}", known.namespace, known.node);
        return Err(JoinError::Another { namespace, node, known, dir });
    }
    let fingerprint = fingerprint(&request.token)?;
    let key = match identity::kept_join_key(&dir, request.force)? {
        Some(key) => KeyPair::from_pem(key.expose())?,
        None => KeyPair::generate()?,
    };
    let secret = Secret::new(key.serialize_pem());
    identity::keep_join_key(&dir, request.force, &secret)?;
    let join = Join {
        token: request.token.expose().to_owned(),
        namespace: namespace.to_string(),
        node: node.to_string(),
        labels: request.labels,
        certificate_request: certificate_request(&key)?,
    };
    let call = |source| JoinError::Call { server: servers.join(" or "), source };
    let client = Client::by_fingerprint(&servers, fingerprint).map_err(call)?;
    let answer = client.join(&join).await.map_err(call)?;
    let expires_at = Timestamp::from_millis(answer.expires_at_ms);
    let identity = Identity {
        node: node.clone(),
        namespace: namespace.clone(),
        server: client.server().to_owned(),
        issued_at: Clock::system().now(),
        expires_at,
        certificate: answer.certificate,
        ca: answer.ca,
        key: secret,
        is_logical: false,
    };
    for file in OF_THE_CONTROL_PLANE {
        let path = dir.join(file);
        disk::remove(&path).map_err(|source| JoinError::Forget { path, source })?;
    }
    identity.store_joined(&dir)?;
    Ok(JoinedNode { node, namespace, expires_at, already: false, left_running: left_running(&dir) })
}

/// Entities of which processes run that no ledger knows. With a ledger, the next agent adopts what it knows.
fn left_running(dir: &Path) -> Vec<EntityName> {
    if dir.join("ledger").exists() {
        return Vec::new();
    }
    match ProcessOwner::new(dir, None).former() {
        Ok(groups) => groups.into_keys().collect(),
        Err(error) => {
            tracing::warn!(%error, "cannot look for processes of a former agent in /proc");
            Vec::new()
        }
    }
}

/// A certificate request for this key; the server decides the certificate's content.
pub(crate) fn certificate_request(key: &KeyPair) -> Result<String, rcgen::Error> {
    CertificateParams::default().serialize_request(key)?.pem()
}

/// The CA fingerprint in the join token.
fn fingerprint(token: &Secret) -> Result<&str, JoinError> {
    let text = token.expose();
    let rest = text.strip_prefix("bwj_").ok_or(JoinError::Token("it does not begin with bwj_"))?;
    let (_, fingerprint) = rest.split_once('.').ok_or(JoinError::Token("it is incomplete"))?;
    let whole = fingerprint.len() == 64 && fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit());
    if whole { Ok(fingerprint) } else { Err(JoinError::Token("it is incomplete")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(token: &str, server: &str) -> JoinRequest {
        JoinRequest {
            servers: vec![server.into()],
            token: Secret::new(token),
            node: "a".into(),
            namespace: "default".into(),
            labels: BTreeMap::new(),
            data_dir: tempfile::tempdir().unwrap().keep(),
            force: false,
        }
    }

    #[tokio::test]
    async fn a_malformed_token_is_refused_before_anything_is_sent() {
        for token in ["", "bwt_00", "bwj_00", "bwj_00.abc"] {
            let error = join(request(token, "https://127.0.0.1:1")).await.unwrap_err().to_string();
            assert!(error.contains("use the join token"), "{error}");
        }
        let error = join(request("bwj_0.a", "http://x")).await.unwrap_err().to_string();
        assert!(error.contains("does not begin with https://"), "{error}");
    }

    #[tokio::test]
    async fn a_directory_or_a_key_that_others_can_use_is_refused_before_the_token_is_spent() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::{PermissionsExt, chown};
        let token = format!("bwj_0.{}", "0".repeat(64));
        let asked = request(&token, "https://127.0.0.1:1");
        let (dir, key) = (asked.data_dir.clone(), asked.data_dir.join("node.key"));
        let refused = async |what: &str| {
            let error = join(JoinRequest { force: true, ..asked.clone() }).await.unwrap_err();
            assert!(matches!(error, JoinError::NotPrivate(_)) && error.to_string().contains(what), "{error}");
        };
        let mode = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode)).unwrap();
        mode(&dir, 0o777);
        refused("others than its owner can write it").await;
        assert!(!key.exists());
        mode(&dir, 0o700);
        std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
        mode(&key, 0o644);
        refused("others than its owner can read it").await;
        mode(&key, 0o600);
        // Only root may give something away.
        if rustix::process::geteuid().is_root() {
            for path in [&key, &dir] {
                chown(path, Some(65_534), None).unwrap();
                refused("what is in it cannot be trusted: use another directory").await;
                chown(path, Some(0), None).unwrap();
            }
        }
        assert!(matches!(join(asked.clone()).await.unwrap_err(), JoinError::Call { .. }));
    }
}
