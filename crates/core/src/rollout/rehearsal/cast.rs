//! The cast: the targets of a rehearsal, each with what it still has to show. Owns when a target shows what; decides
//! nothing about the rollout.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::behaviour::Answer;
use crate::records::evidence::Evidence;
use crate::records::target::TargetState;
use crate::rollout::board::{Board, Target};
use crate::rollout::sighting::{Contact, Doing, Health, Sighting};
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};

/// The targets of a rehearsal, in name order.
pub(super) struct Cast {
    pub(super) actors: Vec<Actor>,
    pending: BTreeMap<Timestamp, Vec<Cue>>,
    could_not: Arc<Evidence>,
    sick: Arc<Evidence>,
}

/// One target.
pub(super) struct Actor {
    pub(super) name: TargetName,
    /// What it was told last; cues for anything older are dropped.
    pub(super) assignment: AssignmentNumber,
    /// Since when it runs the version that is rehearsed.
    pub(super) since: Option<Timestamp>,
    /// Whether it was ever told that version, or ran it.
    pub(super) touched: bool,
    /// Whether it counts as succeeded.
    pub(super) succeeded: bool,
    /// Whether its check fails by now.
    pub(super) sick: bool,
    /// Whether it is not heard from, and so does nothing about what it is told.
    pub(super) silent: bool,
}

/// What one target shows at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cue {
    pub(super) actor: usize,
    assignment: AssignmentNumber,
    pub(super) shows: Shows,
}

/// What a target shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// It runs what it was told, and is healthy.
    Well,
    /// It runs what it was told, and a check fails.
    Sick,
    /// It could not, after so many attempts.
    CouldNot(u32),
    /// It is not heard from any more.
    Silence,
}

impl Cast {
    /// The targets of a board.
    pub(super) fn of(board: &Board) -> Self {
        let (could_not, sick) = (said("could not apply it"), said("a check fails"));
        let actors = board.targets().map(Actor::of).collect();
        Self { actors, pending: BTreeMap::new(), could_not, sick }
    }

    /// The place of a target; looked for near `hint` first, because targets come in name order.
    pub(super) fn find(&self, hint: usize, name: &TargetName) -> Option<usize> {
        let ahead = self.actors.get(hint..).unwrap_or_default();
        if ahead.first().is_none_or(|first| first.name > *name) {
            return self.actors.binary_search_by(|actor| actor.name.cmp(name)).ok();
        }
        let mut reach = 1;
        while ahead.get(reach).is_some_and(|actor| actor.name <= *name) {
            reach *= 2;
        }
        let near = ahead.get(reach / 2..ahead.len().min(reach)).unwrap_or_default();
        let place = near.binary_search_by(|actor| actor.name.cmp(name)).ok()?;
        Some(hint + reach / 2 + place)
    }

    /// Notes what a target will show; `slot` says in which pass a time falls.
    pub(super) fn expect(
        &mut self,
        actor: usize,
        told_at: Timestamp,
        answer: Answer,
        slot: impl Fn(Timestamp) -> Timestamp,
    ) {
        let Some(assignment) = self.actors.get(actor).map(|actor| actor.assignment) else { return };
        let mut note = |at: Timestamp, shows| {
            self.pending.entry(slot(at)).or_default().push(Cue { actor, assignment, shows });
        };
        match answer {
            Answer::Succeeds { apply } => note(told_at.plus(apply), Shows::Well),
            Answer::Fails { apply, attempts } => note(told_at.plus(apply), Shows::CouldNot(attempts)),
            Answer::Sickens { apply, healthy_for: Span::ZERO } => note(told_at.plus(apply), Shows::Sick),
            Answer::Sickens { apply, healthy_for } => {
                note(told_at.plus(apply), Shows::Well);
                note(told_at.plus(apply).plus(healthy_for), Shows::Sick);
            }
            Answer::Hangs => {}
            Answer::FallsSilent { after } => note(told_at.plus(after), Shows::Silence),
        }
    }

    /// When the next target shows something.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.pending.first_key_value().map(|(at, _)| *at)
    }

    /// Takes out what is shown by `now`, in name order, but for what a newer assignment has overtaken.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<Cue> {
        let mut due = Vec::new();
        while self.next().is_some_and(|at| at <= now) {
            due.extend(self.pending.pop_first().into_iter().flat_map(|(_, cues)| cues));
        }
        due.retain(|cue| self.actors.get(cue.actor).is_some_and(|actor| actor.assignment == cue.assignment));
        due.sort_by_key(|cue| cue.actor);
        due
    }

    /// What is seen of a target that shows this.
    pub(super) fn sighting(
        &self,
        shows: Shows,
        before: &Sighting,
        state: &TargetState,
        now: Timestamp,
    ) -> Sighting {
        let answers = Sighting { answering: state.assignment, reported_at: now, ..before.clone() };
        let runs = || Some(state.version.clone());
        match shows {
            Shows::Well => Sighting {
                running: runs(),
                doing: Doing::Nothing,
                health: Health::Healthy,
                healthy_since: Some(now),
                ..answers
            },
            Shows::Sick => Sighting {
                running: runs(),
                doing: Doing::Nothing,
                health: Health::Failing { evidence: self.sick.clone() },
                healthy_since: None,
                ..answers
            },
            Shows::CouldNot(attempts) => {
                Sighting { doing: Doing::Failed { attempts, evidence: self.could_not.clone() }, ..answers }
            }
            Shows::Silence => Sighting { contact: Contact::Unreachable, ..before.clone() },
        }
    }

    /// How many count as succeeded although their check fails, or is still to fail.
    pub(super) fn late(&self) -> u64 {
        let to_fail = self.pending.values().flatten().filter(|cue| cue.shows == Shows::Sick);
        let still = |cue: &&Cue| {
            let actor = self.actors.get(cue.actor);
            actor.is_some_and(|actor| actor.succeeded && !actor.sick && actor.assignment == cue.assignment)
        };
        let later = to_fail.filter(still).count();
        let seen = self.actors.iter().filter(|actor| actor.succeeded && actor.sick).count();
        u64::try_from(seen + later).unwrap_or(u64::MAX)
    }
}

impl Actor {
    fn of(target: Target<'_>) -> Self {
        let told = target.state.map(|state| state.assignment).unwrap_or_default();
        let silent = target.sighting.is_none_or(|sighting| sighting.contact != Contact::Up);
        let (since, touched, succeeded, sick) = (None, false, false, false);
        Self { name: target.name.clone(), assignment: told, since, touched, succeeded, sick, silent }
    }

    /// Notes what it shows; says whether it runs what it was told.
    pub(super) fn show(&mut self, shows: Shows) -> bool {
        self.sick = shows == Shows::Sick;
        self.silent |= shows == Shows::Silence;
        matches!(shows, Shows::Well | Shows::Sick)
    }
}

fn said(summary: &str) -> Arc<Evidence> {
    Arc::new(Evidence { summary: summary.into(), ..Evidence::default() })
}
