//! What an agent remembers about one entity across restarts, and how each outcome changes it.

use alloc::string::ToString;

use super::delay;
use crate::records::evidence::Evidence;
use crate::records::order::Assignment;
use crate::records::report::LOST;
use crate::words::counter::Epoch;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Healthy time after which earlier failures are forgotten: longer than the longest back-off, so that a
/// service that ends soon after every start is tried less and less often.
pub const STEADY: Span = Span::from_secs(60);

/// What an agent remembers about one entity. It is on disk before the step it describes starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityMemory {
    /// The assignment in the last order; `None` if that order does not have the entity.
    pub wanted: Option<Assignment>,
    /// The epoch of the last order that had the entity.
    pub named_in: Epoch,
    /// The last version that passed validation on this node.
    pub running: Option<Version>,
    /// The version whose apply last started. While it differs from `running`, the host may be partly changed.
    pub touched: Option<Version>,
    /// How far the apply of `touched` got.
    pub progress: ApplyProgress,
    /// Failed attempts at `touched`, including relapses, since it was last healthy for [`STEADY`].
    pub failed_attempts: u32,
    /// Earliest time of the next attempt, by the agent's clock.
    pub retry_at: Option<Timestamp>,
    /// Why the last attempt is not, or no longer, a success.
    pub failure_reason: Option<FailureReason>,
    /// For an entity of an action: the newest run that started here. No older one ever starts.
    pub ran: Option<ActionRun>,
}

/// A run of an action that started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRun {
    /// The version of the run.
    pub version: Version,
    /// Its outcome.
    pub outcome: RunOutcome,
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// None yet: it is running, or about to.
    Begun,
    /// It succeeded.
    Done,
    /// It failed, or its outcome is unknown.
    Failed,
    /// The ledger that alone could begin it was lost: nobody knows whether it ran.
    Lost,
    /// It was interrupted, and may run again.
    Retry,
}

/// Why an attempt is not a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureReason {
    /// A precondition outside of the node is not met yet.
    NotYet {
        /// The progress that the step aimed at.
        aim: ApplyProgress,
        /// What is missing.
        evidence: Evidence,
    },
    /// It failed, or became unhealthy after it was validated.
    Failed {
        /// The progress that the step aimed at.
        aim: ApplyProgress,
        /// Evidence of the failure.
        evidence: Evidence,
    },
}

/// How far the apply of the last touched version got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ApplyProgress {
    /// Started; nothing is known to be complete.
    #[default]
    Begun,
    /// The static part is complete.
    Static,
    /// The dynamic part is complete too.
    Dynamic,
    /// It passed validation.
    Validated,
}

/// Outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It succeeded.
    Done,
    /// A precondition outside of the node is not met yet; it is tried again without counting a failure.
    NotYet(Evidence),
    /// It failed.
    Failed(Evidence),
}

impl EntityMemory {
    /// Applies a new assignment. Returns whether anything changed.
    ///
    /// A new assignment resets failures, unless its version is running and healthy already.
    pub fn assign(&mut self, wanted: Assignment) -> bool {
        if let Some(known) = &mut self.wanted
            && (Assignment { soak: wanted.soak, store: wanted.store.clone(), ..known.clone() }) == wanted
        {
            // How long it is to soak, and whose leadership is handed over before, changes nothing about applying it.
            (known.soak, known.store) = (wanted.soak, wanted.store);
            return false;
        }
        if self.is_retried_by(&wanted) {
            self.failed_attempts = 0;
            self.retry_at = None;
            self.failure_reason = None;
            self.ran = Some(ActionRun { version: wanted.version.clone(), outcome: RunOutcome::Retry });
            self.wanted = Some(wanted);
            return true;
        }
        if let Some(ran) = self.ran.as_ref().filter(|ran| ran.version == wanted.version) {
            // Assigning the same version again does not restart its run, and a failed run stays failed.
            let failure = match ran.outcome {
                RunOutcome::Failed => Some("it ran here before and failed; not run again"),
                RunOutcome::Lost => Some(LOST),
                RunOutcome::Begun | RunOutcome::Done | RunOutcome::Retry => None,
            };
            if let Some(summary) = failure.filter(|_| self.failure_reason.is_none()) {
                let summary = summary.to_string();
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

    /// Whether an assignment is a person's wish to try again what failed here: it names that failure.
    fn is_retried_by(&self, wanted: &Assignment) -> bool {
        let failed = self.ran.as_ref().filter(|ran| ran.outcome == RunOutcome::Failed);
        let known = self.wanted.as_ref().filter(|known| Some(known.number) == wanted.retry);
        failed.is_some_and(|ran| ran.version == wanted.version) && known.is_some()
    }

    /// Whether an order of this epoch that does not have the entity says that it is not wanted any more. The first ones after a restore of
    /// the control plane do not: it may not know yet what began here.
    #[must_use]
    pub fn is_withdrawn_in(&self, epoch: Epoch) -> bool {
        self.named_in >= epoch
    }

    /// Called when the order no longer has the entity: nothing is assigned, and no failure counts any more. What
    /// runs stays as it is. Returns whether anything changed.
    pub fn withdraw(&mut self) -> bool {
        if self.wanted.take().is_none() {
            return false;
        }
        self.failed_attempts = 0;
        self.retry_at = None;
        self.failure_reason = None;
        true
    }

    /// Called before the static part of `version` starts: from then on the host may be partly changed.
    pub fn begins(&mut self, version: &Version) {
        self.touched = Some(version.clone());
        self.progress = ApplyProgress::Begun;
    }

    /// Called after a step that aimed at `reached` ended.
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
                if !self.said_so(reached, &evidence) {
                    self.failure_reason = Some(FailureReason::NotYet { aim: reached, evidence });
                }
            }
            StepOutcome::Failed(evidence) => {
                self.fails(reached, evidence, now, seed);
                // The static part that led here is still done; a version that was found not to work is applied as a whole.
                if !(reached == ApplyProgress::Dynamic && self.progress == ApplyProgress::Static) {
                    self.progress = ApplyProgress::Begun;
                }
            }
        }
    }

    /// Whether its last attempt ended with that too, but for numbers, such as the time: nobody is told of each.
    fn said_so(&self, reached: ApplyProgress, now: &Evidence) -> bool {
        let Some(FailureReason::NotYet { aim, evidence }) = &self.failure_reason else { return false };
        let (before, now) = (evidence.line(), now.line());
        let is_word = |text: &char| !text.is_ascii_digit();
        *aim == reached && before.chars().filter(is_word).eq(now.chars().filter(is_word))
    }

    /// Called after a failed step of an entity whose parts only make sense together: the next attempt begins with the
    /// static part.
    pub const fn starts_over(&mut self) {
        self.progress = ApplyProgress::Begun;
    }

    /// Called when the validated version became unhealthy after `well_for`: it is configured again after the
    /// back-off, unless it [recovers](Self::recovered) first.
    pub fn relapsed(&mut self, evidence: Evidence, well_for: Span, now: Timestamp, seed: u64) {
        if well_for >= STEADY {
            self.failed_attempts = 0;
        }
        self.fails(ApplyProgress::Validated, evidence, now, seed);
    }

    /// Called when the validated version is healthy again without having been configured again.
    pub fn recovered(&mut self) {
        self.retry_at = None;
        self.failure_reason = None;
    }

    /// Called when what the last attempt was made from changed: a failed one is repeated at once.
    pub const fn inputs_changed(&mut self) {
        self.retry_at = None;
    }

    /// Called when the process was stopped along with the machine or the agent: it is started again at once,
    /// and that is no failure.
    pub fn interrupted(&mut self) {
        self.progress = ApplyProgress::Begun;
        self.retry_at = None;
    }

    /// Called after a restart of the agent: the wall clock may have changed, so waits are cut to the longest
    /// possible one.
    pub fn restarted(&mut self, now: Timestamp) {
        self.retry_at = self.retry_at.map(|at| at.min(now.plus(delay::LONGEST)));
    }

    /// The version last touched, if it was validated.
    #[must_use]
    pub fn settled(&self) -> Option<&Version> {
        self.touched.as_ref().filter(|_| self.progress == ApplyProgress::Validated)
    }

    fn fails(&mut self, aim: ApplyProgress, evidence: Evidence, now: Timestamp, seed: u64) {
        self.failed_attempts = self.failed_attempts.saturating_add(1);
        self.retry_at = Some(now.plus(delay::after(self.failed_attempts, seed)));
        self.failure_reason = Some(FailureReason::Failed { aim, evidence });
    }

    /// The present state, in one line for people on the machine.
    #[must_use]
    pub fn line(&self) -> alloc::string::String {
        let running = self.running.as_ref().map_or("no validated version".to_string(), Version::to_string);
        let Some(wanted) = &self.wanted else { return alloc::format!("runs {running}, no version assigned") };
        match &self.failure_reason {
            Some(FailureReason::NotYet { evidence, .. } | FailureReason::Failed { evidence, .. }) => {
                alloc::format!("runs {running}, assigned {}: {}", wanted.version, evidence.summary)
            }
            None => alloc::format!("runs {running}, assigned {}", wanted.version),
        }
    }
}

#[cfg(test)]
mod tests;
