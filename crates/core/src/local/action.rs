//! The next step for an entity whose versions are runs of an action: each run starts at most once, and none
//! that is older than the newest one started here. Decides; never acts.

use alloc::string::ToString;

use super::memory::{ActionRun, ApplyProgress, EntityMemory, RunOutcome, StepOutcome};
use super::plan::IdleReason;
use crate::records::evidence::Evidence;
use crate::records::order::{ApplyMethod, LedgerBinding};
use crate::records::report::LOST;
use crate::words::name::LedgerId;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// The next step of an agent for an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionStep {
    /// Run it.
    Run(Version),
    /// Record that nobody knows whether the version ran, without running anything.
    Lose(Version),
    /// Record the version as run, without running anything.
    Acknowledge(Version),
    /// Do nothing, for this reason, until the assignment changes.
    Rest(IdleReason),
}

/// The next step for an action of an agent with this ledger.
///
/// An order names the ledger that may begin a run. Where it is not this one, an agent before this one may have begun the
/// run and have lost its ledger.
#[must_use]
pub fn next(memory: &EntityMemory, ledger: &LedgerId, paused: bool) -> ActionStep {
    let Some(wanted) = &memory.wanted else { return ActionStep::Rest(IdleReason::NoAssignment) };
    let version = wanted.version.clone();
    if memory.settled() == Some(&version) {
        return ActionStep::Rest(IdleReason::UpToDate);
    }
    let ran = memory.ran.as_ref();
    match ran.filter(|ran| ran.version == version).map(|ran| ran.outcome) {
        Some(RunOutcome::Failed | RunOutcome::Lost) => {
            return ActionStep::Rest(IdleReason::AttemptsExhausted);
        }
        Some(RunOutcome::Begun | RunOutcome::Retry) | None => {}
        // A different version was acknowledged meanwhile.
        Some(RunOutcome::Done) => return ActionStep::Acknowledge(version),
    }
    match wanted.method {
        ApplyMethod::Run | ApplyMethod::Workflow if ran.is_none_or(|ran| may_run(&version, ran)) => {
            let known = ran.is_some_and(|ran| ran.version == version);
            let LedgerBinding { ledger: bound, lost_for, .. } = &wanted.binding;
            match bound {
                Some(bound) if bound != ledger && wanted.method == ApplyMethod::Workflow => {
                    match lost_for.as_ref() == Some(ledger) {
                        true => ActionStep::Lose(version),
                        // The control plane has yet to see this ledger.
                        false => ActionStep::Rest(IdleReason::LedgerNotRecorded),
                    }
                }
                Some(bound) if !known && bound != ledger => ActionStep::Lose(version),
                // A control plane that was restored cannot know whether one before this was bound to it.
                None if !known && lost_for.as_ref() == Some(ledger) => ActionStep::Lose(version),
                None if !known => ActionStep::Rest(IdleReason::LedgerNotRecorded),
                Some(_) | None if paused => ActionStep::Rest(IdleReason::Paused),
                Some(_) | None => ActionStep::Run(version),
            }
        }
        ApplyMethod::Run
        | ApplyMethod::Workflow
        | ApplyMethod::Acknowledge
        | ApplyMethod::Apply
        | ApplyMethod::Render => ActionStep::Acknowledge(version),
    }
}

/// Whether a version may run after the newest one started: it is newer, or the same one and to be retried.
fn may_run(version: &Version, newest: &ActionRun) -> bool {
    let number = |version: &Version| version.as_numbered().map(|(_, number)| number);
    *version == newest.version || number(version) > number(&newest.version)
}

impl EntityMemory {
    /// Called before a run starts.
    pub fn runs(&mut self, version: &Version) {
        self.begins(version);
        self.ran = Some(ActionRun { version: version.clone(), outcome: RunOutcome::Begun });
    }

    /// Called after a run ended.
    pub fn finished(&mut self, outcome: StepOutcome, now: Timestamp, seed: u64) {
        let (run, progress) = match &outcome {
            StepOutcome::Done => (RunOutcome::Done, ApplyProgress::Validated),
            StepOutcome::NotYet(_) | StepOutcome::Failed(_) => (RunOutcome::Failed, ApplyProgress::Dynamic),
        };
        self.end(run);
        self.ended(progress, outcome, now, seed);
    }

    /// Called when an agent before this one may have begun the run, and lost its ledger. An idempotent action is run
    /// again.
    pub fn loses(&mut self, version: &Version, idempotent: bool, now: Timestamp, seed: u64) {
        self.runs(version);
        if idempotent {
            self.end(RunOutcome::Retry);
        } else {
            let evidence = Evidence { summary: LOST.to_string(), ..Evidence::default() };
            self.finished(StepOutcome::Failed(evidence), now, seed);
            self.end(RunOutcome::Lost);
        }
    }

    /// Records a version as run that ran elsewhere, before this node's time, or is older than the last run
    /// here.
    pub fn acknowledges(&mut self, version: &Version) {
        self.begins(version);
        self.ended(ApplyProgress::Validated, StepOutcome::Done, Timestamp::EPOCH, 0);
    }

    /// Called when the agent was stopped during a run, whose outcome is therefore unknown. An idempotent
    /// action is run again.
    pub fn cut_short(&mut self, idempotent: bool, now: Timestamp, seed: u64) {
        if idempotent {
            self.end(RunOutcome::Retry);
        } else {
            let summary = "the agent stopped while it ran; not run again".to_string();
            self.finished(StepOutcome::Failed(Evidence { summary, ..Evidence::default() }), now, seed);
        }
    }

    fn end(&mut self, outcome: RunOutcome) {
        if let Some(ran) = &mut self.ran {
            ran.outcome = outcome;
        }
    }
}

#[cfg(test)]
mod tests;
