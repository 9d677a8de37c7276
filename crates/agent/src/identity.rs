//! The identity of this node to the control plane: key, certificate, CA, and the names it joined under.
//!
//! Four files in the data directory, mode 0600. `identity.toml` is written last: where it exists, the others do.

use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::client::Identity as ClientIdentity;
use bellwether_api::client::secret::Secret;
use bellwether_api::v1::authorities::TrustBundle;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_rt::own_files::OwnFiles;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::link::server_list;

const FILE: &str = "identity.toml";
const KEY: &str = "node.key";

/// The key that the certificate is renewed for: it becomes the key once the certificate for it is stored.
const NEXT_KEY: &str = "node.key.next";

/// The key of a join of a machine that has joined before, until that has ended: whoever copied the one before has nothing of this one.
const JOIN_KEY: &str = "node.key.join";

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

/// What nobody but the user of an agent may write in its data directory, and what nobody else may read.
#[must_use]
pub fn own_files(data_dir: &Path) -> OwnFiles {
    let path = |name: &str| data_dir.join(name);
    OwnFiles {
        data_dir: data_dir.to_owned(),
        unwritable: ["ledger", FILE, CERTIFICATE, CA, server_list::FILE].map(path).into(),
        secret: [KEY, NEXT_KEY, JOIN_KEY].map(path).into(),
    }
}

/// Why the identity cannot be used. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read or written.
    #[error("{action} {path}: {source}")]
    File {
        /// What failed: "read", "write" or "remove".
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
        let (certificate, key) = (present(&data_dir.join(CERTIFICATE))?, present(&data_dir.join(KEY))?);
        let key = match belong_together(data_dir, &certificate, &key) {
            Ok(()) => key,
            // The agent was ended before the next key took its place.
            Err(error) => renewed_key(data_dir, &certificate).ok_or(error)?,
        };
        Ok(Some(Self {
            node: NodeName::parse(&file.node).map_err(|error| damaged(error.to_string()))?,
            namespace: Namespace::parse(&file.namespace).map_err(|error| damaged(error.to_string()))?,
            server: file.server,
            issued_at: Timestamp::from_millis(file.issued_at_ms),
            expires_at: Timestamp::from_millis(file.expires_at_ms),
            certificate,
            ca: present(&data_dir.join(CA))?,
            key: Secret::new(key),
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

    /// Writes the identity after a renewal for the next key. Ended anywhere, there are a certificate and the key to it.
    pub(crate) fn store_renewed(&self, data_dir: &Path) -> Result<(), IdentityError> {
        let next = data_dir.join(NEXT_KEY);
        write(&next, self.key.expose())?;
        write(&data_dir.join(CERTIFICATE), &self.certificate)?;
        self.store(data_dir)?;
        remove(next)
    }

    /// Writes the identity after a join. Ended anywhere, there are a certificate and the key to it, as after a renewal.
    pub(crate) fn store_joined(&self, data_dir: &Path) -> Result<(), IdentityError> {
        self.store_renewed(data_dir)?;
        remove(data_dir.join(JOIN_KEY))
    }

    /// The version of the authorities that it trusts; 0 if it knows of none.
    pub(crate) fn trusted_version(&self) -> u64 {
        TrustBundle::version_in(&self.ca)
    }

    /// The identity with these authorities, unless they are older than its own.
    pub(crate) fn trusting(self, ca: String) -> Self {
        if TrustBundle::version_in(&ca) < self.trusted_version() { self } else { Self { ca, ..self } }
    }

    /// Writes whom it trusts, as a whole.
    pub(crate) fn store_trust(&self, data_dir: &Path) -> Result<(), IdentityError> {
        write(&data_dir.join(CA), &self.ca)
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

/// The key of an earlier, interrupted join: with the same key, a repeated join is the same request. That of a machine that has joined is no such one.
pub(crate) fn kept_join_key(data_dir: &Path, is_forced: bool) -> Result<Option<Secret>, IdentityError> {
    Ok(read(&join_key(data_dir, is_forced))?.map(Secret::new))
}

/// The file with the key of a join that has not ended.
fn join_key(data_dir: &Path, is_forced: bool) -> PathBuf {
    let has_joined = || [FILE, CERTIFICATE].iter().any(|file| data_dir.join(file).exists());
    data_dir.join(if is_forced && has_joined() { JOIN_KEY } else { KEY })
}

fn remove(path: PathBuf) -> Result<(), IdentityError> {
    disk::remove(&path).map_err(|source| IdentityError::File { action: "remove", path, source })
}

/// The next key, if a renewal was begun with it and not ended: with the same key, a repeated renewal is the same request.
pub(crate) fn kept_next_key(data_dir: &Path) -> Result<Option<Secret>, IdentityError> {
    Ok(read(&data_dir.join(NEXT_KEY))?.map(Secret::new))
}

/// Stores the next key before it is used.
pub(crate) fn keep_next_key(data_dir: &Path, key: &Secret) -> Result<(), IdentityError> {
    write(&data_dir.join(NEXT_KEY), key.expose())
}

/// The next key, if the certificate is for it.
fn renewed_key(data_dir: &Path, certificate: &str) -> Option<String> {
    let next = read(&data_dir.join(NEXT_KEY)).ok().flatten()?;
    belong_together(data_dir, certificate, &next).is_ok().then_some(next)
}

/// Stores the key of a join before it is used.
pub(crate) fn keep_join_key(data_dir: &Path, is_forced: bool, key: &Secret) -> Result<(), IdentityError> {
    write(&join_key(data_dir, is_forced), key.expose())
}

/// Refuses a key or a certificate that cannot be read, and a key that is not the certificate's: no server could be connected to with them.
fn belong_together(data_dir: &Path, certificate: &str, key: &str) -> Result<(), IdentityError> {
    let damaged = |file: &str, reason: String| IdentityError::Damaged { path: data_dir.join(file), reason };
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|error| damaged(KEY, format!("it has no key in PEM: {error}")))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
    let chain =
        chain.map_err(|error| damaged(CERTIFICATE, format!("it has no certificate in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(damaged(CERTIFICATE, "it has no certificate in PEM".to_owned()));
    }
    let provider = rustls::crypto::ring::default_provider();
    match CertifiedKey::from_der(chain, key, &provider) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(damaged(KEY, format!("it is not the key of the certificate in {CERTIFICATE}")))
        }
        Err(error) => Err(damaged(KEY, error.to_string())),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(dir: &Path) -> Identity {
        let made = rcgen::generate_simple_self_signed(["web-1".to_owned()]).unwrap();
        let identity = Identity {
            node: NodeName::parse("web-1").unwrap(),
            namespace: Namespace::parse("default").unwrap(),
            server: "https://cp:7420".to_owned(),
            issued_at: Timestamp::from_millis(1),
            expires_at: Timestamp::from_millis(2),
            certificate: made.cert.pem(),
            ca: made.cert.pem(),
            key: Secret::new(made.signing_key.serialize_pem()),
            is_logical: false,
        };
        identity.store(dir).unwrap();
        identity
    }

    #[test]
    fn a_damaged_key_and_one_of_another_certificate_are_refused_by_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let identity = identity(dir.path());
        assert!(Identity::load(dir.path()).unwrap().is_some());
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let key = identity.key.expose();
        let cut: String = key.chars().take(80).collect();
        let flipped = key.replacen("MI", "MA", 1);
        for (text, reason) in [
            ("", "it has no key in PEM"),
            ("no key", "it has no key in PEM"),
            (&cut, "node.key"),
            (&flipped, "node.key"),
            (&other, "it is not the key of the certificate in node.pem"),
        ] {
            std::fs::write(dir.path().join(KEY), text).unwrap();
            let refusal = Identity::load(dir.path()).unwrap_err().to_string();
            assert!(refusal.contains(reason) && refusal.contains("node.key"), "{text}: {refusal}");
            assert!(refusal.contains("join again"), "{refusal}");
        }
        write(&dir.path().join(KEY), key).unwrap();
        std::fs::write(dir.path().join(CERTIFICATE), "").unwrap();
        let refusal = Identity::load(dir.path()).unwrap_err().to_string();
        assert!(refusal.contains("node.pem: it has no certificate in PEM"), "{refusal}");
    }

    #[test]
    fn a_renewal_that_ends_anywhere_leaves_a_certificate_and_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let old = identity(dir.path());
        let fresh = tempfile::tempdir().unwrap();
        let new = identity(fresh.path());
        let loaded = || {
            let identity = Identity::load(dir.path()).unwrap().unwrap();
            (identity.certificate, identity.key.expose().to_owned())
        };
        let (of_old, of_new) = (
            (old.certificate.clone(), old.key.expose().to_owned()),
            (new.certificate.clone(), new.key.expose().to_owned()),
        );
        keep_next_key(dir.path(), &new.key).unwrap();
        assert_eq!(loaded(), of_old);
        write(&path(CERTIFICATE), &new.certificate).unwrap();
        assert_eq!(loaded(), of_new);
        // The agent that finds it there goes on with it.
        new.store_renewed(dir.path()).unwrap();
        assert_eq!(loaded(), of_new);
        assert!(kept_next_key(dir.path()).unwrap().is_none());
    }
}
