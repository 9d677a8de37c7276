//! The next step for one entity whose versions are runs of an action: each is begun at most once, and none that is older
//! than the newest begun here. Decides; never does.

use alloc::string::ToString;

use super::memory::{Fate, Memory, Outcome, Progress, Ran};
use super::plan::Rest;
use crate::records::evidence::Evidence;
use crate::records::order::Means;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// What an agent does next about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Run it.
    Run(Version),
    /// Take the version as run, without running anything.
    Acknowledge(Version),
    /// Nothing, for this reason, until something else is told.
    Rest(Rest),
}

/// The next step for an action.
#[must_use]
pub fn next(memory: &Memory, paused: bool) -> Step {
    let Some(wanted) = &memory.wanted else { return Step::Rest(Rest::ToldNothing) };
    let version = wanted.version.clone();
    if memory.settled() == Some(&version) {
        return Step::Rest(Rest::Right);
    }
    let ran = memory.ran.as_ref();
    match ran.filter(|ran| ran.version == version).map(|ran| ran.fate) {
        Some(Fate::Failed) => return Step::Rest(Rest::Spent),
        Some(Fate::Begun | Fate::Again) | None => {}
        // Something else was taken as run meanwhile.
        Some(Fate::Done) => return Step::Acknowledge(version),
    }
    match wanted.means {
        Means::Run if ran.is_none_or(|ran| may_run(&version, ran)) => {
            if paused {
                Step::Rest(Rest::Paused)
            } else {
                Step::Run(version)
            }
        }
        Means::Run | Means::Acknowledge | Means::Apply | Means::Render => Step::Acknowledge(version),
    }
}

/// Whether a version may run after the newest that was begun: it is newer, or that very one, which is to run again.
fn may_run(version: &Version, newest: &Ran) -> bool {
    let number = |version: &Version| version.as_numbered().map(|(_, number)| number);
    *version == newest.version || number(version) > number(&newest.version)
}

impl Memory {
    /// Before a run begins.
    pub fn runs(&mut self, version: &Version) {
        self.begins(version);
        self.ran = Some(Ran { version: version.clone(), fate: Fate::Begun });
    }

    /// After a run ended.
    pub fn finished(&mut self, outcome: Outcome, now: Timestamp, seed: u64) {
        let (fate, aim) = match &outcome {
            Outcome::Done => (Fate::Done, Progress::Validated),
            Outcome::NotYet(_) | Outcome::Failed(_) => (Fate::Failed, Progress::Dynamic),
        };
        self.end(fate);
        self.ended(aim, outcome, now, seed);
    }

    /// Takes a version as run that ran elsewhere, before this node's time, or is older than what ran here.
    pub fn acknowledges(&mut self, version: &Version) {
        self.begins(version);
        self.ended(Progress::Validated, Outcome::Done, Timestamp::EPOCH, 0);
    }

    /// The agent was stopped during a run: how that ended is not known. One that may run again is begun again.
    pub fn cut_short(&mut self, idempotent: bool, now: Timestamp, seed: u64) {
        if idempotent {
            self.end(Fate::Again);
        } else {
            let summary = "the agent was stopped while it ran; not run again".to_string();
            self.finished(Outcome::Failed(Evidence { summary, ..Evidence::default() }), now, seed);
        }
    }

    fn end(&mut self, fate: Fate) {
        if let Some(ran) = &mut self.ran {
            ran.fate = fate;
        }
    }
}

#[cfg(test)]
mod tests;
