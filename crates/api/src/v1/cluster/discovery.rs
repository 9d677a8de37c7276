//! Discovery of the members of clusters from outside: requests, answers and stored records.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::records::discovery as core;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, read_some};
use crate::web_address::{path_below, web_url};

/// Where the members of a cluster are listed: at a URL or in a file, in the JSON of Prometheus' HTTP service discovery,
/// `[{"targets": ["db-1:9100"], "labels": {}}]`. A target whose host is the name of a node is that node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoverySpec {
    /// URL of the list, `http` or `https`.
    #[schema(example = "https://inventory.example/db.json")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Path of the list below the directory of the namespace, which is in the directory that the configuration of the server names.
    #[schema(example = "db.json")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Time between two reads of the list, `1s` to `24h`. Default `60s`.
    #[schema(example = "60s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
}

/// Where the members of a cluster are listed, and what the list said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DiscoveryStatus {
    /// URL of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Path of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Time between two reads of the list, in milliseconds.
    pub interval_ms: u64,
    /// Number of members that are listed.
    pub listed: u64,
    /// Number of those that are no nodes.
    pub unknown: u64,
    /// When the members changed last, in milliseconds since the Unix epoch, by the server's clock; absent before the list was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at_ms: Option<u64>,
    /// Why the list cannot be read; absent if it was read last. The members stay meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<DiscoveryFailure>,
    /// Members that the list does not have any more, and that stay until somebody accepts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldMembers>,
}

/// Why a list of members cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DiscoveryFailure {
    /// The last reason.
    pub reason: String,
    /// Since when it cannot be read, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
}

/// Members that a list does not have any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HeldMembers {
    /// Their hosts.
    pub hosts: BTreeSet<String>,
    /// Since when they wait, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
}

/// Request to have the members leave that the list does not have any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptMembers {
    /// How many there are; it is refused if there are more or fewer now. Any number if absent.
    #[schema(example = 3)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Reason, recorded in the event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Stored record of where the members of a cluster are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredDiscovery {
    /// URL of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Path of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Time between two reads of it, in milliseconds.
    pub interval_ms: u64,
}

/// Stored record of what the list of a cluster's members said last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClusterDiscovery {
    /// The cluster.
    pub cluster: String,
    /// The members by their hosts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, ListedMember>,
    /// When they changed last.
    pub changed_at_ms: u64,
    /// Why the list cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<DiscoveryFailure>,
    /// Members that wait for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldMembers>,
}

/// A member as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMember {
    /// Its targets.
    pub targets: BTreeSet<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A group of targets in a list, as Prometheus has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedGroup {
    /// The targets, as `host:port`.
    pub targets: Vec<String>,
    /// Their labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl DiscoverySpec {
    /// Where the members are listed.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn desired(&self) -> Result<core::Discovery, ShapeError> {
        let source = match (&self.url, &self.file) {
            (Some(url), None) => core::DiscoverySource::Url(web_url("discovery.url", url)?),
            (None, Some(file)) => core::DiscoverySource::File(path_below("discovery.file", file)?),
            (Some(_), Some(_)) => {
                return Err(ShapeError::at("discovery.file", "the list is at a URL or in a file, not both"));
            }
            (None, None) => {
                return Err(ShapeError::at("discovery.url", "missing; the list is at a URL or in a file"));
            }
        };
        let interval: Option<Span> = read_some("discovery.interval", self.interval.as_deref())?;
        let interval = interval.unwrap_or(core::DEFAULT_INTERVAL);
        if !(core::MIN_INTERVAL..=core::MAX_INTERVAL).contains(&interval) {
            let reason = format!("{interval}; write {} to {}", core::MIN_INTERVAL, core::MAX_INTERVAL);
            return Err(ShapeError::at("discovery.interval", reason));
        }
        Ok(core::Discovery { source, interval })
    }
}

impl DiscoveryStatus {
    /// What is known of a list, of whose members so many are no nodes.
    #[must_use]
    pub fn of(from: &core::Discovery, known: Option<&core::ClusterDiscovery>, unknown: usize) -> Self {
        let count = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        let StoredDiscovery { url, file, interval_ms } = from.into();
        let listed = known.map_or(0, |known| known.members.len());
        let changed_at = known.map(|known| known.changed_at).filter(|at| *at > Timestamp::EPOCH);
        Self {
            url,
            file,
            interval_ms,
            listed: count(listed),
            unknown: count(unknown),
            changed_at_ms: changed_at.map(Timestamp::as_millis),
            failure: known.and_then(|known| known.failure.as_ref()).map(Into::into),
            held: known.and_then(|known| known.held.as_ref()).map(Into::into),
        }
    }

    /// The request that would make it.
    #[must_use]
    pub fn spec(&self) -> DiscoverySpec {
        let interval = Some(Span::from_millis(self.interval_ms).to_string());
        DiscoverySpec { url: self.url.clone(), file: self.file.clone(), interval }
    }
}

impl From<&core::Discovery> for StoredDiscovery {
    fn from(from: &core::Discovery) -> Self {
        let (url, file) = match &from.source {
            core::DiscoverySource::Url(url) => (Some(url.clone()), None),
            core::DiscoverySource::File(path) => (None, Some(path.clone())),
        };
        Self { url, file, interval_ms: from.interval.as_millis() }
    }
}

impl TryFrom<StoredDiscovery> for core::Discovery {
    type Error = ShapeError;
    fn try_from(from: StoredDiscovery) -> Result<Self, ShapeError> {
        let interval = Some(Span::from_millis(from.interval_ms).to_string());
        DiscoverySpec { url: from.url, file: from.file, interval }.desired()
    }
}

impl From<&core::DiscoveryFailure> for DiscoveryFailure {
    fn from(from: &core::DiscoveryFailure) -> Self {
        Self { reason: from.reason.clone(), since_ms: from.since.as_millis() }
    }
}

impl From<&core::HeldMembers> for HeldMembers {
    fn from(from: &core::HeldMembers) -> Self {
        Self { hosts: from.hosts.clone(), since_ms: from.since.as_millis() }
    }
}

impl From<&core::ClusterDiscovery> for StoredClusterDiscovery {
    fn from(from: &core::ClusterDiscovery) -> Self {
        let member = |(host, member): (&String, &core::ListedMember)| {
            let core::ListedMember { targets, labels } = member.clone();
            (host.clone(), ListedMember { targets, labels })
        };
        Self {
            cluster: from.cluster.to_string(),
            members: from.members.iter().map(member).collect(),
            changed_at_ms: from.changed_at.as_millis(),
            failure: from.failure.as_ref().map(Into::into),
            held: from.held.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<StoredClusterDiscovery> for core::ClusterDiscovery {
    type Error = ShapeError;
    fn try_from(from: StoredClusterDiscovery) -> Result<Self, ShapeError> {
        let member = |(host, member): (String, ListedMember)| {
            let ListedMember { targets, labels } = member;
            (host, core::ListedMember { targets, labels })
        };
        let at = Timestamp::from_millis;
        let failure =
            |DiscoveryFailure { reason, since_ms }| core::DiscoveryFailure { reason, since: at(since_ms) };
        let held = |HeldMembers { hosts, since_ms }| core::HeldMembers { hosts, since: at(since_ms) };
        Ok(Self {
            cluster: read("cluster", &from.cluster)?,
            members: from.members.into_iter().map(member).collect(),
            changed_at: at(from.changed_at_ms),
            failure: from.failure.map(failure),
            held: from.held.map(held),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_cannot_be_is_refused_with_its_field() {
        for (spec, said) in [
            (r#"{}"#, "discovery.url: missing"),
            (r#"{"url": "http://a", "file": "a"}"#, "not both"),
            (r#"{"url": "file:///etc/passwd"}"#, "discovery.url: "),
            (r#"{"url": "http://kim:secret@a"}"#, "a user in it"),
            (r#"{"file": "/etc/passwd"}"#, "discovery.file: "),
            (r#"{"file": "../other/db.json"}"#, "begins with no dot"),
            (r#"{"file": "db.json", "interval": "10ms"}"#, "discovery.interval: 10ms; write 1s to"),
            (r#"{"file": "db.json", "interval": "2d"}"#, "discovery.interval"),
        ] {
            let read: DiscoverySpec = serde_json::from_str(spec).unwrap();
            let refusal = read.desired().unwrap_err().to_string();
            assert!(refusal.contains(said), "{spec}: {refusal}");
        }
    }
}
