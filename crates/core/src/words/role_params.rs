//! The params that a cluster gives its members by their roles. They take precedence over all others of the same key.

/// Name of the cluster.
pub const CLUSTER_NAME: &str = "cluster/name";

/// Whether the node is the cluster's manager.
pub const CLUSTER_MANAGER: &str = "cluster/manager";

/// Whether the node is a leader of the cluster.
pub const CLUSTER_LEADER: &str = "cluster/leader";

/// Whether the node is neither a leader nor the manager.
pub const CLUSTER_WORKER: &str = "cluster/worker";

/// The slot in which the node leads, from 0; absent for others.
pub const CLUSTER_SLOT: &str = "cluster/slot";

/// Fencing number of the node's role; absent for workers.
pub const CLUSTER_FENCE: &str = "cluster/fence";

/// The profile that the members share; the profile itself has it too.
pub const CLUSTER_PROFILE: &str = "cluster/profile";

/// All of them.
pub const ROLE_PARAMS: [&str; 7] = [
    CLUSTER_PROFILE,
    CLUSTER_NAME,
    CLUSTER_MANAGER,
    CLUSTER_LEADER,
    CLUSTER_WORKER,
    CLUSTER_SLOT,
    CLUSTER_FENCE,
];
