//! Clusters: requests, answers and stored records.

pub mod discovery;
pub mod past_view;
pub mod stored;
pub mod stored_view;
pub mod view;
pub mod work;

use std::collections::BTreeMap;

use bellwether_core::records::cluster as core;
use bellwether_core::words::name::ProfileName;
use bellwether_core::words::node_order::NodeOrder;
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::Span;
use serde::{Deserialize, Serialize};

use self::discovery::{DiscoverySpec, DiscoveryStatus};
use crate::shape::{ShapeError, is_zero, read, read_some, reason, some_object};
use crate::word::words;

words! {
    /// What is done by itself about the data stores of a cluster's members.
    #[derive(Default)]
    ClusterMode = core::ClusterMode {
        /// It has a view and events, and starts reactions.
        #[default]
        Active = "active",
        /// It has a view and events, and starts nothing.
        Observe = "observe",
        /// Its view is left as it is, without events.
        Disabled = "disabled",
    }
}

impl ClusterMode {
    /// Whether it is the default.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(self, Self::Active)
    }
}

/// Request to create a cluster, or to change one. Absent fields have their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterSpec {
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
    /// Reason for the change, at most 512 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a cluster is to be, read from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredCluster {
    /// Which nodes are its members.
    pub filter: Selector,
    /// Where they are listed.
    pub discovery: Option<bellwether_core::records::discovery::Discovery>,
    /// Number of leaders.
    pub leaders: u32,
    /// In which order members become leaders.
    pub prefer: Option<NodeOrder>,
    /// How long a leader may be unreachable.
    pub grace: Span,
    /// The profile that its members share.
    pub profile: ProfileName,
    /// The workflow of its manager.
    pub workflow: Option<bellwether_core::words::name::WorkflowName>,
    /// What is done by itself about its data stores.
    pub mode: core::ClusterMode,
    /// Reason for the change.
    pub reason: String,
}

/// A cluster, its leaders and the number of its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Cluster {
    /// Name of the cluster.
    pub name: String,
    /// Number of its last change, from 1.
    pub revision: u64,
    /// Which nodes are its members.
    pub filter: String,
    /// Where the members are listed outside, and what the list said; absent if the filter alone says who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryStatus>,
    /// Number of leaders that it is to have.
    pub leaders: u32,
    /// Field by which members are preferred as leaders; absent for a random choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
    /// How long a leader may be unreachable, in milliseconds.
    pub replace_after_ms: u64,
    /// The live profile that its members share.
    pub profile: String,
    /// The workflow of its manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager_workflow: Option<String>,
    /// What is done by itself about its members' data stores.
    #[serde(default)]
    pub mode: ClusterMode,
    /// Number of its members.
    pub members: u64,
    /// Number of nodes that match its filter and are members of an older cluster.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub members_of_others: u64,
    /// The logical node that is its manager, and the node that hosts it.
    pub manager: ManagerRole,
    /// The present leaders, by the name of the node.
    pub leading: BTreeMap<String, LeaderRole>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The manager of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ManagerRole {
    /// Name of the logical node.
    pub node: String,
    /// The node whose agent hosts it; absent while no node offers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Fencing number: larger than that of every role of the cluster that was given before; absent without a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
}

/// The role of a leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LeaderRole {
    /// Slot, from 0.
    pub slot: u32,
    /// Fencing number: larger than that of every role of the cluster that was given before.
    pub fence: u64,
    /// Since when it leads, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
}

/// A member of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClusterMember {
    /// Name of the node.
    pub node: String,
    /// `leader`, `worker`, `manager`, or `unknown` for one that is listed and no node.
    pub role: String,
    /// Slot of a leader, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Fencing number of the role; absent for workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// The node whose agent hosts the manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `up`, `suspect`, `unreachable` or `never`.
    pub presence: String,
}

impl ClusterSpec {
    /// What a cluster of this name is to be.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn desired(&self, name: &str) -> Result<DesiredCluster, ShapeError> {
        let profile: ProfileName = read("profile", self.profile.as_deref().unwrap_or(name))?;
        let discovery = self.discovery.as_ref().map(DiscoverySpec::desired).transpose()?;
        let all = match &discovery {
            Some(_) => "all".to_owned(),
            None => format!("profile = {profile}"),
        };
        let filter = self.filter.clone().unwrap_or(all);
        let filter = Selector::parse(&filter).map_err(|error| ShapeError::misread("filter", &error))?;
        let leaders = self.leaders.unwrap_or(core::LEADERS);
        if leaders > core::MAX_LEADERS {
            let reason = format!("{leaders}; a cluster has at most {} leaders", core::MAX_LEADERS);
            return Err(ShapeError::at("leaders", reason));
        }
        let prefer = self.prefer.as_deref().map(NodeOrder::parse).transpose();
        let prefer = prefer.map_err(|error| ShapeError::misread("prefer", &error))?;
        let grace: Option<Span> = read_some("replace_after", self.replace_after.as_deref())?;
        let grace = grace.unwrap_or(core::GRACE);
        if grace < core::MIN_GRACE {
            return Err(ShapeError::at("replace_after", format!("{grace}; at least {}", core::MIN_GRACE)));
        }
        if grace > core::MAX_GRACE {
            return Err(ShapeError::at(
                "replace_after",
                format!("{grace} is too long; at most {} is allowed", core::MAX_GRACE),
            ));
        }
        let workflow = read_some("manager_workflow", self.manager_workflow.as_deref())?;
        Ok(DesiredCluster {
            filter,
            discovery,
            leaders,
            prefer,
            grace,
            profile,
            workflow,
            mode: self.mode.unwrap_or_default().into(),
            reason: reason(&self.reason)?,
        })
    }
}

const fn role(slot: u32, holder: &core::RoleHolder) -> LeaderRole {
    LeaderRole { slot, fence: holder.fence.get(), since_ms: holder.since.as_millis() }
}

impl Cluster {
    /// The form of a cluster with its roles, if any were given, and the number of its members and of nodes that are members of others.
    #[must_use]
    pub fn of(from: &core::Cluster, roles: Option<&core::ClusterRoles>, sizes: (usize, usize)) -> Self {
        let count = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        let host = roles.and_then(|roles| roles.host.as_ref());
        let leading = roles.into_iter().flat_map(|roles| &roles.leaders);
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            filter: from.filter.to_string(),
            discovery: from.discovery.as_ref().map(|discovery| DiscoveryStatus::of(discovery, None, 0)),
            leaders: from.leaders,
            prefer: from.prefer.as_ref().map(ToString::to_string),
            replace_after_ms: from.grace.as_millis(),
            profile: from.profile.to_string(),
            manager_workflow: from.workflow.as_ref().map(ToString::to_string),
            mode: from.mode.into(),
            members: count(sizes.0),
            members_of_others: count(sizes.1),
            manager: ManagerRole {
                node: from.manager.to_string(),
                host: host.map(|host| host.node.to_string()),
                fence: host.map(|host| host.fence.get()),
            },
            leading: leading.map(|(slot, holder)| (holder.node.to_string(), role(*slot, holder))).collect(),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        }
    }

    /// The request that would make this cluster.
    #[must_use]
    pub fn spec(&self) -> ClusterSpec {
        ClusterSpec {
            filter: Some(self.filter.clone()),
            discovery: self.discovery.as_ref().map(DiscoveryStatus::spec),
            leaders: Some(self.leaders),
            prefer: self.prefer.clone(),
            replace_after: Some(Span::from_millis(self.replace_after_ms).to_string()),
            profile: Some(self.profile.clone()),
            manager_workflow: self.manager_workflow.clone(),
            mode: (!self.mode.is_active()).then_some(self.mode),
            reason: String::new(),
        }
    }
}
