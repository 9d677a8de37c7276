//! The board: an entity with all its targets, each in its lane, kept up to date change by change. Owns what the rollout
//! decider reads; decides nothing. Copies are cheap and share what has not changed.

pub(crate) mod frame;
pub(crate) mod lane;
pub(crate) mod member;
pub(crate) mod rank;
pub(crate) mod revise;
pub(crate) mod tally;
pub(crate) mod tree;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use frame::{Frame, Stage};
use lane::Lane;
use member::Member;
use rank::Rank;
use rpds::RedBlackTreeMapSync;
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
    /// By name: the targets' ranks; empty when the line goes by name alone.
    ranks: RedBlackTreeMapSync<TargetName, Arc<Rank>>,
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
        let members = known.map(|(name, sighting, state)| Member::new(&frame, name, sighting, state));
        let (tree, ranks) = if frame.line.is_by_name() {
            (Tree::from_sorted(members), RedBlackTreeMapSync::default())
        } else {
            lined_up(members.collect())
        };
        Self { entity, progress, rollout, frame, tree, ranks }
    }

    /// Takes in what is seen of a target; `None` when it left.
    pub fn fold_sighting(&mut self, target: &TargetName, sighting: Option<Sighting>) {
        let state = self.member(target).and_then(|member| member.state.clone());
        self.put(target, sighting, state);
    }

    /// Takes in what a target was told; `None` when that was removed.
    pub fn fold_state(&mut self, target: &TargetName, state: Option<TargetState>) {
        let sighting = self.member(target).and_then(|member| member.sighting.clone());
        self.put(target, sighting, state);
    }

    /// Takes in a changed entity. Costs as much as all targets when soak, retries, fail-fast, domain
    /// or order changed.
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
        let rank = self.ranks.get(target).cloned();
        if sighting.is_none() && state.is_none() {
            self.ranks.remove_mut(target);
            return self.tree.remove((rank.as_deref(), target));
        }
        let member = Member::new(&self.frame, target.clone(), sighting, state);
        if member.rank != rank {
            self.tree.remove((rank.as_deref(), target));
            if let Some(rank) = &member.rank {
                self.ranks.insert_mut(target.clone(), rank.clone());
            }
        }
        self.tree.put(member);
    }

    fn reframe(&mut self) {
        let frame = Frame::of(&self.entity, &self.progress, self.rollout.as_deref());
        if frame == self.frame {
            return;
        }
        let same_line = frame.line == self.frame.line;
        self.frame = frame;
        let frame = &self.frame;
        if same_line {
            self.tree.change_all(|member| member.replace(frame));
        } else {
            let anew = |member: &Member| {
                Member::new(frame, member.name.clone(), member.sighting.clone(), member.state.clone())
            };
            (self.tree, self.ranks) = lined_up(self.tree.iter().map(anew).collect());
        }
    }

    /// One target with its place on the board.
    pub(crate) fn member(&self, name: &TargetName) -> Option<&Member> {
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

    /// The rollout under way.
    #[must_use]
    pub fn rollout(&self) -> Option<&Rollout> {
        self.rollout.as_deref()
    }

    /// One target.
    #[must_use]
    pub fn target(&self, name: &TargetName) -> Option<Target<'_>> {
        self.member(name).map(Target::from)
    }

    /// All targets in name order, former ones of which something is kept included.
    pub fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        let names: Box<dyn Iterator<Item = &Member>> = if self.ranks.is_empty() {
            Box::new(self.tree.iter())
        } else {
            Box::new(self.ranks.keys().filter_map(|name| self.member(name)))
        };
        names.map(Target::from)
    }

    /// How many of its targets serve: run something, are heard from and fail nothing.
    #[must_use]
    pub fn functional(&self) -> u64 {
        u64::from(self.tree.tally().functional)
    }

    /// What a target is to be at, and the number its reports must answer; `None` when it was told nothing and stays as
    /// it is.
    #[must_use]
    pub fn expected(&self, name: &TargetName) -> Option<(&Version, AssignmentNumber)> {
        let state = self.member(name)?.state.as_ref()?;
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

/// These targets in line, and their ranks by name.
fn lined_up(mut members: Vec<Member>) -> (Tree, RedBlackTreeMapSync<TargetName, Arc<Rank>>) {
    members.sort_unstable_by(|a, b| a.spot().cmp(&b.spot()));
    let ranked = members.iter().filter_map(|member| Some((member.name.clone(), member.rank.clone()?)));
    let ranks = ranked.collect();
    (Tree::from_sorted(members.into_iter()), ranks)
}

impl<'a> From<&'a Member> for Target<'a> {
    fn from(member: &'a Member) -> Self {
        Self { name: &member.name, sighting: member.sighting.as_ref(), state: member.state.as_ref() }
    }
}
