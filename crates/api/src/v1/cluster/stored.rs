//! Stored records of clusters and of their roles.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::cluster as core;
use bellwether_core::words::counter::{ClusterNumber, ClusterRevision, FenceNumber};
use bellwether_core::words::node_order::NodeOrder;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::ClusterMode;
use super::discovery::StoredDiscovery;
use crate::shape::{ShapeError, read, read_some};
use crate::v1::labels::{labels_in, labels_out};

/// Stored record of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCluster {
    /// Name of the cluster.
    pub name: String,
    /// The logical node that is its manager.
    pub manager: String,
    /// Its position among the clusters of the namespace.
    pub number: u64,
    /// Number of its last change.
    pub revision: u64,
    /// Which nodes are its members.
    pub filter: String,
    /// Where they are listed; absent if the filter alone says who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<StoredDiscovery>,
    /// Number of leaders.
    pub leaders: u32,
    /// Field by which members are preferred as leaders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
    /// How long a leader may be unreachable, in milliseconds.
    pub replace_after_ms: u64,
    /// The profile that its members share.
    pub profile: String,
    /// The workflow of its manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager_workflow: Option<String>,
    /// What is done by itself about its data stores; absent if that is everything.
    #[serde(default, skip_serializing_if = "ClusterMode::is_active")]
    pub mode: ClusterMode,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Stored record of the roles of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClusterRoles {
    /// Name of the cluster.
    pub cluster: String,
    /// Fencing number of the role that was given last.
    pub fence: u64,
    /// The leaders, by slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<ClusterLeader>,
    /// The node whose agent hosts the manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<ClusterHost>,
}

/// The host of a cluster's manager, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterHost {
    /// Name of the node.
    pub node: String,
    /// Fencing number.
    pub fence: u64,
    /// Since when it hosts the manager, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// How long it goes on without an answer of a server, at most, in milliseconds.
    pub lease_ms: u64,
    /// When its lease is over at the latest, in milliseconds since the Unix epoch, by the server's clock; absent unless it was
    /// decommissioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
}

/// A leader of a cluster, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterLeader {
    /// Slot, from 0.
    pub slot: u32,
    /// Name of the node.
    pub node: String,
    /// Fencing number: larger than that of every role of the cluster that was given before.
    pub fence: u64,
    /// Since when it leads, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
}

fn leader(slot: u32, holder: &core::RoleHolder) -> ClusterLeader {
    ClusterLeader {
        slot,
        node: holder.node.to_string(),
        fence: holder.fence.get(),
        since_ms: holder.since.as_millis(),
    }
}

impl From<&core::Cluster> for StoredCluster {
    fn from(from: &core::Cluster) -> Self {
        Self {
            name: from.name.to_string(),
            manager: from.manager.to_string(),
            number: from.number.get(),
            revision: from.revision.get(),
            filter: from.filter.to_string(),
            discovery: from.discovery.as_ref().map(Into::into),
            leaders: from.leaders,
            prefer: from.prefer.as_ref().map(ToString::to_string),
            replace_after_ms: from.grace.as_millis(),
            profile: from.profile.to_string(),
            manager_workflow: from.workflow.as_ref().map(ToString::to_string),
            mode: from.mode.into(),
            labels: labels_out(&from.labels),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        }
    }
}

impl TryFrom<StoredCluster> for core::Cluster {
    type Error = ShapeError;
    fn try_from(from: StoredCluster) -> Result<Self, ShapeError> {
        let prefer = from.prefer.as_deref().map(NodeOrder::parse).transpose();
        Ok(Self {
            name: read("name", &from.name)?,
            manager: read("manager", &from.manager)?,
            number: ClusterNumber::new(from.number),
            revision: ClusterRevision::new(from.revision),
            filter: read("filter", &from.filter)?,
            discovery: from.discovery.map(TryInto::try_into).transpose()?,
            leaders: from.leaders,
            prefer: prefer.map_err(|error| ShapeError::misread("prefer", &error))?,
            grace: Span::from_millis(from.replace_after_ms),
            profile: read("profile", &from.profile)?,
            workflow: read_some("manager_workflow", from.manager_workflow.as_deref())?,
            mode: from.mode.into(),
            labels: labels_in(&from.labels)?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
        })
    }
}

impl From<&core::ClusterRoles> for StoredClusterRoles {
    fn from(from: &core::ClusterRoles) -> Self {
        Self {
            cluster: from.cluster.to_string(),
            fence: from.fence.get(),
            leaders: from.leaders.iter().map(|(slot, holder)| leader(*slot, holder)).collect(),
            host: from.host.as_ref().map(|host| ClusterHost {
                node: host.node.to_string(),
                fence: host.fence.get(),
                since_ms: host.since.as_millis(),
                lease_ms: from.lease.as_millis(),
                until_ms: from.host_until.map(Timestamp::as_millis),
            }),
        }
    }
}

impl TryFrom<StoredClusterRoles> for core::ClusterRoles {
    type Error = ShapeError;
    fn try_from(from: StoredClusterRoles) -> Result<Self, ShapeError> {
        let holder = |node: &str, fence: u64, since_ms: u64| {
            let (fence, since) = (FenceNumber::new(fence), Timestamp::from_millis(since_ms));
            Ok::<_, ShapeError>(core::RoleHolder { node: read("node", node)?, fence, since })
        };
        let leaders = from
            .leaders
            .iter()
            .map(|leader| Ok((leader.slot, holder(&leader.node, leader.fence, leader.since_ms)?)));
        let leaders: BTreeMap<_, _> = leaders.collect::<Result<_, ShapeError>>()?;
        let lease = from.host.as_ref().map_or(Span::ZERO, |host| Span::from_millis(host.lease_ms));
        let host_until = from.host.as_ref().and_then(|host| host.until_ms).map(Timestamp::from_millis);
        let host = from.host.map(|host| holder(&host.node, host.fence, host.since_ms)).transpose()?;
        let (cluster, fence) = (read("cluster", &from.cluster)?, FenceNumber::new(from.fence));
        Ok(Self { cluster, fence, leaders, host, lease, host_until })
    }
}
