//! What an agent says of one entity, and of its node: its memory and what it does right now, as report and statuses.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use super::health_tracker::CheckSummary;
use super::memory::{ApplyProgress, EntityMemory, FailureReason};
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::status::StatusState;
use crate::words::counter::AssignmentNumber;
use crate::words::name::{EntityName, ServiceName};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// What an agent is about, for one entity, right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentActivity {
    /// No step runs.
    Idle,
    /// A step runs that is to reach this.
    Step(ApplyProgress),
    /// A step is due and cannot be begun, for this reason.
    Held(String),
}

/// What an agent says of one entity. Times are the agent's own; ages are made of them when the report is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityAccount {
    /// The last version that validation passed on.
    pub running: Option<Version>,
    /// Whether its static part was done here, for the version it has or one before: what it offers may be registered.
    pub addressable: bool,
    /// Services that it waits for.
    pub lacks: BTreeSet<ServiceName>,
    /// What it was told to be at.
    pub wanted: Option<Version>,
    /// The assignment this answers.
    pub answering: AssignmentNumber,
    /// What it is doing about it.
    pub activity: TargetActivity,
    /// Its health.
    pub health: TargetHealth,
    /// Since when `running` is healthy without a break, by the agent's clock.
    pub healthy_since: Option<Timestamp>,
    /// How its configuration stands; `None` while it was told nothing.
    pub configure: Option<StateReason>,
    /// How its validation stands; `None` while it was told nothing.
    pub validate: Option<StateReason>,
    /// One line for a person at the machine.
    pub line: String,
}

/// A state and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateReason {
    /// The state.
    pub state: StatusState,
    /// One line; may be empty.
    pub reason: String,
    /// Which attempt it is about, from 1; zero where nothing is attempted.
    pub attempt: u32,
    /// The failed run whose log is kept.
    pub run: Option<String>,
}

/// Names of failed runs whose logs are kept, of those that still matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailedRuns {
    /// Of the static and dynamic parts.
    pub configure: Option<String>,
    /// Of validation.
    pub validate: Option<String>,
}

impl EntityAccount {
    /// Gives account of one entity.
    #[must_use]
    pub fn of(
        memory: &EntityMemory,
        busy: &AgentActivity,
        vital: &CheckSummary,
        healthy_since: Option<Timestamp>,
    ) -> Self {
        let told = memory.wanted.is_some();
        Self {
            running: memory.running.clone(),
            lacks: BTreeSet::new(),
            addressable: memory.running.is_some() || memory.progress >= ApplyProgress::Static,
            wanted: memory.wanted.as_ref().map(|wanted| wanted.version.clone()),
            answering: memory.wanted.as_ref().map_or(AssignmentNumber::ZERO, |wanted| wanted.number),
            activity: activity(memory, busy),
            health: health(vital),
            healthy_since,
            configure: told.then(|| configure(memory, busy)),
            validate: told.then(|| validate(memory, busy, vital)),
            line: line(memory, busy),
        }
    }

    /// The same account of an entity that waits for these services.
    #[must_use]
    pub fn lacking(mut self, lacks: BTreeSet<ServiceName>) -> Self {
        self.lacks = lacks;
        self
    }

    /// The same account, with the logs of what failed.
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

/// What it is doing about its assignment. A failed attempt stays visible until the next one runs; a wait, until it is over.
fn activity(memory: &EntityMemory, busy: &AgentActivity) -> TargetActivity {
    let Some(wanted) = &memory.wanted else { return TargetActivity::Nothing };
    let done = memory.settled() == Some(&wanted.version);
    match (busy, &memory.failure_reason) {
        (AgentActivity::Held(reason), _) => TargetActivity::Waiting { reason: reason.as_str().into() },
        (AgentActivity::Idle | AgentActivity::Step(_), Some(FailureReason::NotYet { evidence, .. })) => {
            TargetActivity::Waiting { reason: evidence.summary.as_str().into() }
        }
        (AgentActivity::Idle, Some(FailureReason::Failed { evidence, .. })) => {
            TargetActivity::Failed { attempts: memory.failed_attempts, evidence: Arc::new(evidence.clone()) }
        }
        (AgentActivity::Idle, None) if done => TargetActivity::Nothing,
        (AgentActivity::Idle, None) | (AgentActivity::Step(_), Some(FailureReason::Failed { .. }) | None) => {
            TargetActivity::Applying { attempt: memory.failed_attempts.saturating_add(1) }
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
    let past = memory.progress >= ApplyProgress::Dynamic && is_wanted(memory);
    stand(memory, busy, mine, past, "not configured yet")
}

fn validate(memory: &EntityMemory, busy: &AgentActivity, vital: &CheckSummary) -> StateReason {
    let mine = |aim: ApplyProgress| aim == ApplyProgress::Validated;
    let past = memory.progress == ApplyProgress::Validated && is_wanted(memory);
    if let (true, None, CheckSummary::Unhealthy(evidence)) = (past, &memory.failure_reason, vital) {
        // Nothing is done about it, because the node is paused; it is told all the same.
        let reason = evidence.summary.clone();
        return StateReason { state: StatusState::Failed, reason, attempt: 0, run: None };
    }
    stand(memory, busy, mine, past, "not validated yet")
}

fn is_wanted(memory: &EntityMemory) -> bool {
    memory.touched.as_ref() == memory.wanted.as_ref().map(|wanted| &wanted.version)
}

/// How one category stands, where `mine` says which aims belong to it and `past` whether it is behind.
fn stand(
    memory: &EntityMemory,
    busy: &AgentActivity,
    mine: impl Fn(ApplyProgress) -> bool,
    past: bool,
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
        (AgentActivity::Held(reason), _) if !past => at(StatusState::Pending, reason),
        (AgentActivity::Step(aim), None | Some(FailureReason::Failed { .. })) if mine(*aim) => {
            at(StatusState::Running, "")
        }
        (_, Some(FailureReason::NotYet { aim, evidence })) if mine(*aim) => {
            at(StatusState::Pending, &evidence.summary)
        }
        (_, Some(FailureReason::Failed { aim, evidence })) if mine(*aim) => {
            at(StatusState::Failed, &evidence.summary)
        }
        (AgentActivity::Idle | AgentActivity::Step(_) | AgentActivity::Held(_), _) if past => {
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
            alloc::format!("{line} (static part runs)")
        }
        AgentActivity::Step(ApplyProgress::Dynamic) => alloc::format!("{line} (dynamic part runs)"),
        AgentActivity::Step(ApplyProgress::Validated) => alloc::format!("{line} (validation runs)"),
        AgentActivity::Held(reason) => alloc::format!("{line} (waits: {reason})"),
    }
}

/// One standing for the node out of those of its entities: the worst, with its entity, which its reason names too.
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
    // The first of the worst, so that the reason does not jump between entities.
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
