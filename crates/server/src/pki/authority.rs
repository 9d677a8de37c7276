//! One certificate authority with its key: made, loaded, and what it signs for servers.

use std::net::IpAddr;

use bellwether_core::words::time::{Span, Timestamp};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use rustls::pki_types::CertificateDer;

use super::certificate::{BACKDATE, CA_LIFE, der, dns_name, named_issuer, refuse, valid_since, validity};
use super::error::PkiError;
use crate::secret;

/// Lifetime of a server's certificate. A new one is made at every start; its key is never written to disk.
const SERVER_LIFE: Span = Span::from_secs(2 * 365 * 86_400);

/// Name of the authority that an installation is initialised with; others have digits of their key's hash after it, so that software which
/// looks for an issuer by its name finds the right one.
const NAME: &str = "Bellwether CA";

/// Digits of the key's hash in a name.
const NAME_DIGITS: usize = 12;

/// A certificate authority with its key.
#[derive(Debug)]
pub(super) struct Authority {
    pub(super) pem: String,
    pub(super) der: CertificateDer<'static>,
    /// SHA-256 of the certificate, lower-case hex.
    pub(super) fingerprint: String,
    /// Since when the certificate is valid.
    pub(super) since: Timestamp,
    pub(super) issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn load(pem: &str, key: &str) -> Result<Self, PkiError> {
        let what = "the CA's certificate";
        let key = KeyPair::from_pem(key).map_err(|error| refuse("the CA's key", error))?;
        let issuer = Issuer::from_ca_cert_pem(pem, key).map_err(|error| refuse(what, error))?;
        let der = der(what, pem)?;
        let (since, fingerprint) = (valid_since(&der)?, secret::hash(&der));
        Ok(Self { pem: pem.to_owned(), der, fingerprint, since, issuer })
    }

    /// A certificate and its key (PEM) of a server with these names.
    pub(super) fn make_server(&self, names: &[String], now: Timestamp) -> Result<(String, String), PkiError> {
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
        let since = now.min(self.since.plus(BACKDATE));
        validity(&mut params, since, now.max(self.since).plus(SERVER_LIFE))?;
        let certificate =
            params.signed_by(&key, &self.issuer).map_err(|error| refuse("a server certificate", error))?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

/// The certificate and the key (PEM) of the authority that an installation is initialised with.
pub(super) fn make_founding(now: Timestamp) -> Result<(String, String), PkiError> {
    let key = KeyPair::generate().map_err(|error| refuse("a new CA key", error))?;
    make(NAME.to_owned(), &key, now)
}

/// The certificate and the key (PEM) of another authority.
pub(super) fn make_next(now: Timestamp) -> Result<(String, String), PkiError> {
    let key = KeyPair::generate().map_err(|error| refuse("a new CA key", error))?;
    let digits: String = secret::hash(&key.subject_public_key_info()).chars().take(NAME_DIGITS).collect();
    make(format!("{NAME} {digits}"), &key, now)
}

fn make(name: String, key: &KeyPair, now: Timestamp) -> Result<(String, String), PkiError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    validity(&mut params, now, now.plus(CA_LIFE))?;
    let certificate: Certificate = params.self_signed(key).map_err(|error| refuse("a new CA", error))?;
    Ok((certificate.pem(), key.serialize_pem()))
}
