//! What an agent remembers of one entity across restarts, and how each outcome changes it.

use alloc::string::ToString;

use super::delay;
use crate::records::evidence::Evidence;
use crate::records::order::Assignment;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// What an agent remembers of one entity. It is on disk before the step it describes begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// What the node was last told to be at.
    pub wanted: Option<Assignment>,
    /// The last version that validation passed on, here.
    pub running: Option<Version>,
    /// The version whose apply last began. While it differs from `running`, the host may be part way.
    pub touched: Option<Version>,
    /// How far `touched` got.
    pub progress: Progress,
    /// Failed attempts at `touched` since it last went well.
    pub failed_attempts: u32,
    /// The next attempt waits until then, by the agent's clock.
    pub retry_at: Option<Timestamp>,
    /// What the last failed attempt looked like.
    pub evidence: Option<Evidence>,
}

/// How far the version last touched got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Progress {
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
pub enum Outcome {
    /// Done.
    Done,
    /// Not yet: something outside is missing; try again without counting a failure.
    NotYet(Evidence),
    /// Failed.
    Failed(Evidence),
}

impl Memory {
    /// Takes a new assignment. Answers whether anything changed.
    pub fn told(&mut self, wanted: Assignment) -> bool {
        if self.wanted.as_ref() == Some(&wanted) {
            return false;
        }
        let again = self.touched.as_ref() == Some(&wanted.version) && self.progress == Progress::Validated;
        if !again {
            self.failed_attempts = 0;
            self.retry_at = None;
            self.evidence = None;
        }
        self.wanted = Some(wanted);
        true
    }

    /// Before the static part of `version` starts: whatever was there is no longer known to be whole.
    pub fn begins(&mut self, version: &Version) {
        self.touched = Some(version.clone());
        self.progress = Progress::Begun;
    }

    /// After a step that aimed at `reached` ended.
    pub fn ended(&mut self, reached: Progress, outcome: Outcome, now: Timestamp, seed: u64) {
        match outcome {
            Outcome::Done => {
                self.progress = reached;
                self.retry_at = None;
                if reached == Progress::Validated {
                    self.running.clone_from(&self.touched);
                    self.failed_attempts = 0;
                    self.evidence = None;
                }
            }
            Outcome::NotYet(evidence) => {
                self.retry_at = Some(now.plus(delay::FIRST));
                self.evidence = Some(evidence);
            }
            Outcome::Failed(evidence) => {
                self.failed_attempts = self.failed_attempts.saturating_add(1);
                self.retry_at = Some(now.plus(delay::after(self.failed_attempts, seed)));
                self.evidence = Some(evidence);
                self.progress = Progress::Begun;
            }
        }
    }

    /// One line on where this stands, for a person at the machine.
    #[must_use]
    pub fn line(&self) -> alloc::string::String {
        let running = self.running.as_ref().map_or("nothing validated yet".to_string(), Version::to_string);
        let Some(wanted) = &self.wanted else { return alloc::format!("runs {running}, told nothing") };
        match &self.evidence {
            Some(evidence) => {
                alloc::format!("runs {running}, told {}: {}", wanted.version, evidence.summary)
            }
            None => alloc::format!("runs {running}, told {}", wanted.version),
        }
    }
}
