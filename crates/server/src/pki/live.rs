//! The authorities that this server uses now: whom it trusts, with which it signs, and what it presents to clients.

use std::sync::Arc;

use bellwether_api::v1::authorities::TrustBundle;
use bellwether_core::words::time::Timestamp;
use rustls::crypto::ring::Ticketer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::authority::Authority;
use super::certificate::{der, refuse};
use super::error::PkiError;
use crate::secret;

/// The authorities that this server uses now.
#[derive(Debug)]
pub struct LiveAuthorities {
    /// The version of the record that they are of; 0 without one.
    pub(super) version: u64,
    pub(super) active: Arc<Authority>,
    trusted: Vec<TrustedAuthority>,
    /// Their certificates, PEM, the active one first.
    pub(super) bundle: String,
    tls: Arc<ServerConfig>,
}

/// An authority whose certificates are accepted.
#[derive(Debug)]
struct TrustedAuthority {
    fingerprint: Arc<str>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl LiveAuthorities {
    /// These authorities: the active one, and the certificates (PEM) of the others that are trusted.
    pub(super) fn new(
        version: u64,
        active: Arc<Authority>,
        others: &[String],
        (names, now): (&[String], Timestamp),
    ) -> Result<Self, PkiError> {
        let what = "the CA's certificate";
        let mut ders = vec![active.der.clone()];
        for other in others {
            ders.push(der(what, other)?);
        }
        let trusted = |der: &CertificateDer<'static>| {
            let fingerprint = secret::hash(der).into();
            Ok(TrustedAuthority { fingerprint, verifier: verifier(std::slice::from_ref(der))? })
        };
        let trusted = ders.iter().map(trusted).collect::<Result<_, PkiError>>()?;
        // Without a record it is the file of the founding authority as it is.
        let bundle = if version == 0 {
            active.pem.clone()
        } else {
            let others = others.iter().map(String::as_str);
            let all: Vec<&str> = [active.pem.as_str()].into_iter().chain(others).collect();
            TrustBundle::of(version, &all).certificates
        };
        let tls = Arc::new(server_tls(&active, &ders, (names, now))?);
        Ok(Self { version, active, trusted, bundle, tls })
    }

    /// The version of the record that they are of; 0 without one.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Certificates of those that are trusted, PEM, the active one first.
    #[must_use]
    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    /// SHA-256 of the certificate of the active authority, lower-case hex.
    #[must_use]
    pub fn active(&self) -> &str {
        &self.active.fingerprint
    }

    /// TLS settings of the listener: version 1.3 only; client certificates are optional, and verified.
    #[must_use]
    pub fn tls(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.tls)
    }

    /// Whether certificates of the authority with this fingerprint are accepted.
    #[must_use]
    pub fn trusts(&self, fingerprint: &str) -> bool {
        self.trusted.iter().any(|authority| *authority.fingerprint == *fingerprint)
    }

    /// The authority that issued a certificate which was accepted. Found by its signature: what a certificate says of its issuer is not
    /// signed by the one that it names.
    pub(crate) fn issuer_of(&self, certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
        let mut authorities = self.trusted.iter();
        if let (Some(only), None) = (authorities.next(), authorities.next()) {
            return Some(Arc::clone(&only.fingerprint));
        }
        let now = UnixTime::now();
        let issued = |authority: &&TrustedAuthority| {
            authority.verifier.verify_client_cert(certificate, &[], now).is_ok()
        };
        self.trusted.iter().find(issued).map(|authority| Arc::clone(&authority.fingerprint))
    }
}

fn verifier(authorities: &[CertificateDer<'static>]) -> Result<Arc<dyn ClientCertVerifier>, PkiError> {
    let what = "the CA's certificate";
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).map_err(|error| refuse(what, error))?;
    }
    let provider = bellwether_api::client::tls::provider();
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| refuse(what, error))
}

fn server_tls(
    active: &Authority,
    trusted: &[CertificateDer<'static>],
    (names, now): (&[String], Timestamp),
) -> Result<ServerConfig, PkiError> {
    let (pem, key) = active.make_server(names, now)?;
    let leaf = der("the server's certificate", &pem)?;
    let key =
        PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| refuse("the server's key", error))?;
    let mut tls = ServerConfig::builder_with_provider(bellwether_api::client::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| refuse("TLS 1.3", error))?
        .with_client_cert_verifier(verifier(trusted)?)
        .with_single_cert(vec![leaf, active.der.clone()], key)
        .map_err(|error| refuse("the server's certificate", error))?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Sessions are resumed by tickets that only this server can decrypt, and only while the authorities are these: it keeps no state per
    // client, and who was trusted once is not for that.
    tls.ticketer = Ticketer::new().map_err(|error| refuse("a key for session tickets", error))?;
    tls.send_tls13_tickets = 1;
    Ok(tls)
}
