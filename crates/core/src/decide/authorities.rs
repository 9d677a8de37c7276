//! Replacing the certificate authority: from one phase to the next, and what is behind. Woken by nobody: operations ask.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::authorities::{Authorities, Authority, AuthorityPhase, NodeTrust};
use crate::records::node::Node;
use crate::records::secret::Ciphertext;
use crate::records::token::JoinToken;
use crate::words::counter::{AuthoritiesVersion, Epoch};
use crate::words::name::ServerName;
use crate::words::time::Timestamp;
use crate::world::World;

/// The authority that an installation was founded with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundingAuthority {
    /// SHA-256 of its certificate, lower-case hex.
    pub fingerprint: String,
    /// Its certificate, PEM.
    pub certificate: String,
    /// When that was; none if nobody knows.
    pub since: Option<Timestamp>,
}

/// An authority that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAuthority {
    /// SHA-256 of its certificate, lower-case hex.
    pub fingerprint: String,
    /// Its certificate, PEM.
    pub certificate: String,
    /// Its key, encrypted.
    pub key: Ciphertext,
}

/// The next authority of those that are to be changed is not there, or one that must be gone is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseRefusal {
    /// There is a next one already.
    HasNext,
    /// The one before is still trusted.
    HasPrevious,
    /// There is no next one.
    NoNext,
    /// There is no previous one.
    NoPrevious,
}

impl PhaseRefusal {
    /// Why it is refused, and the next thing to try.
    #[must_use]
    pub const fn reasons(&self) -> (&'static str, &'static str) {
        match self {
            Self::HasNext => (
                "another authority is next already",
                "bring it into use (bellwether server ca activate) or drop it (bellwether server ca cancel)",
            ),
            Self::HasPrevious => {
                ("the previous authority is still trusted", "end that first: bellwether server ca retire")
            }
            Self::NoNext => ("no authority is next", "make one: bellwether server ca rotate"),
            Self::NoPrevious => ("no previous authority is trusted", "show them: bellwether server ca get"),
        }
    }
}

/// What keeps the authorities from their next phase. Nodes are named as `NAMESPACE/NODE`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorityProgress {
    /// Number of machines that are nodes.
    pub nodes: usize,
    /// Nodes that do not trust the next authority, as they last said.
    pub not_trusting_next: Vec<String>,
    /// Nodes whose certificate is not of the active authority.
    pub not_renewed: Vec<String>,
    /// Live servers that cannot decrypt the key of the next or the active authority.
    pub servers_without_key: Vec<ServerName>,
    /// Join tokens that can still be used and name another authority than the active one, by the first digits of their hash.
    pub old_join_tokens: Vec<String>,
}

/// The authorities with a next one, which everybody is to trust before it is used.
///
/// # Errors
/// [`PhaseRefusal`] while another change is not finished.
pub fn prepare(
    present: Option<&Authorities>,
    founding: &FoundingAuthority,
    next: NewAuthority,
    (now, epoch): (Timestamp, Epoch),
) -> Result<Authorities, PhaseRefusal> {
    let mut changed = present.cloned().unwrap_or_else(|| Authorities {
        version: AuthoritiesVersion::ZERO,
        all: vec![Authority {
            fingerprint: founding.fingerprint.clone(),
            certificate: founding.certificate.clone(),
            key: None,
            phase: AuthorityPhase::Active,
            added: AuthoritiesVersion::ZERO,
            since: founding.since.unwrap_or(now),
        }],
    });
    if changed.in_phase(AuthorityPhase::Next).is_some() {
        return Err(PhaseRefusal::HasNext);
    }
    if changed.in_phase(AuthorityPhase::Previous).is_some() {
        return Err(PhaseRefusal::HasPrevious);
    }
    changed.version = changed.version.next_in(epoch);
    let NewAuthority { fingerprint, certificate, key } = next;
    changed.all.push(Authority {
        fingerprint,
        certificate,
        key: Some(key),
        phase: AuthorityPhase::Next,
        added: changed.version,
        since: now,
    });
    Ok(changed)
}

/// The authorities with the next one active: what is signed from now on is signed with it, and the one before is still trusted.
///
/// # Errors
/// [`PhaseRefusal::NoNext`].
pub fn activate(present: Option<&Authorities>, at: (Timestamp, Epoch)) -> Result<Authorities, PhaseRefusal> {
    let present = present.filter(|present| present.in_phase(AuthorityPhase::Next).is_some());
    let present = present.ok_or(PhaseRefusal::NoNext)?;
    Ok(moved(present, at, |phase| match phase {
        AuthorityPhase::Next => AuthorityPhase::Active,
        AuthorityPhase::Active => AuthorityPhase::Previous,
        AuthorityPhase::Previous => AuthorityPhase::Previous,
        AuthorityPhase::Retired => AuthorityPhase::Retired,
    }))
}

/// The authorities without trust in the previous one, whose key is forgotten.
///
/// # Errors
/// [`PhaseRefusal::NoPrevious`].
pub fn retire(present: Option<&Authorities>, at: (Timestamp, Epoch)) -> Result<Authorities, PhaseRefusal> {
    let present = present.filter(|present| present.in_phase(AuthorityPhase::Previous).is_some());
    let present = present.ok_or(PhaseRefusal::NoPrevious)?;
    let mut changed = moved(present, at, |phase| match phase {
        AuthorityPhase::Previous => AuthorityPhase::Retired,
        AuthorityPhase::Next => AuthorityPhase::Next,
        AuthorityPhase::Active => AuthorityPhase::Active,
        AuthorityPhase::Retired => AuthorityPhase::Retired,
    });
    for authority in &mut changed.all {
        if !authority.phase.is_trusted() {
            authority.key = None;
        }
    }
    Ok(changed)
}

/// The authorities without the next one.
///
/// # Errors
/// [`PhaseRefusal::NoNext`].
pub fn cancel(present: Option<&Authorities>, at: (Timestamp, Epoch)) -> Result<Authorities, PhaseRefusal> {
    let present = present.filter(|present| present.in_phase(AuthorityPhase::Next).is_some());
    let present = present.ok_or(PhaseRefusal::NoNext)?;
    let mut changed = moved(present, at, |phase| phase);
    changed.all.retain(|authority| authority.phase != AuthorityPhase::Next);
    Ok(changed)
}

fn moved(
    present: &Authorities,
    (now, epoch): (Timestamp, Epoch),
    phase: impl Fn(AuthorityPhase) -> AuthorityPhase,
) -> Authorities {
    let all = present.all.iter().cloned().map(|authority| {
        let to = phase(authority.phase);
        let since = if to == authority.phase { authority.since } else { now };
        Authority { phase: to, since, ..authority }
    });
    Authorities { version: present.version.next_in(epoch), all: all.collect() }
}

/// What is behind.
#[must_use]
pub fn progress(world: &World, founding: &FoundingAuthority, now: Timestamp) -> AuthorityProgress {
    let present = world.authorities.as_ref().map(|kept| &*kept.value);
    let mut progress = AuthorityProgress::default();
    let active = present.and_then(|present| present.in_phase(AuthorityPhase::Active));
    let active = active.map_or(founding.fingerprint.as_str(), |active| active.fingerprint.as_str());
    let next = present.and_then(|present| present.in_phase(AuthorityPhase::Next)).map(|next| next.added);
    for (namespace, fleet) in world.fleets.iter() {
        for kept in fleet.nodes.values() {
            let node = &*kept.value;
            if node.decommissioned.is_some() || node.logical.is_some() {
                continue;
            }
            progress.nodes += 1;
            let trust = trust_of(node, founding);
            if next.is_some_and(|next| trust.version < next) {
                progress.not_trusting_next.push(format!("{namespace}/{}", node.name));
            }
            if trust.issuer != active {
                progress.not_renewed.push(format!("{namespace}/{}", node.name));
            }
        }
    }
    let keys =
        present.into_iter().flat_map(Authorities::trusted).filter_map(|authority| authority.key.as_ref());
    let needed: Vec<_> = keys.map(|key| &key.key).collect();
    for kept in world.servers.values() {
        if needed.iter().any(|key| !kept.value.secret_keys.contains(key)) {
            progress.servers_without_key.push(kept.value.name.clone());
        }
    }
    let usable = |token: &&JoinToken| token.used.is_none() && token.expires_at > now;
    let named = |token: &JoinToken| token.authority.clone().unwrap_or_else(|| founding.fingerprint.clone());
    let tokens = world.join_tokens.values().map(|kept| &*kept.value).filter(usable);
    let old = tokens.filter(|token| named(token) != active);
    progress.old_join_tokens = old.map(|token| token.secret_hash.chars().take(12).collect()).collect();
    progress
}

/// Which authorities a node trusts; one of which nothing is known trusts the founding one alone, which issued its certificate.
fn trust_of(node: &Node, founding: &FoundingAuthority) -> NodeTrust {
    let unknown =
        || NodeTrust { version: AuthoritiesVersion::ZERO, issuer: founding.fingerprint.to_string() };
    node.trust.clone().unwrap_or_else(unknown)
}

#[cfg(test)]
mod tests;
