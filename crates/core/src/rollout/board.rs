//! The board: an entity with all its targets, each in its lane, kept up to date change by change. Owns what the rollout
//! decider reads; decides nothing. Copies are cheap and share what has not changed.

pub(crate) mod frame;
pub(crate) mod lane;
pub(crate) mod member;
pub(crate) mod revise;
pub(crate) mod tally;
mod tree;

use alloc::sync::Arc;

use frame::{Frame, Stage};
use lane::Lane;
use member::Member;
use tree::Tree;

use crate::records::entity::Entity;
use crate::records::progress::Progress;
use crate::records::rollout::{Figures, Rollout};
use crate::records::target::TargetState;
use crate::rollout::sighting::Sighting;
use crate::rollout::thresholds::Thresholds;
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;
use crate::words::version::Version;

/// An entity with all its targets.
#[derive(Debug, Clone)]
pub struct Board {
    entity: Arc<Entity>,
    progress: Arc<Progress>,
    rollout: Option<Arc<Rollout>>,
    frame: Frame,
    tree: Tree,
}

/// One target as the board has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Its name.
    pub name: &'a TargetName,
    /// What is seen of it; `None` when it is no target any more.
    pub sighting: Option<&'a Sighting>,
    /// What it was told.
    pub state: Option<&'a TargetState>,
}

impl Board {
    /// A board of no targets. `rollout` is the record of [`Progress::active`].
    #[must_use]
    pub fn new(entity: Arc<Entity>, progress: Arc<Progress>, rollout: Option<Arc<Rollout>>) -> Self {
        Self::build(entity, progress, rollout, core::iter::empty())
    }

    /// A board of these targets, which come in name order, each once.
    #[must_use]
    pub fn build(
        entity: Arc<Entity>,
        progress: Arc<Progress>,
        rollout: Option<Arc<Rollout>>,
        targets: impl Iterator<Item = (TargetName, Option<Sighting>, Option<TargetState>)>,
    ) -> Self {
        let frame = Frame::of(&entity, &progress, rollout.as_deref());
        let known = targets.filter(|(_, sighting, state)| sighting.is_some() || state.is_some());
        let tree = Tree::from_sorted(
            known.map(|(name, sighting, state)| Member::new(&frame, name, sighting, state)),
        );
        Self { entity, progress, rollout, frame, tree }
    }

    /// Takes in what is seen of a target; `None` when it left.
    pub fn fold_sighting(&mut self, target: &TargetName, sighting: Option<Sighting>) {
        let state = self.tree.get(target).and_then(|member| member.state.clone());
        self.put(target, sighting, state);
    }

    /// Takes in what a target was told; `None` when that was removed.
    pub fn fold_state(&mut self, target: &TargetName, state: Option<TargetState>) {
        let sighting = self.tree.get(target).and_then(|member| member.sighting.clone());
        self.put(target, sighting, state);
    }

    /// Takes in a changed entity. Costs as much as all targets when soak, retries or fail-fast changed.
    pub fn fold_entity(&mut self, entity: Arc<Entity>) {
        self.entity = entity;
        self.reframe();
    }

    /// Takes in changed progress with the record of its active rollout. Costs as much as all targets when a rollout
    /// starts, turns, becomes good or ends.
    pub fn fold_progress(&mut self, progress: Arc<Progress>, rollout: Option<Arc<Rollout>>) {
        self.progress = progress;
        self.rollout = rollout;
        self.reframe();
    }

    fn put(&mut self, target: &TargetName, sighting: Option<Sighting>, state: Option<TargetState>) {
        if sighting.is_none() && state.is_none() {
            self.tree.remove(target);
        } else {
            self.tree.put(Member::new(&self.frame, target.clone(), sighting, state));
        }
    }

    fn reframe(&mut self) {
        let frame = Frame::of(&self.entity, &self.progress, self.rollout.as_deref());
        if frame != self.frame {
            self.frame = frame;
            let frame = &self.frame;
            self.tree.change_all(|member| member.replace(frame));
        }
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

    /// The rollout under way.
    #[must_use]
    pub fn rollout(&self) -> Option<&Rollout> {
        self.rollout.as_deref()
    }

    /// One target.
    #[must_use]
    pub fn target(&self, name: &TargetName) -> Option<Target<'_>> {
        self.tree.get(name).map(Target::from)
    }

    /// All targets in name order, former ones of which something is kept included.
    pub fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        self.tree.iter().map(Target::from)
    }

    /// What a target is to be at, and the number its reports must answer; `None` when it was told nothing and stays as
    /// it is.
    #[must_use]
    pub fn expected(&self, name: &TargetName) -> Option<(&Version, AssignmentNumber)> {
        let state = self.tree.get(name)?.state.as_ref()?;
        Some((&state.version, state.assignment))
    }

    /// How the targets stand now. On the way back the forward figures stay as they were when it turned.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let tally = self.tree.tally();
        let targets = u64::from(tally.members);
        let in_flight = tally.of(Lane::InFlight) + tally.of(Lane::HeldFlight);
        if self.frame.stage == Stage::Back {
            let before = self.rollout().map(|rollout| rollout.figures).unwrap_or_default();
            let (returned, failed_return) = (tally.of(Lane::Succeeded), tally.of(Lane::Failed));
            return Figures { targets, in_flight, returned, failed_return, ..before };
        }
        let succeeded = tally.of(Lane::Succeeded) + tally.of(Lane::Adopted);
        let failed = tally.of(Lane::Failed) + tally.of(Lane::Departed);
        let (unreachable, held) = (tally.of(Lane::Lost) + tally.of(Lane::Away), tally.of(Lane::Held));
        let told = in_flight + succeeded + tally.of(Lane::Failed) + unreachable + held;
        let waiting = targets.saturating_sub(told + tally.of(Lane::Rest));
        let (returned, failed_return) = (0, 0);
        Figures { targets, in_flight, succeeded, failed, unreachable, held, waiting, returned, failed_return }
    }

    /// The policy's shares as numbers of this board's targets.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        let waived = self.rollout().map(|rollout| rollout.waived).unwrap_or_default();
        Thresholds::of(&self.entity.policy, u64::from(self.tree.tally().members), waived)
    }

    pub(crate) const fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(crate) const fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn shared_progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    pub(crate) fn shared_rollout(&self) -> Option<Arc<Rollout>> {
        self.rollout.clone()
    }
}

impl<'a> From<&'a Member> for Target<'a> {
    fn from(member: &'a Member) -> Self {
        Self { name: &member.name, sighting: member.sighting.as_ref(), state: member.state.as_ref() }
    }
}
