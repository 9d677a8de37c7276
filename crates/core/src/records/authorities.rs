//! The certificate authorities of the installation, while there is or was more than the one it was founded with. Written only by
//! operations; without the record there is the founding one alone, which is active.

use alloc::string::String;
use alloc::vec::Vec;

use crate::records::secret::Ciphertext;
use crate::words::counter::AuthoritiesVersion;
use crate::words::time::Timestamp;

/// The certificate authorities of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorities {
    /// Grows with every change: whoever has the authorities of a later version does not take an earlier one.
    pub version: AuthoritiesVersion,
    /// The authorities, the oldest first. Exactly one is active; at most one is next, and at most one previous.
    pub all: Vec<Authority>,
}

/// A certificate authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// SHA-256 of its certificate, lower-case hex.
    pub fingerprint: String,
    /// Its certificate, PEM.
    pub certificate: String,
    /// Its key, encrypted with the keys for secrets; `None` of the founding one, whose key is in a file of each server, and of one that is
    /// retired.
    pub key: Option<Ciphertext>,
    /// What it is for now.
    pub phase: AuthorityPhase,
    /// The version in which it was added: who has that one trusts it.
    pub added: AuthoritiesVersion,
    /// Time at which it came into its phase, by the server's clock.
    pub since: Timestamp,
}

/// What an authority is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuthorityPhase {
    /// Trusted; nothing is signed with it yet.
    Next,
    /// Trusted, and everything new is signed with it.
    Active,
    /// Trusted, and nothing new is signed with it.
    Previous,
    /// Not trusted.
    Retired,
}

/// Which authorities a node knows, as of its last poll, and which one issued the certificate that it showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTrust {
    /// The version of the authorities that it has stored.
    pub version: AuthoritiesVersion,
    /// SHA-256 of the certificate of the authority that issued its certificate, lower-case hex.
    pub issuer: String,
}

impl AuthorityPhase {
    /// Name shown in the API, the CLI and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Active => "active",
            Self::Previous => "previous",
            Self::Retired => "retired",
        }
    }

    /// Whether certificates of the authority are accepted.
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        match self {
            Self::Next | Self::Active | Self::Previous => true,
            Self::Retired => false,
        }
    }
}

impl Authorities {
    /// The authority in this phase; of those that are retired, the first.
    #[must_use]
    pub fn in_phase(&self, phase: AuthorityPhase) -> Option<&Authority> {
        self.all.iter().find(|authority| authority.phase == phase)
    }

    /// Those whose certificates are accepted, the active one first.
    pub fn trusted(&self) -> impl Iterator<Item = &Authority> {
        let others = [AuthorityPhase::Next, AuthorityPhase::Previous];
        let others = others.into_iter().filter_map(|phase| self.in_phase(phase));
        self.in_phase(AuthorityPhase::Active).into_iter().chain(others)
    }
}
