//! An entity: something that changes on many targets, and what people asked of it. Written only by people's operations
//! (`rollout::operations`); the outcome is in [`super::progress`].

use super::external::StalenessLimits;
use super::policy::Policy;
use crate::records::annotation::Annotation;
use crate::words::counter::{RequestNumber, RolloutNumber};
use crate::words::label::Labels;
use crate::words::name::{ActionName, EntityName, NodeName, ProfileName};
use crate::words::selector::Selector;
use crate::words::version::Version;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

/// Most bytes of [`EntityInfo::owner`].
pub const MAX_OWNER: usize = 256;

/// Most bytes of [`EntityInfo::description`].
pub const MAX_DESCRIPTION: usize = 1_000;

/// Something that changes on many targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Name of the entity, unique in its namespace.
    pub name: EntityName,
    /// Where its targets come from.
    pub source: TargetSource,
    /// What changes; it never turns into another kind.
    pub kind: EntityKind,
    /// How carefully.
    pub policy: Policy,
    /// The last version asked for; `None` before the first.
    pub wanted: Option<VersionRequest>,
    /// A person's pause, while it lasts.
    pub hold: Option<Annotation>,
    /// How often a person said `resume`; each releases a pause that the engine made.
    pub resumes: u64,
    /// The last abort; older requests than it names are over.
    pub abort: Option<Abort>,
    /// The last approval of a stage.
    pub approval: Option<Approval>,
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

/// Where an entity's targets come from; it never turns from one into the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSource {
    /// Nodes are picked, over and over.
    Nodes(Selector),
    /// Controllers report them; for how long they may be silent.
    External(StalenessLimits),
}

/// What changes on the targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EntityKind {
    /// The version, through the node's own `apply` for the entity.
    #[default]
    Version,
    /// Files that the node renders from this profile; a version is `profile@revision`.
    Profile(ProfileName),
    /// The node runs this action of its own catalogue, once per version; a version is `action@number`.
    Action(ActionName),
}

/// A person's request for a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRequest {
    /// Which request of this entity it is, from 1.
    pub request: RequestNumber,
    /// The version asked for.
    pub version: Version,
    /// In which way it was asked for.
    pub how: RequestKind,
    /// Who asked, why and when.
    pub annotation: Annotation,
    /// The policy of the rollout that answers this request, in place of the entity's; `None` for the entity's.
    pub policy: Option<Box<Policy>>,
}

/// In which way a version was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Set as the target.
    Start,
    /// Back to last known good, at the rollback's pace.
    Undo,
    /// A known bad version again, on purpose.
    Retry,
}

/// A person's abort: the rollout of this request, or of an older one, dispatches no more and leaves targets as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The newest request it ends.
    pub request: RequestNumber,
    /// Who asked, why and when.
    pub annotation: Annotation,
}

/// A person's approval of a stage of a rollout, and of those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Which rollout.
    pub rollout: RolloutNumber,
    /// Which stage, from 1.
    pub stage: u32,
    /// Who asked, why and when.
    pub annotation: Annotation,
}

impl Entity {
    /// The policy that decisions follow: that of the last request if it has its own, else the entity's.
    #[must_use]
    pub fn policy_in_force(&self) -> &Policy {
        self.wanted.as_ref().and_then(|wanted| wanted.policy.as_deref()).unwrap_or(&self.policy)
    }

    /// The entity as decisions see it: with the policy in force in place of its own.
    #[must_use]
    pub fn in_force(self: &Arc<Self>) -> Arc<Self> {
        match self.wanted.as_ref().and_then(|wanted| wanted.policy.as_deref()) {
            Some(policy) => Arc::new(Self { policy: policy.clone(), ..Self::clone(self) }),
            None => Arc::clone(self),
        }
    }

    /// An entity of nodes and versions that nobody has asked anything of yet.
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
            labels: Labels::default(),
            info: EntityInfo::default(),
        }
    }

    /// The newest request, or zero.
    #[must_use]
    pub fn last_request(&self) -> RequestNumber {
        self.wanted.as_ref().map_or(RequestNumber::ZERO, |wanted| wanted.request)
    }
}

impl TargetSource {
    /// Whether its targets are nodes.
    #[must_use]
    pub const fn is_nodes(&self) -> bool {
        matches!(self, Self::Nodes(_))
    }

    /// Whether a node is a target.
    #[must_use]
    pub fn picks(&self, node: &NodeName, labels: &Labels) -> bool {
        match self {
            Self::Nodes(selector) => selector.picks(node.as_str(), labels),
            Self::External(_) => false,
        }
    }
}

impl core::fmt::Display for TargetSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Nodes(selector) => write!(f, "nodes: {selector}"),
            Self::External(_) => f.write_str("what controllers report"),
        }
    }
}

impl core::fmt::Display for EntityKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Version => f.write_str("versions"),
            Self::Profile(profile) => write!(f, "profile {profile}"),
            Self::Action(action) => write!(f, "action {action}"),
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
