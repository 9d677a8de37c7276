//! The recorder: stores the timeline of a simulation, bounded in size however long it is.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::records::rollout::{Direction, Rollout, RolloutState, TargetCounts, VersionJudgement};
use crate::trial::simulation::behaviour::TargetBehaviour;
use crate::trial::simulation::timeline::{BlastRadius, SimulatedBatch, TimelineSample};
use crate::words::counter::RolloutNumber;
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Recorder of a simulation's timeline.
pub(super) struct TimelineRecorder {
    /// The simulated version.
    pub(super) version: Option<Version>,
    /// Number and state of the newest rollout.
    pub(super) newest: Option<(RolloutNumber, RolloutState)>,
    pub(super) good_at: Option<Timestamp>,
    /// Time at which the version became known bad, and the number of touched targets by then.
    pub(super) stopped: Option<(Timestamp, u64)>,
    pub(super) batches_opened: u64,
    pub(super) batches: Vec<SimulatedBatch>,
    pub(super) samples: Vec<TimelineSample>,
    pub(super) most_in_flight: u64,
    /// The same during a rollback.
    pub(super) most_returning: u64,
    /// Counts of the rollout when it ended.
    pub(super) over: Option<TargetCounts>,
    back: bool,
    pub(super) passes: u64,
    /// Targets that were ever assigned the version, or ran it.
    pub(super) touched: u64,
    /// Targets that run it at present.
    pub(super) running: u64,
    longest: Span,
    target_millis: u128,
    /// By batch: number of assigned targets at which it is full.
    full_at: Vec<u64>,
    assigned: u64,
    keep: TimelineDetail,
    /// Number of changes of the counts; one in `stride` is kept as a sample.
    changes: u64,
    stride: u64,
    last: Option<TimelineSample>,
}

/// How much of a simulation's timeline is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineDetail {
    /// Most samples, at least 2; when there are more, every second one is dropped.
    pub samples: usize,
    /// Most batches; the first ones are kept.
    pub batches: usize,
}

impl TimelineRecorder {
    pub(super) const fn new(version: Option<Version>, keep: TimelineDetail) -> Self {
        Self {
            version,
            newest: None,
            good_at: None,
            stopped: None,
            batches_opened: 0,
            batches: Vec::new(),
            samples: Vec::new(),
            most_in_flight: 0,
            most_returning: 0,
            over: None,
            back: false,
            passes: 0,
            touched: 0,
            running: 0,
            longest: Span::ZERO,
            target_millis: 0,
            full_at: Vec::new(),
            assigned: 0,
            keep,
            changes: 0,
            stride: 1,
            last: None,
        }
    }

    /// Records the state of a rollout, the judgement of its version, and the batches it started.
    pub(super) fn rollout(&mut self, rollout: &Rollout) {
        if self.newest.as_ref().is_none_or(|(number, _)| rollout.number >= *number) {
            self.newest = Some((rollout.number, rollout.state.clone()));
        }
        if self.version.as_ref() != Some(&rollout.version) {
            return;
        }
        self.back = rollout.direction != Direction::Forward;
        self.over = rollout.is_over().then_some(rollout.counts);
        match &rollout.judgement {
            VersionJudgement::Open => {}
            VersionJudgement::Good { at } => self.good_at = self.good_at.or(Some(*at)),
            VersionJudgement::Bad { at, .. } => self.stopped = self.stopped.or(Some((*at, self.touched))),
        }
        for batch in rollout.batches.iter().filter(|batch| batch.number > self.batches_opened) {
            if self.batches.len() < self.keep.batches {
                let (number, opened) = (batch.number, batch.opened);
                self.batches.push(SimulatedBatch {
                    number,
                    opened,
                    assigned: 0,
                    names: None,
                    domains: BTreeMap::new(),
                });
                self.full_at.push(batch.upto);
            }
        }
        self.batches_opened =
            rollout.batches.last().map_or(self.batches_opened, |batch| batch.number.max(self.batches_opened));
    }

    /// Records that a target was assigned the version, in the present batch.
    pub(super) fn turn(&mut self, target: &TargetName, behaviour: &impl TargetBehaviour) {
        self.assigned += 1;
        let place = self.full_at.partition_point(|full| *full < self.assigned);
        let beyond = place >= self.batches.len() && self.batches_opened > self.keep.batches as u64;
        let place = place.min(self.batches.len().saturating_sub(1));
        let Some(batch) = self.batches.get_mut(place).filter(|_| !beyond) else { return };
        batch.assigned += 1;
        batch.names = Some(match batch.names.take() {
            None => (target.clone(), target.clone()),
            Some((first, last)) if *target > last => (first, target.clone()),
            Some((first, last)) if *target < first => (target.clone(), last),
            Some(names) => names,
        });
        if let Some(domain) = behaviour.domain(target) {
            *batch.domains.entry(domain).or_default() += 1;
        }
    }

    /// Records how long a target ran the version.
    pub(super) fn ran(&mut self, span: Span) {
        self.longest = self.longest.max(span);
        self.target_millis += u128::from(span.as_millis());
    }

    /// Records the counts after a pass.
    pub(super) fn sample(&mut self, sample: TimelineSample) {
        let most = if self.back { &mut self.most_returning } else { &mut self.most_in_flight };
        *most = sample.in_flight.max(*most);
        let same = self.last.is_some_and(|last| TimelineSample { at: last.at, ..sample } == last);
        if !same {
            if self.changes.is_multiple_of(self.stride) {
                self.samples.push(sample);
            }
            self.changes += 1;
            self.last = Some(sample);
        }
        if self.samples.len() > self.keep.samples.max(2) {
            let mut place = 0_usize;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Adds the final counts as the last sample, whatever was dropped before.
    pub(super) fn finish(&mut self, at: Timestamp) {
        let Some(last) = self.last else { return };
        self.samples.truncate(self.keep.samples.max(2) - 1);
        if self.samples.last() != Some(&last) || at > last.at {
            self.samples.push(TimelineSample { at: at.max(last.at), ..last });
        }
    }

    /// The damage of the version, if it is known bad.
    pub(super) fn blast(&self) -> Option<BlastRadius> {
        let (stopped, touched) = self.stopped?;
        let (longest, target_millis) = (self.longest, self.target_millis);
        Some(BlastRadius { stopped, touched, longest, target_millis })
    }
}
