//! What an agent reports about one entity, and about its node: from memory and present activity to report and
//! statuses.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::health_tracker::CheckSummary;
use super::memory::{ApplyProgress, EntityMemory, FailureReason};
use crate::records::evidence::Evidence;
use crate::records::job::Job;
use crate::records::report::{RunningStep, TargetActivity, TargetHealth};
use crate::records::status::StatusState;
use crate::words::counter::AssignmentNumber;
use crate::words::name::{EntityName, ServiceName};
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// What an agent is doing about one entity at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentActivity {
    /// No step runs.
    Idle,
    /// A step runs that aims at this progress.
    Step(ApplyProgress),
    /// A step is due but cannot start, for this reason.
    Held(String),
}

/// What an agent reports about one entity. Times are by the agent's clock; the report contains ages instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityAccount {
    /// The last version that passed validation.
    pub running: Option<Version>,
    /// Whether the static part completed on this node, for this version or an earlier one: its services may
    /// be registered.
    pub addressable: bool,
    /// Services that it waits for.
    pub waits_for: BTreeSet<ServiceName>,
    /// The step that runs while it applies the version.
    pub step: Option<RunningStep>,
    /// For the run of a workflow: its jobs, if they are known.
    pub jobs: Option<Vec<Job>>,
    /// The assigned version.
    pub wanted: Option<Version>,
    /// The assignment this answers.
    pub answering: AssignmentNumber,
    /// What it is doing about the assignment.
    pub activity: TargetActivity,
    /// Its health.
    pub health: TargetHealth,
    /// Start of the present uninterrupted healthy time on `running`, by the agent's clock.
    pub healthy_since: Option<Timestamp>,
    /// The soak on its assignment that the agent observed, and confirmed by its checks; `None` until it has.
    pub soaked: Option<Span>,
    /// Why its health was lost in the soak of its assignment, the first time.
    pub soak_failure: Option<String>,
    /// Whether the agent has started again since it accepted the assignment.
    pub agent_restarted: bool,
    /// State of its configuration; `None` without an assignment.
    pub configure: Option<StateReason>,
    /// State of its validation; `None` without an assignment.
    pub validate: Option<StateReason>,
    /// One line for people on the machine.
    pub line: String,
}

/// A state with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateReason {
    /// The state.
    pub state: StatusState,
    /// The reason, in one line; may be empty.
    pub reason: String,
    /// Number of the attempt, from 1; zero if nothing is attempted.
    pub attempt: u32,
    /// Name of the failed run whose log is stored.
    pub run: Option<String>,
}

/// Names of failed runs whose logs are stored and still relevant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailedRuns {
    /// The failed run of the static or dynamic part.
    pub configure: Option<String>,
    /// The failed run of the validation.
    pub validate: Option<String>,
}

impl EntityAccount {
    /// The report about one entity.
    #[must_use]
    pub fn of(
        memory: &EntityMemory,
        busy: &AgentActivity,
        vital: &CheckSummary,
        healthy_since: Option<Timestamp>,
    ) -> Self {
        let assigned = memory.wanted.is_some();
        Self {
            running: memory.running.clone(),
            waits_for: BTreeSet::new(),
            step: None,
            jobs: None,
            addressable: is_addressable(memory),
            wanted: memory.wanted.as_ref().map(|wanted| wanted.version.clone()),
            answering: memory.wanted.as_ref().map_or(AssignmentNumber::ZERO, |wanted| wanted.number),
            activity: activity(memory, busy),
            health: health(vital),
            healthy_since,
            soaked: None,
            soak_failure: None,
            agent_restarted: false,
            configure: assigned.then(|| configure(memory, busy)),
            validate: assigned.then(|| validate(memory, busy, vital)),
            line: line(memory, busy),
        }
    }

    /// The same report for an entity that waits for these services.
    #[must_use]
    pub fn waiting_for(mut self, waits_for: BTreeSet<ServiceName>) -> Self {
        self.waits_for = waits_for;
        self
    }

    /// The same report, with the step that runs. Dropped unless the version is being applied: an attempt after a
    /// "not yet" is reported as the wait that it was before, and needs no report of its own.
    #[must_use]
    pub fn during(mut self, step: Option<RunningStep>) -> Self {
        self.step = step.filter(|_| matches!(self.activity, TargetActivity::Applying { .. }));
        self
    }

    /// The same report, with the jobs of the run that the entity is.
    #[must_use]
    pub fn with_jobs(mut self, jobs: Option<Vec<Job>>) -> Self {
        self.jobs = jobs;
        self
    }

    /// The same report, with the soak that was confirmed, and why health was lost in it.
    #[must_use]
    pub fn having_soaked(mut self, soaked: Option<Span>, failure: Option<&str>) -> Self {
        (self.soaked, self.soak_failure) = (soaked, failure.map(Into::into));
        self
    }

    /// The same report by an agent that found this assignment accepted when it started.
    #[must_use]
    pub fn with_restart_since(mut self, found: AssignmentNumber) -> Self {
        self.agent_restarted = found != AssignmentNumber::ZERO && self.answering == found;
        self
    }

    /// The same report, with the names of stored logs.
    #[must_use]
    pub fn with_runs(mut self, runs: &FailedRuns) -> Self {
        for (standing, run) in [(&mut self.configure, &runs.configure), (&mut self.validate, &runs.validate)]
        {
            if let Some(standing) = standing.as_mut().filter(|standing| standing.state == StatusState::Failed)
            {
                standing.run.clone_from(run);
            }
        }
        self
    }
}

/// Whether the static part completed: also before an attempt that failed after it, so that a service does not come and go with
/// each attempt.
fn is_addressable(memory: &EntityMemory) -> bool {
    let failed_after_it = match &memory.failure_reason {
        Some(FailureReason::NotYet { aim, .. } | FailureReason::Failed { aim, .. }) => {
            *aim > ApplyProgress::Static
        }
        None => false,
    };
    memory.running.is_some() || memory.progress >= ApplyProgress::Static || failed_after_it
}

/// Activity on the assignment. A failed attempt stays visible until the next one runs; a wait, until it is
/// over.
fn activity(memory: &EntityMemory, busy: &AgentActivity) -> TargetActivity {
    let Some(wanted) = &memory.wanted else { return TargetActivity::Nothing };
    let done = memory.settled() == Some(&wanted.version);
    match (busy, &memory.failure_reason) {
        (AgentActivity::Held(reason), _) => TargetActivity::Waiting { reason: reason.as_str().into() },
        (AgentActivity::Idle | AgentActivity::Step(_), Some(FailureReason::NotYet { evidence, .. })) => {
            TargetActivity::Waiting { reason: evidence.line().into() }
        }
        (AgentActivity::Idle, Some(FailureReason::Failed { evidence, .. })) => {
            TargetActivity::Failed { attempts: memory.failed_attempts, evidence: Arc::new(evidence.clone()) }
        }
        (AgentActivity::Idle, None) if done => TargetActivity::Nothing,
        (AgentActivity::Idle, None) | (AgentActivity::Step(_), Some(FailureReason::Failed { .. }) | None) => {
            TargetActivity::Applying { attempt: memory.failed_attempts.saturating_add(1), waiting_for: None }
        }
    }
}

fn health(vital: &CheckSummary) -> TargetHealth {
    match vital {
        CheckSummary::NoChecks => TargetHealth::NoChecks,
        CheckSummary::Unknown | CheckSummary::Healthy => TargetHealth::Healthy,
        CheckSummary::Unhealthy(evidence) => TargetHealth::Failing { evidence: Arc::new(evidence.clone()) },
    }
}

fn configure(memory: &EntityMemory, busy: &AgentActivity) -> StateReason {
    let mine = |aim: ApplyProgress| aim <= ApplyProgress::Dynamic;
    let complete = memory.progress >= ApplyProgress::Dynamic && is_wanted(memory);
    stand(memory, busy, mine, complete, "not configured yet")
}

fn validate(memory: &EntityMemory, busy: &AgentActivity, vital: &CheckSummary) -> StateReason {
    let mine = |aim: ApplyProgress| aim == ApplyProgress::Validated;
    let complete = memory.progress == ApplyProgress::Validated && is_wanted(memory);
    if let (true, None, CheckSummary::Unhealthy(evidence)) = (complete, &memory.failure_reason, vital) {
        // The node is paused, so nothing is done about the failure, but it is reported.
        let reason = evidence.summary.clone();
        return StateReason { state: StatusState::Failed, reason, attempt: 0, run: None };
    }
    if let Some(evidence) = lost_health(memory) {
        let (reason, attempt) = (evidence.summary.clone(), memory.failed_attempts);
        return StateReason { state: StatusState::Failed, reason, attempt, run: None };
    }
    stand(memory, busy, mine, complete, "not validated yet")
}

/// Why the assigned version, which ran here, is not healthy any more. It stays failed until an attempt at it passes: one that
/// runs again and again must not hide the failure.
fn lost_health(memory: &EntityMemory) -> Option<&Evidence> {
    let wanted = memory.wanted.as_ref().map(|wanted| &wanted.version);
    match &memory.failure_reason {
        Some(FailureReason::Failed { aim: ApplyProgress::Validated, evidence }) => {
            (memory.running.as_ref() == wanted).then_some(evidence)
        }
        Some(FailureReason::Failed { .. } | FailureReason::NotYet { .. }) | None => None,
    }
}

fn is_wanted(memory: &EntityMemory) -> bool {
    memory.touched.as_ref() == memory.wanted.as_ref().map(|wanted| &wanted.version)
}

/// State of one category; `mine` tells which aims belong to it and `complete` whether they are complete.
fn stand(
    memory: &EntityMemory,
    busy: &AgentActivity,
    mine: impl Fn(ApplyProgress) -> bool,
    complete: bool,
    otherwise: &str,
) -> StateReason {
    let failed = memory.failed_attempts;
    let at = |state, reason: &str| {
        let attempt = match state {
            StatusState::Failed => failed,
            StatusState::Running => failed.saturating_add(1),
            StatusState::Pending | StatusState::Success => 0,
        };
        StateReason { state, reason: reason.to_string(), attempt, run: None }
    };
    match (busy, &memory.failure_reason) {
        (AgentActivity::Held(reason), _) if !complete => at(StatusState::Pending, reason),
        (AgentActivity::Step(aim), None | Some(FailureReason::Failed { .. })) if mine(*aim) => {
            at(StatusState::Running, "")
        }
        (_, Some(FailureReason::NotYet { aim, evidence })) if mine(*aim) => {
            at(StatusState::Pending, &evidence.summary)
        }
        (_, Some(FailureReason::Failed { aim, evidence })) if mine(*aim) => {
            at(StatusState::Failed, &evidence.summary)
        }
        (AgentActivity::Idle | AgentActivity::Step(_) | AgentActivity::Held(_), _) if complete => {
            at(StatusState::Success, "")
        }
        (AgentActivity::Idle | AgentActivity::Step(_) | AgentActivity::Held(_), _) => {
            at(StatusState::Pending, otherwise)
        }
    }
}

fn line(memory: &EntityMemory, busy: &AgentActivity) -> String {
    let line = memory.line();
    match busy {
        AgentActivity::Idle => line,
        AgentActivity::Step(ApplyProgress::Begun | ApplyProgress::Static) => {
            alloc::format!("{line} (static part running)")
        }
        AgentActivity::Step(ApplyProgress::Dynamic) => alloc::format!("{line} (dynamic part running)"),
        AgentActivity::Step(ApplyProgress::Validated) => alloc::format!("{line} (validation running)"),
        AgentActivity::Held(reason) => alloc::format!("{line} (waits: {reason})"),
    }
}

/// One state for the node from those of its entities: the worst, whose reason names its entity too.
#[must_use]
pub fn node<'a>(
    each: impl Iterator<Item = (&'a EntityName, &'a StateReason)>,
) -> Option<(&'a EntityName, StateReason)> {
    let rank = |state: StatusState| match state {
        StatusState::Failed => 3,
        StatusState::Running => 2,
        StatusState::Pending => 1,
        StatusState::Success => 0,
    };
    let by_name: BTreeMap<&EntityName, &StateReason> = each.collect();
    // The first of the worst in name order, so that the reason does not alternate between entities.
    let worst = by_name.into_iter().rev().max_by_key(|(_, standing)| rank(standing.state))?;
    let (name, standing) = worst;
    let reason = match standing.state {
        StatusState::Success => String::new(),
        StatusState::Failed | StatusState::Running | StatusState::Pending if standing.reason.is_empty() => {
            name.to_string()
        }
        StatusState::Failed | StatusState::Running | StatusState::Pending => {
            alloc::format!("{name}: {}", standing.reason)
        }
    };
    Some((name, StateReason { reason, ..standing.clone() }))
}

#[cfg(test)]
mod tests;
