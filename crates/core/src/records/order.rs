//! Orders: the desired state of one node, as one document with a generation. Written only by the order
//! decider.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::entity::EntityKind;
use super::member::MemberOrder;
use super::osd::OsdsOrder;
use super::report::ReportedLedger;
use super::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::access::NamePattern;
use crate::words::counter::{AssignmentNumber, Epoch, FenceNumber, Generation, RescanNumber, Term};
use crate::words::name::{EnsembleName, EntityName, LedgerId, NodeName, ProbeName, ServiceName};
use crate::words::time::Span;
use crate::words::version::Version;

/// The desired state of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Grows with every change of the content; an agent refuses an older one.
    pub generation: Generation,
    /// The leadership term that wrote it; an agent refuses an older one.
    pub term: Term,
    /// The epoch in which it was written. A control plane that was restored from a backup begins another one: what it does not name, and
    /// named before, it may not know.
    pub epoch: Epoch,
    /// The desired state itself.
    pub content: OrderContent,
}

/// The content of an order, without its generation and term.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrderContent {
    /// Desired version of each entity. An agent starts nothing for entities that are absent, and leaves their
    /// processes as they are.
    pub entities: BTreeMap<EntityName, Assignment>,
    /// Why the node must start nothing new, if a person paused it. Checks and reports continue.
    pub paused: Option<String>,
    /// Number of the last requested rescan of the node's facts: the agent reads them again when it grows. Zero before the first,
    /// and for an agent that reports no facts.
    pub rescan: RescanNumber,
    /// The logical nodes that the node's agent hosts.
    pub hosts: BTreeMap<NodeName, Hosting>,
    /// Why the node begins no run of a workflow that it has not begun; `None` if it may.
    pub not_runnable: Option<String>,
    /// The run that begins in spite of that, and before all others: it undoes the one that failed.
    pub undo: Option<EntityName>,
    /// The runs that failed on the node, or were given up there, as the control plane knows: what follows from that for other runs is in `not_runnable`.
    pub failed_runs: BTreeSet<EntityName>,
    /// The services that the node may register; `None` for all. It is told, so that the machine itself can say what it may not.
    pub services: Option<Vec<NamePattern>>,
    /// By ensemble: what the node does for the member that it has of it. It leaves one alone that it has and that is not named here.
    pub members: BTreeMap<EnsembleName, MemberOrder>,
    /// By ensemble: what the node does for the OSDs that it has of it.
    pub osds: BTreeMap<EnsembleName, OsdsOrder>,
}

/// A logical node that is hosted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosting {
    /// Fencing number of the role.
    pub fence: FenceNumber,
    /// How long the host may be out of contact before another one takes its place. The host ends what runs on the logical node at three
    /// quarters of it.
    pub lease: Span,
}

/// A version assigned to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The version to run.
    pub version: Version,
    /// Number of this assignment; reports refer to it.
    pub number: AssignmentNumber,
    /// How the node gets to the version.
    pub method: ApplyMethod,
    /// How long the version must be healthy before the agent confirms it; `None` for an agent that does not measure it.
    pub soak: Option<Span>,
    /// With an action or the run of a workflow: which ledger may begin it. Set when the order is written.
    pub binding: LedgerBinding,
    /// With the run of a workflow: the failed assignment that is to be tried again; `None` if none is.
    pub retry: Option<AssignmentNumber>,
    /// The probe of the data store that the version changes, as the policy names it: an agent may hand over its leadership before it begins.
    pub store: Option<ProbeName>,
}

/// The ledger of a node to which an action, or the run of a workflow, is bound as long as its version is assigned: what another one
/// may have begun is not begun again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerBinding {
    /// The ledger that alone may begin it; `None` until the node has reported one.
    pub ledger: Option<LedgerId>,
    /// With the run of a workflow: number of its tasks that are complete, as another ledger had it; it goes on after them.
    pub complete: u32,
    /// The ledger that the node has instead, and that may not go on with the run of a workflow. Without `ledger`, with an action too: it
    /// may have begun with a ledger that is not known, and not with this one.
    pub lost_for: Option<LedgerId>,
}

impl OrderContent {
    /// The runs that failed on the node, if it begins others all the same: a person has seen to what failed, and it is no state of the node
    /// any more.
    #[must_use]
    pub fn dismissed_runs(&self) -> BTreeSet<EntityName> {
        if self.not_runnable.is_some() { BTreeSet::new() } else { self.failed_runs.clone() }
    }

    /// Why the node may not register a service; `None` if it may. Follows "cannot register: ".
    #[must_use]
    pub fn refuses(&self, service: &ServiceName) -> Option<String> {
        let allowed = self.services.as_deref()?;
        if allowed.iter().any(|pattern| pattern.matches(service.as_str())) {
            return None;
        }
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let allowed = if allowed.is_empty() { "none".to_string() } else { allowed.join(", ") };
        Some(format!("this node may not register service {service}; it may register: {allowed}"))
    }

    /// The content to write after `last` for a node that reports this ledger. `goes_on` tells how many tasks of a run are complete that
    /// another ledger may go on with.
    #[must_use]
    pub fn bound(
        mut self,
        last: Option<&Self>,
        ledger: Option<ReportedLedger<'_>>,
        goes_on: impl Fn(&EntityName) -> Option<u32>,
    ) -> Self {
        for (name, assignment) in &mut self.entities {
            let before = last.and_then(|last| last.entities.get(name));
            assignment.binding = assignment.binding_after(before, ledger, || goes_on(name));
        }
        self
    }

    /// Whether this content, as written, still holds for what is wanted of a node that reports this ledger.
    #[must_use]
    pub fn is_current(
        &self,
        wanted: &Self,
        ledger: Option<ReportedLedger<'_>>,
        goes_on: impl Fn(&EntityName) -> Option<u32>,
    ) -> bool {
        let same = |(name, written): (&EntityName, &Assignment),
                    (other, assigned): (&EntityName, &Assignment)| {
            name == other
                && written.version == assigned.version
                && written.number == assigned.number
                && written.method == assigned.method
                && written.soak == assigned.soak
                && written.retry == assigned.retry
                && written.store == assigned.store
                && written.binding == assigned.binding_after(Some(written), ledger, || goes_on(name))
        };
        self.paused == wanted.paused
            && self.rescan == wanted.rescan
            && self.services == wanted.services
            && self.members == wanted.members
            && self.osds == wanted.osds
            && self.not_runnable == wanted.not_runnable
            && self.undo == wanted.undo
            && self.failed_runs == wanted.failed_runs
            && self.hosts == wanted.hosts
            && self.entities.len() == wanted.entities.len()
            && self.entities.iter().zip(&wanted.entities).all(|(written, assigned)| same(written, assigned))
    }
}

impl Assignment {
    /// The ledger that may begin the run, after the assignment last written.
    fn binding_after(
        &self,
        last: Option<&Self>,
        reported: Option<ReportedLedger<'_>>,
        goes_on: impl FnOnce() -> Option<u32>,
    ) -> LedgerBinding {
        let kept = last.filter(|last| last.version == self.version).map(|last| last.binding.clone());
        let kept = kept.unwrap_or_default();
        let to =
            |ledger: Option<&LedgerId>| LedgerBinding { ledger: ledger.cloned(), ..LedgerBinding::default() };
        let is_recorded = reported.is_none_or(|reported| reported.others_are_recorded(&self.version));
        match (self.method, &kept.ledger, reported.map(|reported| reported.id)) {
            (ApplyMethod::Apply | ApplyMethod::Render, _, _) => LedgerBinding::default(),
            (ApplyMethod::Acknowledge, _, _) => to(kept.ledger.as_ref()),
            // Another ledger may have been bound to it after the backup.
            (ApplyMethod::Run | ApplyMethod::Workflow, None, Some(reported)) if !is_recorded => {
                LedgerBinding { lost_for: Some(reported.clone()), ..kept }
            }
            (ApplyMethod::Run | ApplyMethod::Workflow, None, reported) => to(reported),
            (ApplyMethod::Workflow, Some(bound), Some(reported)) if bound != reported => {
                // What the node was told once about this ledger holds.
                if kept.lost_for.as_ref() == Some(reported) {
                    return kept;
                }
                match goes_on() {
                    Some(complete) => LedgerBinding { complete, ..to(Some(reported)) },
                    None => LedgerBinding { lost_for: Some(reported.clone()), ..kept },
                }
            }
            (ApplyMethod::Workflow, Some(bound), Some(reported)) if bound == reported => {
                LedgerBinding { lost_for: None, ..kept }
            }
            (ApplyMethod::Run | ApplyMethod::Workflow, Some(_), _) => kept,
        }
    }
}

/// How a node gets to a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApplyMethod {
    /// Run the node's own apply command of the entity.
    #[default]
    Apply,
    /// Render the entity's files from the profile's revision.
    Render,
    /// Run the action once: the node was dispatched.
    Run,
    /// Carry out the run of a workflow: the node was dispatched.
    Workflow,
    /// Do nothing: the action ran before this node was a target; the version is only reported.
    Acknowledge,
}

impl ApplyMethod {
    /// The method for a target of an entity of this kind. An action that succeeded is acknowledged from then
    /// on, so that a machine that lost its memory does not run it again.
    #[must_use]
    pub const fn of(kind: &EntityKind, state: &TargetState) -> Self {
        let open = match state.outcome {
            // One that failed by its deadline may not have started: it must not be reported as run.
            AssignmentOutcome::InFlight
            | AssignmentOutcome::Unreachable { .. }
            | AssignmentOutcome::Failed { .. } => true,
            AssignmentOutcome::Succeeded { .. } => false,
        };
        match (kind, state.purpose) {
            (EntityKind::Version, _) => Self::Apply,
            (EntityKind::Profile(_), _) => Self::Render,
            (EntityKind::Action(_), AssignmentPurpose::Update) if open => Self::Run,
            (EntityKind::Workflow(_), AssignmentPurpose::Update) if open => Self::Workflow,
            (
                EntityKind::Action(_) | EntityKind::Workflow(_),
                AssignmentPurpose::Update
                | AssignmentPurpose::Adopted
                | AssignmentPurpose::Rollback
                | AssignmentPurpose::KnownGood,
            ) => Self::Acknowledge,
        }
    }
}
