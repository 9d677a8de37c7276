//! The identity of this node to the control plane: key, certificate, CA, and the names it joined under.
//!
//! Four files in the data directory, mode 0600. `identity.toml` is written last: where it exists, the others do.

use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::client::Identity as ClientIdentity;
use bellwether_api::client::secret::Secret;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::disk;

const FILE: &str = "identity.toml";
const KEY: &str = "node.key";
const CERTIFICATE: &str = "node.pem";
const CA: &str = "ca.pem";

/// The identity of this node.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) node: NodeName,
    pub(crate) namespace: Namespace,
    /// The server at which it joined.
    pub(crate) server: String,
    /// Lifetime of the certificate, wall clock time; `issued_at` is by this node's clock.
    pub(crate) issued_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) certificate: String,
    pub(crate) ca: String,
    pub(crate) key: Secret,
    /// Whether `node` is a logical one, for which the node of the certificate acts.
    pub(crate) is_logical: bool,
}

/// `identity.toml`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentityFile {
    schema: u32,
    node: String,
    namespace: String,
    server: String,
    issued_at_ms: u64,
    expires_at_ms: u64,
}

/// Why the identity cannot be used. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read or written.
    #[error("{action} {path}: {source}")]
    File {
        /// What failed: "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The content of a file is not valid.
    #[error("use {path}: {reason}; if it cannot be restored, remove it and join again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Identity {
    /// Reads the identity; `None` if this node has never joined.
    pub(crate) fn load(data_dir: &Path) -> Result<Option<Self>, IdentityError> {
        let path = data_dir.join(FILE);
        let Some(text) = read(&path)? else { return Ok(None) };
        let damaged = |reason: String| IdentityError::Damaged { path: path.clone(), reason };
        let file: IdentityFile = toml::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if file.schema != 1 {
            return Err(damaged(format!("schema {} is newer than this agent", file.schema)));
        }
        Ok(Some(Self {
            node: NodeName::parse(&file.node).map_err(|error| damaged(error.to_string()))?,
            namespace: Namespace::parse(&file.namespace).map_err(|error| damaged(error.to_string()))?,
            server: file.server,
            issued_at: Timestamp::from_millis(file.issued_at_ms),
            expires_at: Timestamp::from_millis(file.expires_at_ms),
            certificate: present(&data_dir.join(CERTIFICATE))?,
            ca: present(&data_dir.join(CA))?,
            key: Secret::new(present(&data_dir.join(KEY))?),
            is_logical: false,
        }))
    }

    /// Writes the identity; each file is replaced as a whole.
    pub(crate) fn store(&self, data_dir: &Path) -> Result<(), IdentityError> {
        let file = IdentityFile {
            schema: 1,
            node: self.node.to_string(),
            namespace: self.namespace.to_string(),
            server: self.server.clone(),
            issued_at_ms: self.issued_at.as_millis(),
            expires_at_ms: self.expires_at.as_millis(),
        };
        let last = toml::to_string(&file).map_err(|error| IdentityError::Damaged {
            path: data_dir.join(FILE),
            reason: error.to_string(),
        })?;
        write(&data_dir.join(KEY), self.key.expose())?;
        write(&data_dir.join(CERTIFICATE), &self.certificate)?;
        write(&data_dir.join(CA), &self.ca)?;
        write(&data_dir.join(FILE), &last)
    }

    /// The identity with which this node acts for a logical one.
    pub(crate) fn acting_as(&self, logical: &NodeName) -> Self {
        Self { node: logical.clone(), is_logical: true, ..self.clone() }
    }

    /// The identity as the API client takes it.
    pub(crate) fn for_client(&self) -> ClientIdentity {
        ClientIdentity::Node { certificate: self.certificate.clone(), key: self.key.clone() }
    }
}

/// The certificate of a node, and its key's file, to be looked at.
#[derive(Debug, Clone)]
pub struct NodeCertificate {
    /// Since when it is valid, by this node's clock.
    pub issued: Timestamp,
    /// The end of its validity.
    pub expires: Timestamp,
    /// The authority's certificate, PEM.
    pub ca: String,
    /// The file with the key.
    pub key: PathBuf,
}

/// The certificate in a data directory; `None` if the node has not joined.
///
/// # Errors
/// [`IdentityError`].
pub fn certificate(data_dir: &Path) -> Result<Option<NodeCertificate>, IdentityError> {
    let identity = Identity::load(data_dir)?;
    Ok(identity.map(|Identity { issued_at, expires_at, ca, .. }| NodeCertificate {
        issued: issued_at,
        expires: expires_at,
        ca,
        key: data_dir.join(KEY),
    }))
}

/// The key of an earlier, interrupted join: with the same key, a repeated join is the same request.
pub(crate) fn kept_key(data_dir: &Path) -> Result<Option<Secret>, IdentityError> {
    Ok(read(&data_dir.join(KEY))?.map(Secret::new))
}

/// Stores a key before it is used.
pub(crate) fn keep_key(data_dir: &Path, key: &Secret) -> Result<(), IdentityError> {
    write(&data_dir.join(KEY), key.expose())
}

fn read(path: &Path) -> Result<Option<String>, IdentityError> {
    disk::read(path).map_err(|source| IdentityError::File { action: "read", path: path.to_owned(), source })
}

fn present(path: &Path) -> Result<String, IdentityError> {
    let missing = || IdentityError::Damaged { path: path.to_owned(), reason: "missing".to_owned() };
    read(path)?.ok_or_else(missing)
}

fn write(path: &Path, text: &str) -> Result<(), IdentityError> {
    disk::replace(path, text).map_err(|source| IdentityError::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}
