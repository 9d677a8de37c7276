//! Certificates of an ensemble's own authority, for its members and for its clients. Keys stay where they were made: requests are signed.

use std::net::IpAddr;

use bellwether_core::words::time::Span;
use serde::{Deserialize, Serialize};

use crate::shape::ShapeError;

/// Default validity of a client's certificate.
pub const CLIENT_LIFE: Span = Span::from_secs(30 * 24 * 60 * 60);

/// Shortest validity of a client's certificate.
pub const MIN_CLIENT_LIFE: Span = Span::from_secs(60);

/// Longest validity of a client's certificate.
pub const MAX_CLIENT_LIFE: Span = Span::from_secs(365 * 24 * 60 * 60);

/// Most addresses in the certificate of a member.
pub const MAX_ADDRESSES: usize = 32;

/// Request of a node for the certificate of the member that it has of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberCertificateRequest {
    /// Number of the member.
    pub number: u64,
    /// Identity of the ensemble.
    pub identity: String,
    /// Addresses of its node: the one at which others reach the member, and those from which it may call them. At most 32.
    #[schema(value_type = Vec<String>)]
    pub addresses: Vec<IpAddr>,
    /// Certificate signing request (PEM) for the member's key. Everything in it but the key is ignored.
    pub certificate_request: String,
}

/// Request for a certificate with which a client of an ensemble reads and writes its data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificateRequest {
    /// Certificate signing request (PEM) for the client's key. Everything in it but the key is ignored.
    pub certificate_request: String,
    /// How long it is valid, `60s` to `365d`. Default `30d`.
    #[schema(example = "30d")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_for: Option<String>,
}

/// The certificates of a member, for the same key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MemberCertificates {
    /// For clients and the member, which have an authority of their own.
    pub clients: EnsembleCertificate,
    /// For the members among themselves.
    pub peers: EnsembleCertificate,
}

/// A certificate of an ensemble's authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleCertificate {
    /// The certificate (PEM).
    pub certificate: String,
    /// The certificate of the ensemble's authority (PEM).
    pub ca: String,
    /// End of its validity, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

impl ClientCertificateRequest {
    /// How long the certificate is to be valid.
    ///
    /// # Errors
    /// [`ShapeError`] names the field.
    pub fn life(&self) -> Result<Span, ShapeError> {
        let Some(text) = &self.valid_for else { return Ok(CLIENT_LIFE) };
        let life: Span = text.parse().map_err(|error| ShapeError::at("valid_for", error))?;
        if life < MIN_CLIENT_LIFE || life > MAX_CLIENT_LIFE {
            let reason = format!("{life}; write {MIN_CLIENT_LIFE} to {MAX_CLIENT_LIFE}");
            return Err(ShapeError::at("valid_for", reason));
        }
        Ok(life)
    }
}
