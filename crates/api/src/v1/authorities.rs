//! Certificate authorities: the stored record, what is told of them, and what nodes and clients trust.

use bellwether_core::records::authorities as core;
use bellwether_core::words::counter::AuthoritiesVersion;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::secret_values::StoredCiphertext;
use crate::shape::{ShapeError, is_zero};
use crate::word::words;

words! {
    /// What an authority is for.
    AuthorityPhase = core::AuthorityPhase {
        /// Trusted; nothing is signed with it yet.
        Next = "next",
        /// Trusted, and everything new is signed with it.
        Active = "active",
        /// Trusted, and nothing new is signed with it.
        Previous = "previous",
        /// Not trusted.
        Retired = "retired",
    }
}

/// Stored form of the certificate authorities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAuthorities {
    /// Grows with every change.
    pub version: u64,
    /// The authorities, the oldest first.
    pub authorities: Vec<StoredAuthority>,
}

/// Stored form of a certificate authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAuthority {
    /// SHA-256 of its certificate, lower-case hex.
    pub fingerprint: String,
    /// Its certificate, PEM.
    pub certificate: String,
    /// Its key, encrypted; absent if the key is in a file of each server, or forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<StoredCiphertext>,
    /// What it is for.
    pub phase: AuthorityPhase,
    /// The version in which it was added; absent for the first authority.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub added: u64,
    /// Time at which it came into its phase, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

/// Which authorities a node knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeTrust {
    /// The version of the authorities that it has stored.
    pub version: u64,
    /// SHA-256 of the certificate of the authority that issued the certificate of the node, lower-case hex.
    pub issuer: String,
}

/// The certificate authorities, and what is behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Authorities {
    /// Grows with every change; 0 while there is only the authority that the installation was initialised with.
    pub version: u64,
    /// The authorities, the oldest first.
    pub authorities: Vec<Authority>,
    /// Number of nodes, without those that are decommissioned or logical.
    pub nodes: u64,
    /// Nodes that do not trust the next authority yet, as they last said, as `NAMESPACE/NODE`. Empty if there is no next one.
    pub not_trusting_next: Vec<String>,
    /// Nodes whose certificate is not of the active authority, as `NAMESPACE/NODE`.
    pub not_renewed: Vec<String>,
    /// Live servers that cannot decrypt the keys of the authorities.
    pub servers_without_key: Vec<String>,
    /// Join tokens that can still be used and name another authority than the active one, by their ids.
    pub old_join_tokens: Vec<String>,
}

/// A certificate authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Authority {
    /// SHA-256 of its certificate, lower-case hex.
    pub fingerprint: String,
    /// What it is for.
    pub phase: AuthorityPhase,
    /// Time at which it came into its phase, in milliseconds since the Unix epoch; absent if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// The end of its validity, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// Request to bring the authorities into their next phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeAuthorities {
    /// Whether to do it although nodes or servers are behind, which are cut off by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Reason, recorded in the events.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The authorities that clients of the control plane trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrustBundle {
    /// Grows with every change of the authorities.
    pub version: u64,
    /// Their certificates (PEM), the active one first, after a line with the version.
    pub certificates: String,
}

impl From<&core::NodeTrust> for NodeTrust {
    fn from(from: &core::NodeTrust) -> Self {
        Self { version: from.version.get(), issuer: from.issuer.clone() }
    }
}

impl From<NodeTrust> for core::NodeTrust {
    fn from(from: NodeTrust) -> Self {
        Self { version: AuthoritiesVersion::new(from.version), issuer: from.issuer }
    }
}

impl From<&core::Authorities> for StoredAuthorities {
    fn from(from: &core::Authorities) -> Self {
        let out = |authority: &core::Authority| StoredAuthority {
            fingerprint: authority.fingerprint.clone(),
            certificate: authority.certificate.clone(),
            key: authority.key.as_ref().map(StoredCiphertext::from),
            phase: authority.phase.into(),
            added: authority.added.get(),
            since_ms: authority.since.as_millis(),
        };
        Self { version: from.version.get(), authorities: from.all.iter().map(out).collect() }
    }
}

impl TryFrom<StoredAuthorities> for core::Authorities {
    type Error = ShapeError;
    fn try_from(from: StoredAuthorities) -> Result<Self, ShapeError> {
        let read = |authority: StoredAuthority| {
            Ok(core::Authority {
                fingerprint: authority.fingerprint,
                certificate: authority.certificate,
                key: authority.key.map(TryInto::try_into).transpose()?,
                phase: authority.phase.into(),
                added: AuthoritiesVersion::new(authority.added),
                since: Timestamp::from_millis(authority.since_ms),
            })
        };
        let all = from.authorities.into_iter().map(read).collect::<Result<_, ShapeError>>()?;
        Ok(Self { version: AuthoritiesVersion::new(from.version), all })
    }
}

/// The line with the version, which comes before the certificates of a bundle.
const VERSION_LINE: &str = "# authorities, version ";

impl TrustBundle {
    /// The bundle of these certificates (PEM), the active one first.
    #[must_use]
    pub fn of(version: u64, certificates: &[&str]) -> Self {
        let mut text = format!("{VERSION_LINE}{version}\n");
        for certificate in certificates {
            text.push_str(certificate.trim_end());
            text.push('\n');
        }
        Self { version, certificates: text }
    }

    /// The version in the certificates that somebody trusts; 0 if there is none.
    #[must_use]
    pub fn version_in(certificates: &str) -> u64 {
        let line = certificates.lines().next().and_then(|line| line.strip_prefix(VERSION_LINE));
        line.and_then(|version| version.trim().parse().ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_says_its_version_and_a_certificate_alone_says_none() {
        let certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
        let bundle = TrustBundle::of(7, &[certificate, certificate]);
        assert_eq!(TrustBundle::version_in(&bundle.certificates), 7);
        assert_eq!(bundle.certificates.matches(certificate).count(), 2);
        assert_eq!(TrustBundle::version_in(certificate), 0);
        assert_eq!(TrustBundle::version_in("# authorities, version x\n"), 0);
    }
}
