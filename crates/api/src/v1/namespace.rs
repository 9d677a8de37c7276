//! Namespaces: answers.

use bellwether_core::words::name::Namespace;
use bellwether_core::world::occupancy::NamespaceContents;
use serde::{Deserialize, Serialize};

/// A namespace, with the number of objects in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NamespaceView {
    /// Namespace name, a DNS label.
    pub name: String,
    /// Number of nodes, without decommissioned ones.
    pub nodes: u64,
    /// Number of nodes that are expected and have not joined.
    pub expected: u64,
    /// Number of entities.
    pub entities: u64,
    /// Number of profiles.
    pub profiles: u64,
    /// Number of freezes, without those that cover every namespace.
    pub freezes: u64,
    /// Number of pauses of nodes by selector.
    pub pauses: u64,
    /// Number of slots.
    pub slots: u64,
    /// Number of saved filters.
    #[serde(default)]
    pub filters: u64,
    /// Number of clusters.
    #[serde(default)]
    pub clusters: u64,
    /// Number of ensembles.
    #[serde(default)]
    pub ensembles: u64,
    /// Number of schedules.
    #[serde(default)]
    pub schedules: u64,
    /// Number of reactions.
    #[serde(default)]
    pub reactions: u64,
    /// Number of sinks of events.
    #[serde(default)]
    pub sinks: u64,
    /// Number of declared params.
    #[serde(default)]
    pub params: u64,
    /// Number of secrets.
    #[serde(default)]
    pub secrets: u64,
    /// Number of tasks, stages and workflows.
    #[serde(default)]
    pub definitions: u64,
}

impl NamespaceView {
    /// The view of a namespace with these contents.
    #[must_use]
    pub fn of(name: &Namespace, contents: &NamespaceContents) -> Self {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            name: name.to_string(),
            nodes: count(contents.nodes),
            expected: count(contents.expected),
            entities: count(contents.entities),
            profiles: count(contents.profiles),
            freezes: count(contents.freezes),
            pauses: count(contents.pauses),
            slots: count(contents.slots),
            filters: count(contents.filters),
            clusters: count(contents.clusters),
            ensembles: count(contents.ensembles),
            schedules: count(contents.schedules),
            reactions: count(contents.reactions),
            sinks: count(contents.sinks),
            params: count(contents.params),
            secrets: count(contents.secrets),
            definitions: count(contents.definitions),
        }
    }
}
