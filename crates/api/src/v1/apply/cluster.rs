//! Documents of clusters.

use std::collections::BTreeMap;

use bellwether_core::records::cluster::Cluster;
use serde::{Deserialize, Serialize};

use super::ignored::Ignored;
use super::schema;
use crate::shape::some_object;
use crate::v1::cluster::discovery::{DiscoverySpec, DiscoveryStatus};
use crate::v1::cluster::{ClusterMode, ClusterSpec};
use crate::v1::labels::labels_out;

/// The desired state of a cluster. Its roles are given by the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::cluster, required)]
    pub kind: Ignored,
    /// Cluster name, a DNS label of at most 55 characters.
    #[schema(example = "db")]
    pub name: String,
    /// Namespace of the cluster. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Which nodes are members: a filter over names, labels, facts, params and profiles. Default: the nodes whose list of profiles has
    /// the cluster's profile.
    #[schema(example = "role=db")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Where the members are listed outside; those of the list that the filter matches are members. Its default is `all` then.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub discovery: Option<DiscoverySpec>,
    /// Number of leaders, 0 to 64. Default 1.
    #[schema(example = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaders: Option<u32>,
    /// Field by which members are preferred as leaders, the first in order first; with `-` before it, the largest. Default: a random
    /// choice.
    #[schema(example = "-fact.cores")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
    /// How long a leader may be unreachable before another member takes its place, `2s` to `24h`. Default `60s`.
    #[schema(example = "60s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_after: Option<String>,
    /// The live profile that the members share; it is created if there is none. Default: the name of the cluster. It cannot be changed.
    #[schema(example = "db")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The workflow of the cluster's manager.
    #[schema(example = "db-cluster")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager_workflow: Option<String>,
    /// What is done by itself about the members' data stores: `active`, `observe` (a view and events, nothing is started) or `disabled`
    /// (neither). Default `active`.
    #[schema(example = "active")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ClusterMode>,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "two leaders")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl ClusterDocument {
    /// The document of a cluster.
    #[must_use]
    pub fn of(cluster: &Cluster) -> Self {
        Self {
            name: cluster.name.to_string(),
            labels: labels_out(&cluster.labels),
            filter: Some(cluster.filter.to_string()),
            discovery: cluster.discovery.as_ref().map(|of| DiscoveryStatus::of(of, None, 0).spec()),
            leaders: Some(cluster.leaders),
            prefer: cluster.prefer.as_ref().map(ToString::to_string),
            replace_after: Some(cluster.grace.to_string()),
            profile: Some(cluster.profile.to_string()),
            manager_workflow: cluster.workflow.as_ref().map(ToString::to_string),
            mode: Some(cluster.mode.into()).filter(|mode: &ClusterMode| !mode.is_active()),
            ..Self::default()
        }
    }

    /// The cluster that the document sets.
    #[must_use]
    pub fn spec(&self) -> ClusterSpec {
        ClusterSpec {
            filter: self.filter.clone(),
            discovery: self.discovery.clone(),
            leaders: self.leaders,
            prefer: self.prefer.clone(),
            replace_after: self.replace_after.clone(),
            profile: self.profile.clone(),
            manager_workflow: self.manager_workflow.clone(),
            mode: self.mode,
            reason: self.reason.clone(),
        }
    }
}
