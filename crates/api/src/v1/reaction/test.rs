//! What a reaction would do about a condition that somebody thinks of.

use serde::{Deserialize, Serialize};

use super::ReactionState;
use crate::v1::cluster::ClusterMode;

/// Asks what a reaction would do if a condition had been true for as long as it waits, or what it does about one that is true now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestReaction {
    /// Name of the condition.
    #[schema(example = "no_primary")]
    pub condition: String,
    /// What it is to be true of: `node/NODE`, `store/NODE/PROBE` or `cluster/CLUSTER/PROBE`.
    #[schema(example = "cluster/db/kv")]
    pub subject: String,
}

/// What a reaction would do. Nothing was started, and nothing written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReactionTest {
    /// Whether it is about that condition of that subject.
    pub matches: bool,
    /// How it would stand to it; absent if it is not about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ReactionState>,
    /// When that ends by itself, in milliseconds since the Unix epoch; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// The run that has not ended, in the state `running`; absent in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The cluster whose mode starts nothing; absent in other states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_cluster: Option<String>,
    /// The mode of that cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ClusterMode>,
    /// Number of nodes that would run the workflow.
    pub node_count: u64,
    /// The first of them, of those that the caller may read; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Why no run could be started; absent if one could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What the run would wait for; absent if nothing is known to hold it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}
