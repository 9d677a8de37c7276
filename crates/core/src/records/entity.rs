//! An entity: something rolled out to many targets, and the requests people made of it. Written only by
//! operations (`rollout::operations`); the outcome of rollouts is in [`super::progress`].

mod policy_rules;

use super::external::StalenessLimits;
use super::policy::Policy;
use crate::records::annotation::Annotation;
use crate::words::counter::{AssignmentNumber, RequestNumber, RolloutNumber};
use crate::words::feature::Feature;
use crate::words::label::Labels;
use crate::words::name::{ActionName, EntityName, NodeName, ProfileName, TargetName, WorkflowName};
use crate::words::node_data::NodeData;
use crate::words::plural::plural;
use crate::words::selector::Selector;
use crate::words::version::Version;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

/// Most bytes of [`EntityInfo::owner`].
pub const MAX_OWNER: usize = 256;

/// Most bytes of [`EntityInfo::description`].
pub const MAX_DESCRIPTION: usize = 1_000;

/// Something that is rolled out to many targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Name of the entity, unique in its namespace.
    pub name: EntityName,
    /// Source of its targets.
    pub source: TargetSource,
    /// What is rolled out; the kind of an entity never changes.
    pub kind: EntityKind,
    /// Limits and pace of its rollouts.
    pub policy: Policy,
    /// The last requested version; `None` before the first request.
    pub wanted: Option<VersionRequest>,
    /// The pause set by a person, until it is resumed.
    pub hold: Option<Annotation>,
    /// Number of `resume` operations so far; each ends a pause that the engine made.
    pub resumes: u64,
    /// The last abort; it ends the request that it names and every older one.
    pub abort: Option<Abort>,
    /// The last approval of a stage.
    pub approval: Option<Approval>,
    /// For a run of a workflow: the failed assignments that a person asked to try again, by target; the last one of each.
    pub retries: BTreeMap<TargetName, AssignmentNumber>,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
    /// What people wrote about it.
    pub info: EntityInfo,
}

/// What people wrote about an entity, for each other: it is shown, and no decision depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityInfo {
    /// Who is responsible for the entity: one line of at most [`MAX_OWNER`] bytes, or empty.
    pub owner: String,
    /// What the entity is: one line of at most [`MAX_DESCRIPTION`] bytes, or empty.
    pub description: String,
}

/// Source of an entity's targets; it never changes from one variant to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSource {
    /// Nodes that match this selector; it is evaluated again whenever nodes or labels change.
    Nodes(Selector),
    /// These nodes, as they were chosen when the entity was created.
    Listed(Arc<BTreeSet<NodeName>>),
    /// Targets that controllers report, with the limits for stale reports.
    External(StalenessLimits),
}

/// What an entity changes on its targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EntityKind {
    /// A version, applied by the node's own `apply` command for the entity.
    #[default]
    Version,
    /// Files that the node renders from this profile; a version is `profile@revision`.
    Profile(ProfileName),
    /// The node runs this action of its own catalogue, once per version; a version is `action@number`.
    Action(ActionName),
    /// The node carries out a run of this workflow; a version is `workflow@number`, and there is one.
    Workflow(WorkflowName),
}

impl EntityKind {
    /// The feature that the agents of its targets need.
    #[must_use]
    pub const fn feature(&self) -> Feature {
        match self {
            Self::Version => Feature::Versions,
            Self::Profile(_) => Feature::Files,
            Self::Action(_) => Feature::Actions,
            Self::Workflow(_) => Feature::Workflows,
        }
    }

    /// Whether it is a run of a workflow.
    #[must_use]
    pub const fn is_run(&self) -> bool {
        match self {
            Self::Workflow(_) => true,
            Self::Version | Self::Profile(_) | Self::Action(_) => false,
        }
    }
}

/// A request for a version, made by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRequest {
    /// Number of the request within the entity, from 1.
    pub request: RequestNumber,
    /// The requested version.
    pub version: Version,
    /// Kind of the request.
    pub how: RequestKind,
    /// Who made the request, when and why.
    pub annotation: Annotation,
    /// Policy of the rollout that this request starts; `None` for the entity's own policy.
    pub policy: Option<Box<Policy>>,
}

/// How a version is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Roll forward to the version.
    Start,
    /// Roll back to last known good, at the rollback's pace.
    Undo,
    /// Roll out a known bad version again, on purpose.
    Retry,
}

/// An abort by a person: the rollout of this request, or of an older one, stops dispatching and leaves its
/// targets as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The newest request it ends.
    pub request: RequestNumber,
    /// Who aborted, when and why.
    pub annotation: Annotation,
}

/// A person's approval of a stage of a rollout, and of those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Number of the rollout.
    pub rollout: RolloutNumber,
    /// Number of the approved stage, from 1.
    pub stage: u32,
    /// Who approved, when and why.
    pub annotation: Annotation,
}

impl Entity {
    /// The policy in effect: that of the last request if it has its own, else the entity's.
    #[must_use]
    pub fn policy_in_force(&self) -> &Policy {
        self.wanted.as_ref().and_then(|wanted| wanted.policy.as_deref()).unwrap_or(&self.policy)
    }

    /// The entity with its policy in effect in place of its own; deciders read this form.
    #[must_use]
    pub fn in_force(self: &Arc<Self>) -> Arc<Self> {
        match self.wanted.as_ref().and_then(|wanted| wanted.policy.as_deref()) {
            Some(policy) => Arc::new(Self { policy: policy.clone(), ..Self::clone(self) }),
            None => Arc::clone(self),
        }
    }

    /// A new entity of nodes and versions, without requests.
    #[must_use]
    pub fn new(name: EntityName, selector: Selector, policy: Policy) -> Self {
        Self {
            name,
            source: TargetSource::Nodes(selector),
            kind: EntityKind::Version,
            policy,
            wanted: None,
            hold: None,
            resumes: 0,
            abort: None,
            approval: None,
            retries: BTreeMap::new(),
            labels: Labels::default(),
            info: EntityInfo::default(),
        }
    }

    /// Number of the newest request; zero before the first.
    #[must_use]
    pub fn last_request(&self) -> RequestNumber {
        self.wanted.as_ref().map_or(RequestNumber::ZERO, |wanted| wanted.request)
    }
}

impl TargetSource {
    /// Whether its targets are nodes, not external targets.
    #[must_use]
    pub const fn is_nodes(&self) -> bool {
        matches!(self, Self::Nodes(_) | Self::Listed(_))
    }

    /// Whether a node is a target of this entity; always false for external targets.
    #[must_use]
    pub fn picks(&self, node: &NodeName, labels: &Labels, data: &NodeData) -> bool {
        match self {
            Self::Nodes(selector) => selector.picks(node.as_str(), labels, data),
            Self::Listed(nodes) => nodes.contains(node),
            Self::External(_) => false,
        }
    }
}

impl core::fmt::Display for TargetSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Nodes(selector) => write!(f, "nodes: {selector}"),
            Self::Listed(nodes) => write!(f, "{}", plural(nodes.len(), "chosen node")),
            Self::External(_) => f.write_str("external targets"),
        }
    }
}

impl core::fmt::Display for EntityKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Version => f.write_str("versions"),
            Self::Profile(profile) => write!(f, "profile {profile}"),
            Self::Action(action) => write!(f, "action {action}"),
            Self::Workflow(workflow) => write!(f, "workflow {workflow}"),
        }
    }
}

impl core::fmt::Display for RequestKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Undo => "undo",
            Self::Retry => "retry",
        })
    }
}
