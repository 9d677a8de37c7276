//! Authorities of ensembles. The key of each is derived from that of the authority that the installation was initialised with, also while
//! another one is active, so that every server has it, nothing is stored, and what one ensemble trusts is worth nothing to another one. Members and clients have different ones: a client is no member.

use std::net::{IpAddr, Ipv4Addr};

use bellwether_core::words::name::{EnsembleName, Namespace};
use bellwether_core::words::time::{Span, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ED25519, SanType, SerialNumber,
};
use ring::hmac;
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::certificate::{BACKDATE, CA_LIFE, dns_name, named_issuer, refuse, validity};
use super::{Pki, PkiError};

/// Validity of a member's certificates. Its agent asks for new ones at half of that; without a control plane they last that long.
const MEMBER_LIFE: Span = Span::from_secs(365 * 86_400);

/// What comes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
const ED25519_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// An ensemble, as its authorities know it.
#[derive(Debug, Clone, Copy)]
pub struct EnsembleId<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// Its name.
    pub name: &'a EnsembleName,
    /// Its identity: another ensemble of the name has other authorities.
    pub identity: &'a str,
}

/// What an authority of an ensemble vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorityUse {
    /// That somebody is a member, to its other members.
    Peers,
    /// That somebody is a member, to clients, or a client, to members.
    Clients,
}

/// A certificate that an authority of an ensemble issued.
#[derive(Debug, Clone)]
pub struct IssuedForEnsemble {
    /// The certificate, PEM.
    pub pem: String,
    /// The authority's certificate, PEM.
    pub ca_pem: String,
    /// End of its validity.
    pub expires_at: Timestamp,
}

/// An authority of an ensemble.
struct EnsembleAuthority {
    ca_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Pki {
    /// Issues the certificate of a member at these addresses.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] when the request does not parse.
    pub fn issue_to_member(
        &self,
        (of, use_): (EnsembleId<'_>, AuthorityUse),
        addresses: &[IpAddr],
        request_pem: &str,
        now: Timestamp,
    ) -> Result<IssuedForEnsemble, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(of, "member");
        let mut known: Vec<IpAddr> = addresses.to_vec();
        // Whoever listens at an address of the machine itself is called from another one of these.
        if addresses.iter().any(IpAddr::is_loopback) {
            known.push(Ipv4Addr::LOCALHOST.into());
        }
        known.sort_unstable();
        known.dedup();
        params.subject_alt_names.extend(known.into_iter().map(SanType::IpAddress));
        let service = format!("{}.service.bw.internal", of.name);
        for name in [of.name.to_string(), service.clone(), format!("*.{service}")] {
            params.subject_alt_names.push(dns_name(&name)?);
        }
        // A member calls others, and its own JSON gateway calls it, with the same certificate.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign((of, use_), params, request_pem, (now, MEMBER_LIFE))
    }

    /// Issues a certificate to a client, which is named in it.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] when the request does not parse.
    pub fn issue_to_client(
        &self,
        of: EnsembleId<'_>,
        request_pem: &str,
        (now, life): (Timestamp, Span),
    ) -> Result<IssuedForEnsemble, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(of, "client");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign((of, AuthorityUse::Clients), params, request_pem, (now, life))
    }

    fn sign(
        &self,
        (of, use_): (EnsembleId<'_>, AuthorityUse),
        mut params: CertificateParams,
        request_pem: &str,
        (now, life): (Timestamp, Span),
    ) -> Result<IssuedForEnsemble, PkiError> {
        let what = "the certificate request";
        let mut request =
            CertificateSigningRequestParams::from_pem(request_pem).map_err(|error| refuse(what, error))?;
        let authority = self.authority(of, use_)?;
        let end = self.founding.since.plus(CA_LIFE);
        let expires_at = now.max(self.founding.since).plus(life).min(end);
        named_issuer(&mut params);
        validity(&mut params, now.min(self.founding.since.plus(BACKDATE)), expires_at)?;
        request.params = params;
        let signed = request.signed_by(&authority.issuer).map_err(|error| refuse(what, error))?;
        Ok(IssuedForEnsemble { pem: signed.pem(), ca_pem: authority.ca_pem, expires_at })
    }

    /// An authority of an ensemble: the same on every server, each time.
    fn authority(&self, of: EnsembleId<'_>, use_: AuthorityUse) -> Result<EnsembleAuthority, PkiError> {
        let what = "the key of an ensemble's authority";
        let use_ = match use_ {
            AuthorityUse::Peers => "peers",
            AuthorityUse::Clients => "clients",
        };
        let label = format!("bellwether ensemble authority 1\n{use_}\n{}\n{}", of.namespace, of.identity);
        let seed = hmac::sign(&self.derivation, label.as_bytes());
        let pkcs8 = [&ED25519_PREFIX[..], seed.as_ref()].concat();
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(pkcs8), &PKCS_ED25519)
            .map_err(|error| refuse(what, error))?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(of, use_);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.serial_number = Some(SerialNumber::from(1_u64));
        validity(&mut params, self.founding.since, self.founding.since.plus(CA_LIFE))?;
        let certificate = params.self_signed(&key).map_err(|error| refuse(what, error))?;
        let ca_pem = certificate.pem();
        let issuer = Issuer::from_ca_cert_pem(&ca_pem, key).map_err(|error| refuse(what, error))?;
        Ok(EnsembleAuthority { ca_pem, issuer })
    }
}

/// The subject of a certificate of an ensemble. It has no common name, which etcd would take for the name of a user.
fn subject(of: EnsembleId<'_>, unit: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, format!("ensemble {}/{}", of.namespace, of.identity));
    name.push(DnType::OrganizationalUnitName, unit);
    name
}
