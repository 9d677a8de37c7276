//! What all certificates have in common: names, validity, and how they are refused.

use bellwether_core::words::time::{Span, Timestamp};
use rcgen::{CertificateParams, KeyUsagePurpose, SanType};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::error::PkiError;

/// Lifetime of a CA's certificate: ten years.
pub(super) const CA_LIFE: Span = Span::from_secs(10 * 365 * 86_400);

/// Certificates are valid from this long ago, for machines whose clocks are behind: most likely by the offset of their time
/// zone, when the hardware clock is read as local time.
pub(super) const BACKDATE: Span = Span::from_secs(24 * 3_600);

/// A certificate that says which key signed it, as strict verifiers want (RFC 5280, 4.2.1.1): Python does since 3.13.
pub(super) fn named_issuer(params: &mut CertificateParams) {
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
}

pub(super) fn dns_name(name: &str) -> Result<SanType, PkiError> {
    let name = name.try_into().map_err(|error| refuse(&format!("the name {name:?}"), error))?;
    Ok(SanType::DnsName(name))
}

/// A certificate in PEM, as DER.
pub(super) fn der(what: &str, pem: &str) -> Result<CertificateDer<'static>, PkiError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| refuse(what, error))
}

/// The end of the validity of a certificate, PEM.
///
/// # Errors
/// [`PkiError`] if it is no certificate.
pub fn expires(pem: &str) -> Result<Timestamp, PkiError> {
    let what = "the certificate";
    let der = der(what, pem)?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).map_err(|error| refuse(what, error))?;
    let seconds = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

/// Since when a certificate is valid. What it signs is valid since then, whatever the clock says: no clock is right that is before
/// it, and one that is years ahead must not issue what is valid in years only.
pub(super) fn valid_since(der: &CertificateDer<'_>) -> Result<Timestamp, PkiError> {
    let what = "the CA's certificate";
    let (_, parsed) = x509_parser::parse_x509_certificate(der).map_err(|error| refuse(what, error))?;
    let seconds = u64::try_from(parsed.validity().not_before.timestamp()).unwrap_or_default();
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

pub(super) fn validity(
    params: &mut CertificateParams,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), PkiError> {
    params.not_before = date(now.minus(BACKDATE))?;
    params.not_after = date(until)?;
    Ok(())
}

fn date(at: Timestamp) -> Result<time::OffsetDateTime, PkiError> {
    let secs = i64::try_from(at.as_millis() / 1_000).unwrap_or(i64::MAX);
    time::OffsetDateTime::from_unix_timestamp(secs).map_err(|error| refuse("the system clock", error))
}

pub(super) fn refuse(what: &str, reason: impl std::fmt::Display) -> PkiError {
    PkiError::Certificate { what: what.to_owned(), reason: reason.to_string() }
}
