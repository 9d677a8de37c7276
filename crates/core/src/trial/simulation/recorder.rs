//! Notes: what is written down while a rehearsal goes on, within bounds whatever its size.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::records::rollout::{Direction, Rollout, RolloutState, TargetCounts, VersionJudgement};
use crate::trial::simulation::behaviour::TargetBehaviour;
use crate::trial::simulation::timeline::{BlastRadius, SimulatedBatch, TimelineSample};
use crate::words::counter::RolloutNumber;
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// What is written down.
pub(super) struct TimelineRecorder {
    /// The version that is rehearsed.
    pub(super) version: Option<Version>,
    /// The newest rollout and where it stands.
    pub(super) newest: Option<(RolloutNumber, RolloutState)>,
    pub(super) good_at: Option<Timestamp>,
    /// When the version was found bad, and how many had been touched by then.
    pub(super) stopped: Option<(Timestamp, u64)>,
    pub(super) batches_opened: u64,
    pub(super) batches: Vec<SimulatedBatch>,
    pub(super) samples: Vec<TimelineSample>,
    pub(super) most_in_flight: u64,
    /// The same, on the way back.
    pub(super) most_returning: u64,
    /// How the rollout stood when it ended.
    pub(super) over: Option<TargetCounts>,
    back: bool,
    pub(super) passes: u64,
    /// Targets that were ever told the version, or ran it.
    pub(super) touched: u64,
    /// Targets that run it.
    pub(super) running: u64,
    longest: Span,
    target_millis: u128,
    /// How many had been told when the batch of the same place was full.
    full_at: Vec<u64>,
    told: u64,
    keep: TimelineDetail,
    /// How often the figures changed, and every how many of them is kept.
    changes: u64,
    stride: u64,
    last: Option<TimelineSample>,
}

/// How much of a rehearsal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineDetail {
    /// Most samples, at least 2; when there are more, every second one goes.
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
            told: 0,
            keep,
            changes: 0,
            stride: 1,
            last: None,
        }
    }

    /// Notes where a rollout stands, what is held of its version, and the batches it opened.
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
                    told: 0,
                    names: None,
                    domains: BTreeMap::new(),
                });
                self.full_at.push(batch.upto);
            }
        }
        self.batches_opened =
            rollout.batches.last().map_or(self.batches_opened, |batch| batch.number.max(self.batches_opened));
    }

    /// Notes that a target was told the version, in the batch that is open.
    pub(super) fn turn(&mut self, target: &TargetName, behaviour: &impl TargetBehaviour) {
        self.told += 1;
        let place = self.full_at.partition_point(|full| *full < self.told);
        let beyond = place >= self.batches.len() && self.batches_opened > self.keep.batches as u64;
        let place = place.min(self.batches.len().saturating_sub(1));
        let Some(batch) = self.batches.get_mut(place).filter(|_| !beyond) else { return };
        batch.told += 1;
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

    /// Notes how long a target ran the version.
    pub(super) fn ran(&mut self, span: Span) {
        self.longest = self.longest.max(span);
        self.target_millis += u128::from(span.as_millis());
    }

    /// Notes how things stand after a pass.
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

    /// How things stand at the end goes last, whatever was left out before.
    pub(super) fn finish(&mut self, at: Timestamp) {
        let Some(last) = self.last else { return };
        self.samples.truncate(self.keep.samples.max(2) - 1);
        if self.samples.last() != Some(&last) || at > last.at {
            self.samples.push(TimelineSample { at: at.max(last.at), ..last });
        }
    }

    /// What the version did, if it was found bad.
    pub(super) fn blast(&self) -> Option<BlastRadius> {
        let (stopped, touched) = self.stopped?;
        let (longest, target_millis) = (self.longest, self.target_millis);
        Some(BlastRadius { stopped, touched, longest, target_millis })
    }
}
