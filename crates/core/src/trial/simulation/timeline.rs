//! The timeline of a simulation: what happened, in order. Holds no causes.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::records::rollout::RolloutState;
use crate::rollout::thresholds::Thresholds;
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// The timeline of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Virtual time of the start.
    pub began: Timestamp,
    /// Virtual time of the last pass.
    pub ended: Timestamp,
    /// How it ended.
    pub end: SimulationEnd,
    /// The version that was rolled out; `None` if there was none.
    pub version: Option<Version>,
    /// The policy as numbers of targets, at the start.
    pub thresholds: Thresholds,
    /// Number of passes of the decider.
    pub passes: u64,
    /// Number of batches started.
    pub batches_opened: u64,
    /// The first batches, up to the limit of the setup.
    pub batches: Vec<SimulatedBatch>,
    /// Samples of the counts: the first pass, the last one, and some between, up to the limit of the setup.
    pub samples: Vec<TimelineSample>,
    /// Most targets in flight after any pass while rolling forward.
    pub most_in_flight: u64,
    /// Most targets in flight after any pass while rolling back.
    pub most_returning: u64,
    /// Targets that succeeded and failed later, whether observed or not.
    pub late: u64,
    /// Virtual time at which the version was judged good.
    pub good_at: Option<Timestamp>,
    /// Damage of a bad version; `None` if it is not known bad.
    pub blast: Option<BlastRadius>,
}

/// How a simulation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulationEnd {
    /// The rollout reached this final state.
    Over(RolloutState),
    /// It is paused until a person acts.
    NeedsPerson(RolloutState),
    /// It waits for a condition that does not change with time alone.
    Stuck(RolloutState),
    /// It was still in this state at the horizon.
    Horizon(RolloutState),
    /// There was nothing to roll out.
    Nothing,
}

/// A batch of a simulated rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedBatch {
    /// Number of the batch, from 1.
    pub number: u64,
    /// Virtual time at which its first target was assigned.
    pub opened: Timestamp,
    /// Number of targets assigned in it.
    pub assigned: u64,
    /// The first and the last of them by name; `None` if there were none.
    pub names: Option<(TargetName, TargetName)>,
    /// Number of them in each domain, as far as known.
    pub domains: BTreeMap<Arc<str>, u64>,
}

/// Counts of targets after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineSample {
    /// Virtual time.
    pub at: Timestamp,
    /// Targets that were ever assigned the version.
    pub assigned: u64,
    /// Targets that run it at present.
    pub running: u64,
    /// Targets with an assignment without an outcome.
    pub in_flight: u64,
    /// Targets that succeeded on it.
    pub succeeded: u64,
    /// Targets that failed on it.
    pub failed: u64,
    /// Targets that are silent.
    pub unreachable: u64,
}

/// Damage of a bad version until it was stopped, and until no target ran it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlastRadius {
    /// Virtual time at which it became known bad.
    pub stopped: Timestamp,
    /// Targets that had been assigned it by then, or ran it.
    pub touched: u64,
    /// The longest time that any target ran it.
    pub longest: Span,
    /// Total time that all targets ran it, in milliseconds.
    pub target_millis: u128,
}
