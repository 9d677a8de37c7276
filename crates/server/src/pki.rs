//! The installation's certificate authority: one CA, one certificate per server, short-lived ones for nodes.
//!
//! Keys stay in the data directory with mode 0600 and are never sent. A node makes its own key and sends a signing request.

pub mod ensemble;
pub mod ensemble_keys;
mod error;
mod files;

pub use error::PkiError;
pub(crate) use files::write_private;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::{Span, Timestamp};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use ring::hmac;
use rustls::crypto::ring::Ticketer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use x509_parser::extensions::GeneralName;

use crate::secret;

/// Lifetime of the CA's certificate: ten years, since replacing it means that every node joins again.
const CA_LIFE: Span = Span::from_secs(10 * 365 * 86_400);

/// Lifetime of a server's certificate. A new one is made at every start; its key is never written to disk.
const SERVER_LIFE: Span = Span::from_secs(2 * 365 * 86_400);

/// Lifetime of a node's certificate. It is renewed at half of that; a node disconnected for longer must join again.
pub const NODE_LIFE: Span = Span::from_secs(72 * 3_600);

/// Certificates are valid from this long ago, for machines whose clocks are behind: most likely by the offset of their time
/// zone, when the hardware clock is read as local time.
const BACKDATE: Span = Span::from_secs(24 * 3_600);

/// Longest common name (RFC 5280, `ub-common-name`). The subject of a node with a longer name has none.
const MAX_COMMON_NAME_BYTES: usize = 64;

/// The installation's certificate authority, loaded.
#[derive(Debug)]
pub struct Pki {
    ca_pem: String,
    ca_der: CertificateDer<'static>,
    /// Since when the CA's certificate is valid.
    ca_since: Timestamp,
    issuer: Issuer<'static, KeyPair>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// What the keys of the authorities of ensembles are derived with.
    derivation: hmac::Key,
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
}

/// SHA-256 of a certificate (PEM), lower-case hex; none of what is no certificate.
pub(crate) fn fingerprint(pem: &str) -> Option<String> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok().map(|der| secret::hash(&der))
}

impl Pki {
    /// Loads the authority from `dir`, or creates it there, and issues the server a certificate for `names`.
    ///
    /// # Errors
    /// [`PkiError`] naming the file. An existing file that does not parse is never replaced.
    pub fn open(dir: &Path, names: &[String], now: Timestamp) -> Result<Self, PkiError> {
        let (ca_pem, ca_key) = files::pair(dir, "ca", || make_ca(now))?;
        let key = KeyPair::from_pem(&ca_key).map_err(|error| refuse("the CA's key", error))?;
        let derivation = hmac::Key::new(hmac::HMAC_SHA256, key.serialized_der());
        let issuer =
            Issuer::from_ca_cert_pem(&ca_pem, key).map_err(|error| refuse("the CA's certificate", error))?;
        let ca_der = CertificateDer::from_pem_slice(ca_pem.as_bytes())
            .map_err(|error| refuse("the CA's certificate", error))?;
        let ca_since = valid_since(&ca_der)?;
        let (pem, key) = make_server(&issuer, names, (now, ca_since))?;
        let leaf = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| refuse("the server's certificate", error))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| refuse("the server's key", error))?;
        Ok(Self { chain: vec![leaf, ca_der.clone()], ca_pem, ca_der, ca_since, issuer, key, derivation })
    }

    /// The CA's certificate (PEM), which clients trust.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// SHA-256 of the CA's certificate, lower-case hex, as in join tokens.
    #[must_use]
    pub fn ca_fingerprint(&self) -> String {
        secret::hash(&self.ca_der)
    }

    /// TLS settings of the listener: version 1.3 only; client certificates are optional, and verified with our CA.
    ///
    /// # Errors
    /// [`PkiError`] when certificate and key do not match.
    pub fn server_tls(&self) -> Result<ServerConfig, PkiError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca_der.clone()).map_err(|error| refuse("the CA's certificate", error))?;
        let provider = bellwether_api::client::tls::provider();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(|error| refuse("the CA's certificate", error))?;
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| refuse("TLS 1.3", error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(|error| refuse("the server's certificate", error))?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Sessions are resumed by tickets that only this server can decrypt: it keeps no state per client.
        tls.ticketer = Ticketer::new().map_err(|error| refuse("a key for session tickets", error))?;
        tls.send_tls13_tickets = 1;
        Ok(tls)
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
        let expires_at = now.max(self.ca_since).plus(NODE_LIFE);
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
        validity(&mut params, now.min(self.ca_since.plus(BACKDATE)), expires_at)?;
        request.params = params;
        let key_fingerprint = secret::hash(&request.public_key.subject_public_key_info());
        let certificate =
            request.signed_by(&self.issuer).map_err(|error| refuse("the certificate request", error))?;
        Ok(IssuedCertificate { pem: certificate.pem(), key_fingerprint, expires_at })
    }
}

/// The node that a certificate was issued to. The caller has verified that our CA issued it.
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
    })
}

fn make_ca(now: Timestamp) -> Result<(String, String), PkiError> {
    let key = KeyPair::generate().map_err(|error| refuse("a new CA key", error))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Bellwether CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    validity(&mut params, now, now.plus(CA_LIFE))?;
    let certificate: Certificate = params.self_signed(&key).map_err(|error| refuse("a new CA", error))?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn make_server(
    issuer: &Issuer<'static, KeyPair>,
    names: &[String],
    (now, ca_since): (Timestamp, Timestamp),
) -> Result<(String, String), PkiError> {
    let key = KeyPair::generate().map_err(|error| refuse("a new server key", error))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Bellwether server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    named_issuer(&mut params);
    for name in names {
        let san = match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => dns_name(name)?,
        };
        params.subject_alt_names.push(san);
    }
    validity(&mut params, now.min(ca_since.plus(BACKDATE)), now.max(ca_since).plus(SERVER_LIFE))?;
    let certificate =
        params.signed_by(&key, issuer).map_err(|error| refuse("a server certificate", error))?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// A certificate that says which key signed it, as strict verifiers want (RFC 5280, 4.2.1.1): Python does since 3.13.
fn named_issuer(params: &mut CertificateParams) {
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
}

fn dns_name(name: &str) -> Result<SanType, PkiError> {
    let name = name.try_into().map_err(|error| refuse(&format!("the name {name:?}"), error))?;
    Ok(SanType::DnsName(name))
}

/// Since when a certificate is valid. What it signs is valid since then, whatever the clock says: no clock is right that is before
/// it, and one that is years ahead must not issue what is valid in years only.
/// The end of the validity of a certificate, PEM.
///
/// # Errors
/// [`PkiError`] if it is no certificate.
pub fn expires(pem: &str) -> Result<Timestamp, PkiError> {
    let what = "the certificate";
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| refuse(what, error))?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).map_err(|error| refuse(what, error))?;
    let seconds = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

fn valid_since(der: &CertificateDer<'_>) -> Result<Timestamp, PkiError> {
    let what = "the CA's certificate";
    let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| refuse(what, error))?;
    let seconds = u64::try_from(parsed.validity().not_before.timestamp()).unwrap_or_default();
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

fn validity(params: &mut CertificateParams, now: Timestamp, until: Timestamp) -> Result<(), PkiError> {
    params.not_before = date(now.minus(BACKDATE))?;
    params.not_after = date(until)?;
    Ok(())
}

fn date(at: Timestamp) -> Result<time::OffsetDateTime, PkiError> {
    let secs = i64::try_from(at.as_millis() / 1_000).unwrap_or(i64::MAX);
    time::OffsetDateTime::from_unix_timestamp(secs).map_err(|error| refuse("the system clock", error))
}

fn refuse(what: &str, reason: impl std::fmt::Display) -> PkiError {
    PkiError::Certificate { what: what.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests;
