//! Features of agents: parts of an order that an agent of another build may not know.

use alloc::collections::BTreeSet;
use core::fmt;

/// A part of an order that an agent may not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Versions applied by the node's own commands.
    Versions,
    /// Files rendered from profiles.
    Files,
    /// Actions, each run at most once.
    Actions,
    /// Facts of the machine, and rescans of them.
    Facts,
    /// Soaks: it measures them itself, and confirms them by its checks.
    Soak,
    /// Runs of workflows; its configuration allows tasks.
    Workflows,
    /// Logical nodes; its configuration offers to host them.
    LogicalNodes,
    /// Jobs: it reports them, and begins a failed one again.
    Jobs,
    /// Logs of jobs: it sends what readers ask for.
    JobLogs,
    /// Task lists: it asks for each next task, also behind the last one it knew of.
    TaskLists,
    /// Outputs of tasks: it keeps what a task writes, and later tasks of the run read it.
    Outputs,
    /// Conditions of tasks: it skips a task whose condition does not hold.
    Conditions,
    /// Undo: it begins a run that undoes the one that failed on its node, before all others.
    Undo,
    /// Ensembles: it runs members of them.
    Ensembles,
    /// Independent members of ensembles: programs, units and executables of its node.
    IndependentMembers,
    /// Restores: it founds an ensemble from a snapshot.
    Restores,
    /// Adoptions: its members join a store that something else founded.
    Adoptions,
}

/// The features of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features(BTreeSet<Feature>);

impl Feature {
    /// Every feature of this build.
    pub const ALL: [Self; 17] = [
        Self::Versions,
        Self::Files,
        Self::Actions,
        Self::Facts,
        Self::Soak,
        Self::Workflows,
        Self::LogicalNodes,
        Self::Jobs,
        Self::JobLogs,
        Self::TaskLists,
        Self::Outputs,
        Self::Conditions,
        Self::Undo,
        Self::Ensembles,
        Self::IndependentMembers,
        Self::Restores,
        Self::Adoptions,
    ];

    /// Features of agents that report none: of the first builds, or before the first report.
    const FIRST: [Self; 3] = [Self::Versions, Self::Files, Self::Actions];

    /// Name in reports and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Versions => "versions",
            Self::Files => "files",
            Self::Actions => "actions",
            Self::Facts => "facts",
            Self::Soak => "soak",
            Self::Workflows => "workflows",
            Self::LogicalNodes => "logical_nodes",
            Self::Jobs => "jobs",
            Self::JobLogs => "job_logs",
            Self::TaskLists => "task_lists",
            Self::Outputs => "outputs",
            Self::Conditions => "conditions",
            Self::Undo => "undo",
            Self::Ensembles => "ensembles",
            Self::IndependentMembers => "independent_members",
            Self::Restores => "restores",
            Self::Adoptions => "adoptions",
        }
    }

    /// The feature of a name; `None` for one of another build.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.as_str() == name)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Default for Features {
    fn default() -> Self {
        Feature::FIRST.into_iter().collect()
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<T: IntoIterator<Item = Feature>>(features: T) -> Self {
        Self(features.into_iter().collect())
    }
}

impl Features {
    /// Whether the agent has a feature.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }

    /// All features, in the order of their names' introduction.
    pub fn iter(&self) -> impl Iterator<Item = Feature> + '_ {
        self.0.iter().copied()
    }
}
