//! The timeline: what a rehearsal brought, in the order in which it came. Owns nothing of how it came about.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::records::rollout::RolloutState;
use crate::rollout::thresholds::Thresholds;
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// What a rehearsal brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// When it began.
    pub began: Timestamp,
    /// When its last pass was.
    pub ended: Timestamp,
    /// How it ended.
    pub end: SimulationEnd,
    /// The version that was rolled out; `None` when nothing was.
    pub version: Option<Version>,
    /// The policy as numbers of targets, when it began.
    pub thresholds: Thresholds,
    /// How many passes the decider made.
    pub passes: u64,
    /// How many batches were opened.
    pub batches_opened: u64,
    /// The first of them, as many as were to be kept.
    pub batches: Vec<SimulatedBatch>,
    /// How things stood over time: the first pass, the last one, and some between, never more than were to be kept.
    pub samples: Vec<TimelineSample>,
    /// Most targets in flight after any pass on the way forward.
    pub most_in_flight: u64,
    /// Most targets in flight after any pass on the way back.
    pub most_returning: u64,
    /// Targets that counted as succeeded and failed later, seen or not.
    pub late: u64,
    /// When the version was called good.
    pub good_at: Option<Timestamp>,
    /// What a bad version did; `None` when it was not found bad.
    pub blast: Option<BlastRadius>,
}

/// How a rehearsal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulationEnd {
    /// The rollout reached this final state.
    Over(RolloutState),
    /// It stands still until a person does something.
    NeedsPerson(RolloutState),
    /// It waits for something that time alone does not bring.
    Stuck(RolloutState),
    /// It was still in this state when the time to look at was over.
    Horizon(RolloutState),
    /// There was nothing to roll out.
    Nothing,
}

/// One batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedBatch {
    /// Its place, from 1.
    pub number: u64,
    /// When its first target was told.
    pub opened: Timestamp,
    /// How many targets were told in it.
    pub told: u64,
    /// The first and the last of them by name; `None` when none was told.
    pub names: Option<(TargetName, TargetName)>,
    /// How many of them stand where, as far as that is known.
    pub domains: BTreeMap<Arc<str>, u64>,
}

/// How things stood after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineSample {
    /// When.
    pub at: Timestamp,
    /// Targets that were ever told the version.
    pub told: u64,
    /// Targets that run it.
    pub running: u64,
    /// Targets told something, without a verdict yet.
    pub in_flight: u64,
    /// Targets that succeeded on it.
    pub succeeded: u64,
    /// Targets that failed on it.
    pub failed: u64,
    /// Targets that are silent.
    pub unreachable: u64,
}

/// What a bad version did before it was stopped, and until everybody was off it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlastRadius {
    /// When it was found bad.
    pub stopped: Timestamp,
    /// Targets that had been told it by then, or ran it.
    pub touched: u64,
    /// The longest that any target ran it.
    pub longest: Span,
    /// How long all targets together ran it, in milliseconds.
    pub target_millis: u128,
}
