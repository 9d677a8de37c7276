//! What an agent says of one entity, and of its node: its memory and what it does right now, as report and statuses.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use super::memory::{Memory, Progress, Setback};
use super::wellness::Vital;
use crate::records::status::State;
use crate::rollout::sighting::{Doing, Health};
use crate::words::counter::AssignmentNumber;
use crate::words::name::{EntityName, ServiceName};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// What an agent is about, for one entity, right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Busy {
    /// No step runs.
    No,
    /// A step runs that is to reach this.
    Step(Progress),
    /// A step is due and cannot be begun, for this reason.
    Held(String),
}

/// What an agent says of one entity. Times are the agent's own; ages are made of them when the report is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
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
    pub doing: Doing,
    /// Its health.
    pub health: Health,
    /// Since when `running` is healthy without a break, by the agent's clock.
    pub healthy_since: Option<Timestamp>,
    /// How its configuration stands; `None` while it was told nothing.
    pub configure: Option<Standing>,
    /// How its validation stands; `None` while it was told nothing.
    pub validate: Option<Standing>,
    /// One line for a person at the machine.
    pub line: String,
}

/// A state and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The state.
    pub state: State,
    /// One line; may be empty.
    pub reason: String,
    /// Which attempt it is about, from 1; zero where nothing is attempted.
    pub attempt: u32,
    /// The failed run whose log is kept.
    pub run: Option<String>,
}

/// Names of failed runs whose logs are kept, of those that still matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs {
    /// Of the static and dynamic parts.
    pub configure: Option<String>,
    /// Of validation.
    pub validate: Option<String>,
}

impl Account {
    /// Gives account of one entity.
    #[must_use]
    pub fn of(memory: &Memory, busy: &Busy, vital: &Vital, healthy_since: Option<Timestamp>) -> Self {
        let told = memory.wanted.is_some();
        Self {
            running: memory.running.clone(),
            lacks: BTreeSet::new(),
            addressable: memory.running.is_some() || memory.progress >= Progress::Static,
            wanted: memory.wanted.as_ref().map(|wanted| wanted.version.clone()),
            answering: memory.wanted.as_ref().map_or(AssignmentNumber::ZERO, |wanted| wanted.number),
            doing: doing(memory, busy),
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
    pub fn with_runs(mut self, runs: &Runs) -> Self {
        for (standing, run) in [(&mut self.configure, &runs.configure), (&mut self.validate, &runs.validate)]
        {
            if let Some(standing) = standing.as_mut().filter(|standing| standing.state == State::Failed) {
                standing.run.clone_from(run);
            }
        }
        self
    }
}

/// What it is doing about its assignment. A failed attempt stays visible until the next one runs; a wait, until it is over.
fn doing(memory: &Memory, busy: &Busy) -> Doing {
    let Some(wanted) = &memory.wanted else { return Doing::Nothing };
    let done = memory.settled() == Some(&wanted.version);
    match (busy, &memory.setback) {
        (Busy::Held(reason), _) => Doing::Waiting { reason: reason.as_str().into() },
        (Busy::No | Busy::Step(_), Some(Setback::NotYet { evidence, .. })) => {
            Doing::Waiting { reason: evidence.summary.as_str().into() }
        }
        (Busy::No, Some(Setback::Failed { evidence, .. })) => {
            Doing::Failed { attempts: memory.failed_attempts, evidence: Arc::new(evidence.clone()) }
        }
        (Busy::No, None) if done => Doing::Nothing,
        (Busy::No, None) | (Busy::Step(_), Some(Setback::Failed { .. }) | None) => {
            Doing::Applying { attempt: memory.failed_attempts.saturating_add(1) }
        }
    }
}

fn health(vital: &Vital) -> Health {
    match vital {
        Vital::NoChecks => Health::NoChecks,
        Vital::Unknown | Vital::Well => Health::Healthy,
        Vital::Unwell(evidence) => Health::Failing { evidence: Arc::new(evidence.clone()) },
    }
}

fn configure(memory: &Memory, busy: &Busy) -> Standing {
    let mine = |aim: Progress| aim <= Progress::Dynamic;
    let past = memory.progress >= Progress::Dynamic && is_wanted(memory);
    stand(memory, busy, mine, past, "not configured yet")
}

fn validate(memory: &Memory, busy: &Busy, vital: &Vital) -> Standing {
    let mine = |aim: Progress| aim == Progress::Validated;
    let past = memory.progress == Progress::Validated && is_wanted(memory);
    if let (true, None, Vital::Unwell(evidence)) = (past, &memory.setback, vital) {
        // Nothing is done about it, because the node is paused; it is told all the same.
        let reason = evidence.summary.clone();
        return Standing { state: State::Failed, reason, attempt: 0, run: None };
    }
    stand(memory, busy, mine, past, "not validated yet")
}

fn is_wanted(memory: &Memory) -> bool {
    memory.touched.as_ref() == memory.wanted.as_ref().map(|wanted| &wanted.version)
}

/// How one category stands, where `mine` says which aims belong to it and `past` whether it is behind.
fn stand(
    memory: &Memory,
    busy: &Busy,
    mine: impl Fn(Progress) -> bool,
    past: bool,
    otherwise: &str,
) -> Standing {
    let failed = memory.failed_attempts;
    let at = |state, reason: &str| {
        let attempt = match state {
            State::Failed => failed,
            State::Running => failed.saturating_add(1),
            State::Pending | State::Success => 0,
        };
        Standing { state, reason: reason.to_string(), attempt, run: None }
    };
    match (busy, &memory.setback) {
        (Busy::Held(reason), _) if !past => at(State::Pending, reason),
        (Busy::Step(aim), None | Some(Setback::Failed { .. })) if mine(*aim) => at(State::Running, ""),
        (_, Some(Setback::NotYet { aim, evidence })) if mine(*aim) => at(State::Pending, &evidence.summary),
        (_, Some(Setback::Failed { aim, evidence })) if mine(*aim) => at(State::Failed, &evidence.summary),
        (Busy::No | Busy::Step(_) | Busy::Held(_), _) if past => at(State::Success, ""),
        (Busy::No | Busy::Step(_) | Busy::Held(_), _) => at(State::Pending, otherwise),
    }
}

fn line(memory: &Memory, busy: &Busy) -> String {
    let line = memory.line();
    match busy {
        Busy::No => line,
        Busy::Step(Progress::Begun | Progress::Static) => alloc::format!("{line} (static part runs)"),
        Busy::Step(Progress::Dynamic) => alloc::format!("{line} (dynamic part runs)"),
        Busy::Step(Progress::Validated) => alloc::format!("{line} (validation runs)"),
        Busy::Held(reason) => alloc::format!("{line} (waits: {reason})"),
    }
}

/// One standing for the node out of those of its entities: the worst, with its entity, which its reason names too.
#[must_use]
pub fn node<'a>(
    each: impl Iterator<Item = (&'a EntityName, &'a Standing)>,
) -> Option<(&'a EntityName, Standing)> {
    let rank = |state: State| match state {
        State::Failed => 3,
        State::Running => 2,
        State::Pending => 1,
        State::Success => 0,
    };
    let by_name: BTreeMap<&EntityName, &Standing> = each.collect();
    // The first of the worst, so that the reason does not jump between entities.
    let worst = by_name.into_iter().rev().max_by_key(|(_, standing)| rank(standing.state))?;
    let (name, standing) = worst;
    let reason = match standing.state {
        State::Success => String::new(),
        State::Failed | State::Running | State::Pending if standing.reason.is_empty() => name.to_string(),
        State::Failed | State::Running | State::Pending => alloc::format!("{name}: {}", standing.reason),
    };
    Some((name, Standing { reason, ..standing.clone() }))
}

#[cfg(test)]
mod tests;
