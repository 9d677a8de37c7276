//! A store that something else founded and that an ensemble adopts, and the members of it that are not of the ensemble. Part of the record of an
//! ensemble, and of that of its members.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::records::annotation::Annotation;
use crate::words::time::Timestamp;

/// Most endpoints of a store: it has no more members that vote, and one that answers is enough.
pub const MAX_ENDPOINTS: usize = 16;

/// Where a member of a store serves clients, without TLS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreEndpoint(String);

/// Why a text is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreEndpointError {
    /// It asks for TLS.
    #[error(
        "{0} has TLS, and a store whose members have certificates of another authority cannot be adopted: take a snapshot of it and found a new \
         ensemble from that (bellwether ensemble create --from-snapshot)"
    )]
    Tls(String),
    /// It is none.
    #[error("{0:?} is not the URL of a member of etcd for clients; write one such as http://10.0.0.9:2379")]
    Malformed(String),
}

/// The store that an ensemble adopts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptionSource {
    /// Where members of it serve clients.
    pub endpoints: BTreeSet<StoreEndpoint>,
}

/// What is known of a store that was adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoption {
    /// Where members of it served clients when it was adopted.
    pub endpoints: BTreeSet<StoreEndpoint>,
    /// The id that the store has; `None` before it was read. No member joins one with another id.
    pub cluster_id: Option<String>,
    /// The members that are not of the ensemble, by the id that the store gave them.
    pub foreign: BTreeMap<String, ForeignMember>,
    /// Those that a person wants removed, each with who asked for it.
    pub removals: BTreeMap<String, Annotation>,
}

/// A member of the store that is not of the ensemble: something else runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignMember {
    /// Its name in the store; empty if it was never started.
    pub name: String,
    /// URL at which other members reach it.
    pub peer_url: String,
    /// Whether it votes.
    pub votes: bool,
    /// Whether it answers there, as a member of the ensemble saw.
    pub answers: bool,
    /// Since when that is so.
    pub since: Timestamp,
}

/// What a member is told of the store that it joins, or has joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptionOrder {
    /// Where members of it serve clients, or did.
    pub endpoints: BTreeSet<StoreEndpoint>,
    /// The id that the store has; `None` before it was read. Then all endpoints have to answer, with the same one.
    pub cluster_id: Option<String>,
}

impl StoreEndpoint {
    /// Its host and port.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StoreEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

impl FromStr for StoreEndpoint {
    type Err = StoreEndpointError;
    fn from_str(text: &str) -> Result<Self, StoreEndpointError> {
        let shown = || text.chars().take(80).collect::<String>();
        let lower = text.trim().to_ascii_lowercase();
        if lower.starts_with("https://") {
            return Err(StoreEndpointError::Tls(shown()));
        }
        let authority = lower.strip_prefix("http://").map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        let is_well = |authority: &&str| {
            let Some((host, port)) = authority.rsplit_once(':') else { return false };
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            let is_host = match bare {
                Some(bare) => bare.parse::<core::net::Ipv6Addr>().is_ok(),
                None => {
                    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
                    !host.is_empty() && host.len() <= 253 && host.chars().all(is_part)
                }
            };
            let is_port = port.chars().all(|c| c.is_ascii_digit());
            is_host && is_port && port.parse::<u16>().is_ok_and(|port| port > 0)
        };
        let authority = authority.filter(is_well).ok_or_else(|| StoreEndpointError::Malformed(shown()))?;
        Ok(Self(authority.to_string()))
    }
}

impl AdoptionSource {
    /// It, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("the store at {}", list(&self.endpoints))
    }
}

/// Endpoints, in a sentence.
#[must_use]
pub fn list(endpoints: &BTreeSet<StoreEndpoint>) -> String {
    endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Adoption {
    /// A store of which nothing is known yet.
    #[must_use]
    pub fn of(source: &AdoptionSource) -> Self {
        Self {
            endpoints: source.endpoints.clone(),
            cluster_id: None,
            foreign: BTreeMap::new(),
            removals: BTreeMap::new(),
        }
    }

    /// What a member is told of it: also where the members of the ensemble serve clients, as those that were there before may be gone. Before its id
    /// is known, the endpoints that a person named have to say it.
    #[must_use]
    pub fn order(&self, own: impl Iterator<Item = StoreEndpoint>) -> AdoptionOrder {
        let own = own.filter(|_| self.cluster_id.is_some());
        AdoptionOrder {
            endpoints: self.endpoints.iter().cloned().chain(own).collect(),
            cluster_id: self.cluster_id.clone(),
        }
    }
}

impl ForeignMember {
    /// Whether it votes, and if it answers, in one word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match (self.votes, self.answers) {
            (_, false) => "silent",
            (true, true) => "voting",
            (false, true) => "learning",
        }
    }
}

/// A member that is not of the ensemble, in words.
#[must_use]
pub fn named(id: &str, member: &ForeignMember) -> String {
    let name = if member.name.is_empty() { String::new() } else { format!("{}, ", member.name) };
    format!("foreign member {id} ({name}{})", member.peer_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_of_http_with_a_host_and_a_port() {
        for (text, authority) in [
            ("http://10.0.0.9:2379", "10.0.0.9:2379"),
            (" HTTP://DB-1.example:12379/ ", "db-1.example:12379"),
            ("http://[fd00::1]:2379", "[fd00::1]:2379"),
        ] {
            let endpoint: StoreEndpoint = text.parse().unwrap();
            assert_eq!(endpoint.authority(), authority);
            assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
        }
        for text in [
            "",
            "10.0.0.9:2379",
            "http://10.0.0.9",
            "http://:2379",
            "http://10.0.0.9:0",
            "http://10.0.0.9:+1",
            "http://10.0.0.9:2379/v3",
            "http://ann@10.0.0.9:2379",
            "http://fd00::1:2379",
            "http://[10.0.0.9]:2379",
            "unix:///run/etcd",
        ] {
            let refused = text.parse::<StoreEndpoint>().unwrap_err();
            assert!(refused.to_string().contains("http://10.0.0.9:2379"), "{text}");
        }
        let refused = "https://10.0.0.9:2379".parse::<StoreEndpoint>().unwrap_err();
        assert!(refused.to_string().contains("--from-snapshot"), "{refused}");
    }
}
