//! The next step for one entity whose versions are runs of an action: each is begun at most once, and none that is older
//! than the newest begun here. Decides; never does.

use alloc::string::ToString;

use super::memory::{Memory, Outcome, Progress};
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
    let begun = memory.ran.as_ref() == Some(&version);
    if begun && memory.setback.is_some() {
        return Step::Rest(Rest::Spent);
    }
    match wanted.means {
        // What was begun and is neither done nor failed was cut short, and may run again.
        Means::Run
            if begun && memory.touched.as_ref() == Some(&version)
                || is_newer(&version, memory.ran.as_ref()) =>
        {
            if paused {
                Step::Rest(Rest::Paused)
            } else {
                Step::Run(version)
            }
        }
        Means::Run | Means::Acknowledge | Means::Apply | Means::Render => Step::Acknowledge(version),
    }
}

fn is_newer(version: &Version, ran: Option<&Version>) -> bool {
    let number = |version: &Version| version.as_numbered().map(|(_, number)| number);
    ran.is_none_or(|ran| number(version) > number(ran))
}

impl Memory {
    /// Before a run begins.
    pub fn runs(&mut self, version: &Version) {
        self.begins(version);
        self.ran = Some(version.clone());
    }

    /// Takes a version as run that ran elsewhere, before this node's time, or is older than what ran here.
    pub fn acknowledges(&mut self, version: &Version) {
        self.begins(version);
        self.ended(Progress::Validated, Outcome::Done, Timestamp::EPOCH, 0);
    }

    /// The agent was stopped during a run: how that ended is not known. One that may run again is begun again.
    pub fn cut_short(&mut self, idempotent: bool, now: Timestamp, seed: u64) {
        if !idempotent {
            let summary = "the agent was stopped while it ran; not run again".to_string();
            let evidence = Evidence { summary, ..Evidence::default() };
            self.ended(Progress::Dynamic, Outcome::Failed(evidence), now, seed);
        }
    }
}

#[cfg(test)]
mod tests;
