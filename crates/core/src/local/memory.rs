//! What an agent remembers of one entity across restarts, and how each outcome changes it.

use alloc::string::ToString;

use super::delay;
use crate::records::evidence::Evidence;
use crate::records::order::Assignment;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Well for this long, and earlier failures are forgotten: longer than the longest back-off, so that a service that dies
/// soon after every start is tried ever more slowly.
pub const STEADY: Span = Span::from_secs(60);

/// What an agent remembers of one entity. It is on disk before the step it describes begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityMemory {
    /// What the node was last told to be at.
    pub wanted: Option<Assignment>,
    /// The last version that validation passed on, here.
    pub running: Option<Version>,
    /// The version whose apply last began. While it differs from `running`, the host may be part way.
    pub touched: Option<Version>,
    /// How far `touched` got.
    pub progress: ApplyProgress,
    /// Failed attempts at `touched`, relapses among them, since it was last well for [`STEADY`].
    pub failed_attempts: u32,
    /// The next attempt waits until then, by the agent's clock.
    pub retry_at: Option<Timestamp>,
    /// Why the last attempt is not, or no longer, a success.
    pub failure_reason: Option<FailureReason>,
    /// For an entity of an action: the newest run that was begun here. None older is ever begun.
    pub ran: Option<ActionRun>,
}

/// A run of an action that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRun {
    /// The version whose run this is.
    pub version: Version,
    /// The outcome.
    pub outcome: RunOutcome,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// Nothing yet: it is under way, or about to be.
    Begun,
    /// It succeeded.
    Done,
    /// It failed, or nobody knows how it ended.
    Failed,
    /// It was cut short, and may run again.
    Retry,
}

/// Why an attempt is not a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureReason {
    /// Something outside is missing.
    NotYet {
        /// What the step was to reach.
        aim: ApplyProgress,
        /// What is missing.
        evidence: Evidence,
    },
    /// It failed, or became unhealthy after it was validated.
    Failed {
        /// What the step was to reach.
        aim: ApplyProgress,
        /// What was observed when it failed.
        evidence: Evidence,
    },
}

/// How far the version last touched got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ApplyProgress {
    /// Nothing of it is known to be done.
    #[default]
    Begun,
    /// The static part is done.
    Static,
    /// The dynamic part is done too.
    Dynamic,
    /// It passed validation.
    Validated,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// Done.
    Done,
    /// Not yet: something outside is missing; try again without counting a failure.
    NotYet(Evidence),
    /// Failed.
    Failed(Evidence),
}

impl EntityMemory {
    /// Takes a new assignment. Answers whether anything changed.
    ///
    /// A new telling is a fresh start, unless the version is here already and well.
    pub fn told(&mut self, wanted: Assignment) -> bool {
        if self.wanted.as_ref() == Some(&wanted) {
            return false;
        }
        if let Some(ran) = self.ran.as_ref().filter(|ran| ran.version == wanted.version) {
            // A run that was begun is not begun anew by being told again, and one that failed has failed for good.
            if ran.outcome == RunOutcome::Failed && self.failure_reason.is_none() {
                let summary = "it ran here before and did not go well; not run again".to_string();
                let evidence = Evidence { summary, ..Evidence::default() };
                self.failure_reason = Some(FailureReason::Failed { aim: ApplyProgress::Dynamic, evidence });
                self.failed_attempts = self.failed_attempts.max(1);
            }
            self.wanted = Some(wanted);
            return true;
        }
        let here =
            self.touched.as_ref() == Some(&wanted.version) && self.progress == ApplyProgress::Validated;
        if !here || self.failure_reason.is_some() {
            self.failed_attempts = 0;
            self.retry_at = None;
            self.failure_reason = None;
            if here {
                self.progress = ApplyProgress::Begun;
            }
        }
        self.wanted = Some(wanted);
        true
    }

    /// Before the static part of `version` starts: whatever was there is no longer known to be whole.
    pub fn begins(&mut self, version: &Version) {
        self.touched = Some(version.clone());
        self.progress = ApplyProgress::Begun;
    }

    /// After a step that aimed at `reached` ended.
    pub fn ended(&mut self, reached: ApplyProgress, outcome: StepOutcome, now: Timestamp, seed: u64) {
        match outcome {
            StepOutcome::Done => {
                self.progress = reached;
                self.retry_at = None;
                if reached == ApplyProgress::Validated {
                    self.running.clone_from(&self.touched);
                    self.failure_reason = None;
                }
            }
            StepOutcome::NotYet(evidence) => {
                self.retry_at = Some(now.plus(delay::FIRST));
                self.failure_reason = Some(FailureReason::NotYet { aim: reached, evidence });
            }
            StepOutcome::Failed(evidence) => {
                self.fails(reached, evidence, now, seed);
                self.progress = ApplyProgress::Begun;
            }
        }
    }

    /// The validated version turned unwell after it was well for `well_for`: it is configured again after the back-off,
    /// unless it [recovers](Self::recovered) by itself.
    pub fn relapsed(&mut self, evidence: Evidence, well_for: Span, now: Timestamp, seed: u64) {
        if well_for >= STEADY {
            self.failed_attempts = 0;
        }
        self.fails(ApplyProgress::Validated, evidence, now, seed);
    }

    /// The validated version is well again without having been configured again.
    pub fn recovered(&mut self) {
        self.retry_at = None;
        self.failure_reason = None;
    }

    /// What ran was stopped along with the machine or the agent: it is brought back at once, and that is no failure.
    pub fn interrupted(&mut self) {
        self.progress = ApplyProgress::Begun;
        self.retry_at = None;
    }

    /// After a restart of the agent: the wall clock may have moved, so no wait is longer than one can be.
    pub fn restarted(&mut self, now: Timestamp) {
        self.retry_at = self.retry_at.map(|at| at.min(now.plus(delay::LONGEST)));
    }

    /// Whether the version last touched is the one that was validated.
    #[must_use]
    pub fn settled(&self) -> Option<&Version> {
        self.touched.as_ref().filter(|_| self.progress == ApplyProgress::Validated)
    }

    fn fails(&mut self, aim: ApplyProgress, evidence: Evidence, now: Timestamp, seed: u64) {
        self.failed_attempts = self.failed_attempts.saturating_add(1);
        self.retry_at = Some(now.plus(delay::after(self.failed_attempts, seed)));
        self.failure_reason = Some(FailureReason::Failed { aim, evidence });
    }

    /// One line on where this stands, for a person at the machine.
    #[must_use]
    pub fn line(&self) -> alloc::string::String {
        let running = self.running.as_ref().map_or("nothing validated yet".to_string(), Version::to_string);
        let Some(wanted) = &self.wanted else { return alloc::format!("runs {running}, told nothing") };
        match &self.failure_reason {
            Some(FailureReason::NotYet { evidence, .. } | FailureReason::Failed { evidence, .. }) => {
                alloc::format!("runs {running}, told {}: {}", wanted.version, evidence.summary)
            }
            None => alloc::format!("runs {running}, told {}", wanted.version),
        }
    }
}

#[cfg(test)]
mod tests;
