//! The board: an entity with all its targets, each in its phase, updated change by change. Owns what the
//! rollout decider reads; decides nothing. Copies are cheap and share whatever has not changed.

pub(crate) mod frame;
pub(crate) mod member;
pub(crate) mod phase;
pub(crate) mod rank;
pub(crate) mod revise;
pub(crate) mod tally;
pub(crate) mod tree;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use frame::{BoardFrame, BoardMode};
use member::BoardMember;
use phase::{MAY_HAVE_FAILED, TargetPhase};
use rank::Rank;
use rpds::RedBlackTreeMapSync;
use tree::TargetTree;
use tree::walk::WalkFilter;

use crate::records::entity::Entity;
use crate::records::progress::{Progress, RolloutActivity};
use crate::records::rollout::{Rollout, TargetCounts};
use crate::records::target::TargetState;
use crate::rollout::observation::Observation;
use crate::rollout::thresholds::{RolloutSize, Thresholds};
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// An entity with all its targets, ordered as its rollout updates them.
#[derive(Debug, Clone)]
pub struct Board {
    entity: Arc<Entity>,
    progress: Arc<Progress>,
    rollout: Option<Arc<Rollout>>,
    frame: BoardFrame,
    tree: TargetTree,
    /// The targets' ranks, by name; empty when targets are ordered by name alone.
    ranks: RedBlackTreeMapSync<TargetName, Arc<Rank>>,
}

/// One target of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardTarget<'a> {
    /// Name of the target.
    pub name: &'a TargetName,
    /// The last observation of it; `None` for a former target.
    pub observation: Option<&'a Observation>,
    /// Its assignment; `None` if it has none.
    pub state: Option<&'a TargetState>,
}

impl Board {
    /// A board without targets. `rollout` is the record of [`Progress::active`].
    #[must_use]
    pub fn new(entity: Arc<Entity>, progress: Arc<Progress>, rollout: Option<Arc<Rollout>>) -> Self {
        Self::build(entity, progress, rollout, core::iter::empty())
    }

    /// A board of these targets, which must come in name order, each once.
    #[must_use]
    pub fn build(
        entity: Arc<Entity>,
        progress: Arc<Progress>,
        rollout: Option<Arc<Rollout>>,
        targets: impl Iterator<Item = (TargetName, Option<Observation>, Option<TargetState>)>,
    ) -> Self {
        let frame = BoardFrame::of(&entity, &progress, rollout.as_deref());
        let known = targets.filter(|(_, observation, state)| observation.is_some() || state.is_some());
        let members =
            known.map(|(name, observation, state)| BoardMember::new(&frame, name, observation, state));
        let (tree, ranks) = if frame.line.is_by_name() {
            (TargetTree::from_sorted(members), RedBlackTreeMapSync::default())
        } else {
            lined_up(members.collect())
        };
        Self { entity, progress, rollout, frame, tree, ranks }
    }

    /// Applies a new observation of a target; `None` removes the target.
    pub fn fold_observation(&mut self, target: &TargetName, observation: Option<Observation>) {
        let state = self.member(target).and_then(|member| member.state.clone());
        self.put(target, observation, state);
    }

    /// Applies a changed assignment of a target; `None` removes the assignment.
    pub fn fold_state(&mut self, target: &TargetName, state: Option<TargetState>) {
        let observation = self.member(target).and_then(|member| member.observation.clone());
        self.put(target, observation, state);
    }

    /// Applies a changed entity. Costs time in proportion to all targets when soak, retries, fail-fast,
    /// domain or order changed.
    pub fn fold_entity(&mut self, entity: Arc<Entity>) {
        self.entity = entity;
        self.reframe();
    }

    /// Applies changed progress with the record of its active rollout. Costs time in proportion to all
    /// targets when a rollout starts, rolls back, becomes good or ends.
    pub fn fold_progress(&mut self, progress: Arc<Progress>, rollout: Option<Arc<Rollout>>) {
        self.progress = progress;
        self.rollout = rollout;
        self.reframe();
    }

    fn put(&mut self, target: &TargetName, observation: Option<Observation>, state: Option<TargetState>) {
        let rank = self.ranks.get(target).cloned();
        if observation.is_none() && state.is_none() {
            self.ranks.remove_mut(target);
            return self.tree.remove((rank.as_deref(), target));
        }
        let member = BoardMember::new(&self.frame, target.clone(), observation, state);
        if member.rank != rank {
            self.tree.remove((rank.as_deref(), target));
            if let Some(rank) = &member.rank {
                self.ranks.insert_mut(target.clone(), rank.clone());
            }
        }
        self.tree.put(member);
    }

    fn reframe(&mut self) {
        let frame = BoardFrame::of(&self.entity, &self.progress, self.rollout.as_deref());
        if frame == self.frame {
            return;
        }
        let same_line = frame.line == self.frame.line;
        self.frame = frame;
        let frame = &self.frame;
        if same_line {
            self.tree.change_all(|member| member.replace(frame));
        } else {
            let anew = |member: &BoardMember| {
                BoardMember::new(frame, member.name.clone(), member.observation.clone(), member.state.clone())
            };
            (self.tree, self.ranks) = lined_up(self.tree.iter().map(anew).collect());
        }
    }

    /// One target with its position on the board.
    pub(crate) fn member(&self, name: &TargetName) -> Option<&BoardMember> {
        self.tree.get((self.ranks.get(name).map(|rank| &**rank), name))
    }

    /// The entity.
    #[must_use]
    pub fn entity(&self) -> &Entity {
        &self.entity
    }

    /// Its progress.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The rollout in progress.
    #[must_use]
    pub fn rollout(&self) -> Option<&Rollout> {
        self.rollout.as_deref()
    }

    /// The version that targets are to run now: the requested one until a rollback of it begins, last known
    /// good from then on. After an abort it is the requested one, which targets keep as far as they have it.
    /// `None` before the first request.
    #[must_use]
    pub fn desired(&self) -> Option<&Version> {
        let requested = self.entity.wanted.as_ref()?;
        if requested.request > self.progress.handled {
            return Some(&requested.version);
        }
        let good = self.progress.last_known_good.as_ref();
        match self.progress.activity {
            RolloutActivity::Settled | RolloutActivity::RollingBack(_) => good.or(Some(&requested.version)),
            RolloutActivity::Abandoned | RolloutActivity::Continued => Some(&requested.version),
            RolloutActivity::RollingForward(_) => self.progress.rolling.as_ref().or(Some(&requested.version)),
        }
    }

    /// One target; `None` if it is not on the board.
    #[must_use]
    pub fn target(&self, name: &TargetName) -> Option<BoardTarget<'_>> {
        self.member(name).map(BoardTarget::from)
    }

    /// All targets in name order, including former ones that still have an assignment.
    pub fn targets(&self) -> impl Iterator<Item = BoardTarget<'_>> {
        let names: Box<dyn Iterator<Item = &BoardMember>> = if self.ranks.is_empty() {
            Box::new(self.tree.iter())
        } else {
            Box::new(self.ranks.keys().filter_map(|name| self.member(name)))
        };
        names.map(BoardTarget::from)
    }

    /// The targets that may have failed, or were given up as unreachable: of a rollout that rolls forward no others but some that are
    /// held, else all.
    pub(crate) fn failed_targets(&self) -> Vec<&TargetName> {
        if !matches!(self.frame.stage, BoardMode::Judging | BoardMode::Finishing) {
            return self.tree.iter().map(|member| &member.name).collect();
        }
        let mut names = Vec::new();
        self.tree.walk(&WalkFilter::all(MAY_HAVE_FAILED), &mut |member| {
            names.push(&member.name);
            true
        });
        names
    }

    /// How many of its targets are functional: they run a version, report, have no failure, are not drained, and are not
    /// being updated, unless their own checks passed after the update.
    #[must_use]
    pub fn functional(&self) -> u64 {
        u64::from(self.tree.tally().functional)
    }

    /// How many of its targets are in flight, not functional or silent.
    #[must_use]
    pub fn unavailable(&self) -> u64 {
        u64::from(self.tree.tally().unavailable)
    }

    /// Whether it has this target, and the target is functional and not being updated.
    #[must_use]
    pub fn is_available(&self, name: &TargetName) -> bool {
        self.member(name).is_some_and(|member| member.place.member && !member.place.unavailable)
    }

    /// Whether more than `limit` targets change their state at the next decision by their reports or by time alone.
    #[must_use]
    pub fn has_due_beyond(&self, limit: usize, now: Timestamp) -> bool {
        self.tree.has_due_beyond(limit, now)
    }

    /// The desired version of a target, and the assignment number that its reports must carry; `None` when it
    /// was never assigned a version.
    #[must_use]
    pub fn expected(&self, name: &TargetName) -> Option<(&Version, AssignmentNumber)> {
        let state = self.member(name)?.state.as_ref()?;
        Some((&state.version, state.assignment))
    }

    /// When a target that reports to have been healthy since then will have been so for its soak; `None` if no soak counts.
    #[must_use]
    pub fn soak_ends(&self, name: &TargetName, healthy_since: Option<Timestamp>) -> Option<Timestamp> {
        let (member, since) = (self.member(name)?, healthy_since?);
        match &member.state {
            Some(state) if state.awaits_soak() => Some(since.max(state.assigned_at).plus(state.soak)),
            Some(_) | None => {
                (member.place.phase == TargetPhase::Adopting).then(|| since.plus(self.frame.soak))
            }
        }
    }

    /// The present counts of targets. During a rollback the forward counts stay as they were at its start.
    #[must_use]
    pub fn counts(&self) -> TargetCounts {
        let tally = self.tree.tally();
        let targets = u64::from(tally.members);
        let in_flight = tally.of(TargetPhase::InFlight) + tally.of(TargetPhase::HeldFlight);
        if self.frame.stage == BoardMode::RollingBack {
            let before = self.rollout().map(|rollout| rollout.counts).unwrap_or_default();
            let (returned, failed_return) = (tally.of(TargetPhase::Succeeded), tally.of(TargetPhase::Failed));
            let missed_return = tally.of(TargetPhase::Lost) + tally.of(TargetPhase::MovedSilent);
            return TargetCounts { targets, in_flight, returned, failed_return, missed_return, ..before };
        }
        let succeeded = tally.of(TargetPhase::Succeeded) + tally.of(TargetPhase::Adopted);
        let failed = tally.of(TargetPhase::Failed) + tally.of(TargetPhase::Departed);
        let unreachable = tally.of(TargetPhase::Lost) + tally.of(TargetPhase::Silent);
        let held = tally.of(TargetPhase::Held) + tally.of(TargetPhase::HeldReturning);
        let failing_before = tally.of(TargetPhase::FailedAsBefore);
        let outcomes = succeeded + tally.of(TargetPhase::Failed) + failing_before;
        let assigned = in_flight + outcomes + unreachable + held;
        let waiting = targets.saturating_sub(assigned + tally.of(TargetPhase::Rest));
        let (returned, failed_return, missed_return) = (0, 0, 0);
        TargetCounts {
            targets,
            in_flight,
            succeeded,
            failed,
            failing_before,
            unreachable,
            held,
            waiting,
            returned,
            failed_return,
            missed_return,
        }
    }

    /// The policy's shares as numbers of this board's targets.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        let waived = self.rollout().map(|rollout| rollout.waived).unwrap_or_default();
        let targets = u64::from(self.tree.tally().members);
        let enrolled = self.rollout().map_or(targets, |rollout| rollout.enrolled.max(targets));
        let failing_before = match self.frame.stage {
            BoardMode::RollingBack => 0,
            BoardMode::Settled | BoardMode::Abandoned | BoardMode::Judging | BoardMode::Finishing => {
                self.tree.tally().of(TargetPhase::FailedAsBefore)
            }
        };
        let size = RolloutSize { targets, enrolled, failing_before };
        Thresholds::of(&self.entity.policy, size, waived)
    }

    pub(crate) const fn frame(&self) -> &BoardFrame {
        &self.frame
    }

    pub(crate) const fn tree(&self) -> &TargetTree {
        &self.tree
    }

    pub(crate) fn shared_entity(&self) -> Arc<Entity> {
        self.entity.clone()
    }

    pub(crate) fn shared_progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    pub(crate) fn shared_rollout(&self) -> Option<Arc<Rollout>> {
        self.rollout.clone()
    }
}

/// The targets in the order of the policy, and their ranks by name.
fn lined_up(mut members: Vec<BoardMember>) -> (TargetTree, RedBlackTreeMapSync<TargetName, Arc<Rank>>) {
    members.sort_unstable_by(|a, b| a.spot().cmp(&b.spot()));
    let ranked = members.iter().filter_map(|member| Some((member.name.clone(), member.rank.clone()?)));
    let ranks = ranked.collect();
    (TargetTree::from_sorted(members.into_iter()), ranks)
}

impl<'a> From<&'a BoardMember> for BoardTarget<'a> {
    fn from(member: &'a BoardMember) -> Self {
        Self { name: &member.name, observation: member.observation.as_ref(), state: member.state.as_ref() }
    }
}
