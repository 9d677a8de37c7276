//! The installation's certificate authorities: the one that is active signs one certificate per server, and short-lived ones for nodes.
//!
//! Keys stay in the data directory with mode 0600, or are encrypted in the store. A node makes its own key and sends a signing request.

mod authority;
mod certificate;
pub mod ensemble;
pub mod ensemble_keys;
mod error;
mod files;
mod live;

pub use certificate::expires;
pub use error::PkiError;
pub(crate) use files::write_private;
pub use live::LiveAuthorities;

use std::path::Path;
use std::sync::Arc;

use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::{Span, Timestamp};
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    KeyPair, PublicKeyData,
};
use ring::hmac;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::watch;
use x509_parser::extensions::GeneralName;

use self::authority::{Authority, make_founding, make_next};
use self::certificate::{BACKDATE, dns_name, named_issuer, refuse, validity};
use crate::secret;

/// Lifetime of a node's certificate. It is renewed at half of that; a node disconnected for longer must join again.
pub const NODE_LIFE: Span = Span::from_secs(72 * 3_600);

/// Longest common name (RFC 5280, `ub-common-name`). The subject of a node with a longer name has none.
const MAX_COMMON_NAME_BYTES: usize = 64;

/// The installation's certificate authorities, loaded.
#[derive(Debug)]
pub struct Pki {
    /// Names in the server's certificate.
    names: Vec<String>,
    /// The authority that the installation was initialised with, and by which it is known.
    founding: Arc<Authority>,
    /// What the keys of the authorities of ensembles are derived with.
    derivation: hmac::Key,
    /// Those in use.
    live: watch::Sender<Arc<LiveAuthorities>>,
}

/// The certificate and the key of an authority that is trusted.
#[derive(Clone)]
pub struct AuthorityPair {
    /// The certificate, PEM.
    pub certificate: String,
    /// The key, PEM; `None` if it is in the data directory.
    pub key: Option<String>,
}

/// A certificate issued to a node.
#[derive(Debug, Clone)]
pub struct IssuedCertificate {
    /// The certificate, PEM.
    pub pem: String,
    /// SHA-256 of the public key, lower-case hex.
    pub key_fingerprint: String,
    /// End of its validity.
    pub expires_at: Timestamp,
    /// The authority that issued it, SHA-256 of its certificate in lower-case hex.
    pub issuer: String,
    /// The version of the authorities, and their certificates (PEM): whom the node is to trust.
    pub trusted: (u64, String),
}

/// The node that a verified client certificate was issued to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateIdentity {
    /// The namespace in the certificate.
    pub namespace: Namespace,
    /// The node in the certificate.
    pub node: NodeName,
    /// SHA-256 of the public key, lower-case hex.
    pub key_fingerprint: String,
    /// End of the certificate. A connection may outlive it, and so may a session that is resumed.
    pub expires_at: Timestamp,
    /// The authority that issued it, SHA-256 of its certificate in lower-case hex; `None` if that was verified by other means.
    pub issuer: Option<Arc<str>>,
}

/// SHA-256 of a certificate (PEM), lower-case hex; none of what is no certificate.
pub(crate) fn fingerprint(pem: &str) -> Option<String> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok().map(|der| secret::hash(&der))
}

impl Pki {
    /// Loads the authority from `dir`, or creates it there, and issues the server a certificate for `names`. It is the active one until others
    /// are [taken in](Self::take_in).
    ///
    /// # Errors
    /// [`PkiError`] naming the file. An existing file that does not parse is never replaced.
    pub fn open(dir: &Path, names: &[String], now: Timestamp) -> Result<Self, PkiError> {
        let (ca_pem, ca_key) = files::pair(dir, "ca", || make_founding(now))?;
        let key = KeyPair::from_pem(&ca_key).map_err(|error| refuse("the CA's key", error))?;
        let derivation = hmac::Key::new(hmac::HMAC_SHA256, key.serialized_der());
        let founding = Arc::new(Authority::load(&ca_pem, &ca_key)?);
        let live = LiveAuthorities::new(0, Arc::clone(&founding), &[], (names, now))?;
        Ok(Self { names: names.to_vec(), founding, derivation, live: watch::Sender::new(Arc::new(live)) })
    }

    /// Uses these authorities from now on, the active one first, which signs. Certificates of no others are accepted.
    ///
    /// # Errors
    /// [`PkiError`] when the active one cannot be used; those before are used then.
    pub fn take_in(&self, version: u64, trusted: &[AuthorityPair], now: Timestamp) -> Result<(), PkiError> {
        let Some((active, others)) = trusted.split_first() else {
            return Err(refuse("the authorities", "none of them is active"));
        };
        let others: Vec<String> = others.iter().map(|other| other.certificate.clone()).collect();
        let active = match &active.key {
            None if fingerprint(&active.certificate).as_deref() == Some(&self.founding.fingerprint) => {
                Arc::clone(&self.founding)
            }
            None => return Err(refuse("the CA's key", "it is not in the record")),
            Some(key) => Arc::new(Authority::load(&active.certificate, key)?),
        };
        let live = LiveAuthorities::new(version, active, &others, (&self.names, now))?;
        self.live.send_replace(Arc::new(live));
        Ok(())
    }

    /// Makes another authority: certificate and key.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn make_next(now: Timestamp) -> Result<(String, String), PkiError> {
        make_next(now)
    }

    /// The authorities in use.
    #[must_use]
    pub fn live(&self) -> Arc<LiveAuthorities> {
        Arc::clone(&self.live.borrow())
    }

    /// The authorities in use, and those that come into use.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Arc<LiveAuthorities>> {
        self.live.subscribe()
    }

    /// The certificate (PEM) of the authority that the installation was initialised with.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.founding.pem
    }

    /// SHA-256 of that certificate, lower-case hex, by which the installation is known.
    #[must_use]
    pub fn ca_fingerprint(&self) -> String {
        self.founding.fingerprint.clone()
    }

    /// Issues a client certificate to a node, whose name is the subject's alternative name. Everything in the request but the key is ignored.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] when the request does not parse.
    pub fn issue(
        &self,
        namespace: &Namespace,
        node: &NodeName,
        request_pem: &str,
        now: Timestamp,
    ) -> Result<IssuedCertificate, PkiError> {
        let mut request = CertificateSigningRequestParams::from_pem(request_pem)
            .map_err(|error| refuse("the certificate request", error))?;
        let live = self.live();
        let authority = &live.active;
        let expires_at = now.max(authority.since).plus(NODE_LIFE);
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, namespace.as_str());
        if node.as_str().len() <= MAX_COMMON_NAME_BYTES {
            name.push(DnType::CommonName, node.as_str());
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.subject_alt_names.push(dns_name(node.as_str())?);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        named_issuer(&mut params);
        validity(&mut params, now.min(authority.since.plus(BACKDATE)), expires_at)?;
        request.params = params;
        let key_fingerprint = secret::hash(&request.public_key.subject_public_key_info());
        let certificate =
            request.signed_by(&authority.issuer).map_err(|error| refuse("the certificate request", error))?;
        Ok(IssuedCertificate {
            pem: certificate.pem(),
            key_fingerprint,
            expires_at,
            issuer: authority.fingerprint.clone(),
            trusted: (live.version, live.bundle.clone()),
        })
    }
}

/// The node that a certificate was issued to. The caller has verified that an authority of ours issued it, and adds which.
///
/// # Errors
/// [`PkiError::Certificate`] when it was not issued to a node.
pub fn bearer(der: &CertificateDer<'_>) -> Result<CertificateIdentity, PkiError> {
    let what = "the client certificate";
    let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| refuse(what, error))?;
    let subject = parsed.subject();
    let namespace = subject.iter_organization().next().and_then(|part| part.as_str().ok());
    let names = parsed.subject_alternative_name().map_err(|error| refuse(what, error))?;
    let node = names.and_then(|names| {
        let dns = |name| if let &GeneralName::DNSName(dns) = name { Some(dns) } else { None };
        names.value.general_names.iter().find_map(dns)
    });
    let (Some(namespace), Some(node)) = (namespace, node) else {
        return Err(refuse(what, "it does not name a node"));
    };
    Ok(CertificateIdentity {
        namespace: Namespace::parse(namespace).map_err(|error| refuse(what, error))?,
        node: NodeName::parse(node).map_err(|error| refuse(what, error))?,
        key_fingerprint: secret::hash(parsed.public_key().raw),
        expires_at: Timestamp::from_millis(
            u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default().saturating_mul(1_000),
        ),
        issuer: None,
    })
}

#[cfg(test)]
mod tests;
