//! Workflows of a cluster: starting them on its members or its manager, and waiting for them.

use serde::{Deserialize, Serialize};

use crate::shape::object;
use crate::v1::policy::Policy;
use crate::v1::run::BusyNodes;

/// Request to run a workflow on the members of a cluster, or on its manager.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClusterRun {
    /// Name of the workflow. Default: that of the cluster's manager, on the manager.
    #[schema(example = "install-db")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Filter of the members that run it, evaluated now, such as `cluster/leader Eq true`; `all` for every member. Default: the manager
    /// runs it.
    #[schema(example = "cluster/leader Eq true")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Task at which it begins, as `STAGE/TASK`: those before it are no part of the run. Default: the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Policy of the run; absent fields take their defaults, as for runs of other nodes.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Reason for the run, recorded in its history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What becomes of the runs that are in progress on its nodes. Default: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyNodes>,
    /// Whether to answer only what would run, and where.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// How far the workflows of members are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClusterWaitState {
    /// Those of every member are complete.
    Complete,
    /// That of a member failed, and a failure was to end the wait.
    Failed,
    /// The manager was made not runnable: nobody is to wait any longer, whatever the members do.
    Interrupted,
    /// That of a member is not complete.
    Waiting,
}

/// Answer to a wait for the workflows of a cluster's members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClusterWait {
    /// How far they are.
    pub state: ClusterWaitState,
    /// Why, one line: a member that is not complete, or failed.
    pub reason: String,
}
