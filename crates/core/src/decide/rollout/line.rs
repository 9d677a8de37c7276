//! The line: who takes the next turns. Owns the room there is, by batch, stage, domain and what is unavailable, and whom
//! it falls to.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::gate::Shutters;
use super::pass::Pass;
use super::stage;
use crate::rollout::board::lane::{FLYING, IN_LINE, Lane, LaneSet, TURNED};
use crate::rollout::board::member::Member;
use crate::rollout::board::rank::{DomainPlace, Spot};
use crate::rollout::board::tally::Tally;
use crate::rollout::board::tree::Wanted;
use crate::words::name::TargetName;

/// Where the next turns are taken, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Room {
    /// The domain whose turn it is, if the policy has domains.
    pub(super) domain: Option<DomainPlace>,
    /// Turns there are.
    pub(super) turns: u64,
    /// How many of them may go to targets that serve.
    pub(super) spare: u64,
    /// Whether it is the domain that has no more to spare, rather than all targets together.
    pub(super) domain_is_short: bool,
}

/// Why there is nowhere to take a turn.
pub(super) enum NoRoom {
    /// Nobody is in line, or another domain has to end first.
    Nobody,
    /// No target carries the domain's label.
    NoDomain(Arc<str>),
    /// Everyone in line is shut out.
    Shut,
}

/// The room for turns.
pub(super) fn room(pass: &Pass<'_>, shutters: &Shutters<'_>) -> Result<Room, NoRoom> {
    let (tree, policy) = (pass.board.tree(), &pass.board.entity().policy);
    let thresholds = pass.board.thresholds();
    let flying = u64::from(tree.tally().flying);
    let turns = thresholds.batch.saturating_sub(flying).min(stage::room(&pass.board));
    let domain = match &policy.domain {
        None => None,
        Some(domain) => Some(domain_in_turn(pass, shutters, &domain.key)?),
    };
    let left = |tally: &Tally| match policy.max_unavailable {
        None => u64::MAX,
        Some(most) => {
            most.of_at_least_one(u64::from(tally.members)).saturating_sub(u64::from(tally.unavailable))
        }
    };
    let fleet = left(tree.tally());
    let own = match (&domain, policy.max_unavailable) {
        (Some(domain), Some(_)) => left(&tree.tally_of(domain)),
        (Some(_) | None, _) => u64::MAX,
    };
    Ok(Room { domain, turns, spare: fleet.min(own), domain_is_short: own < fleet })
}

/// How many more may be brought to last known good.
pub(super) fn room_for_newcomers(pass: &Pass<'_>) -> u64 {
    let tally = pass.board.tree().tally();
    let thresholds = pass.board.thresholds();
    let batch = thresholds.batch.saturating_sub(u64::from(tally.flying));
    match thresholds.max_unavailable {
        None => batch,
        Some(most) => batch.min(most.saturating_sub(u64::from(tally.unavailable))),
    }
}

/// The domain with targets in flight; else that of the first target in line.
fn domain_in_turn(pass: &Pass<'_>, shutters: &Shutters<'_>, key: &Arc<str>) -> Result<DomainPlace, NoRoom> {
    let tree = pass.board.tree();
    let domain = |member: &Member| member.rank.as_ref().map(|rank| rank.domain.clone()).unwrap_or_default();
    if tree.iter().next().is_some_and(|member| domain(member).0 == u32::MAX) {
        return Err(NoRoom::NoDomain(key.clone()));
    }
    let flying = Wanted::all(FLYING);
    match (tree.first(&flying).map(domain), tree.last(&flying).map(domain)) {
        (Some(first), Some(last)) if first == last => return Ok(first),
        (Some(_), Some(_)) => return Err(NoRoom::Nobody),
        (_, _) => {}
    }
    let mut found = None;
    tree.walk(&Wanted::all(IN_LINE), &mut |member| {
        found = (!shutters.are_shut_for(member)).then(|| domain(member));
        found.is_none()
    });
    match found {
        Some(domain) => Ok(domain),
        None if tree.tally().count(IN_LINE) > 0 => Err(NoRoom::Shut),
        None => Err(NoRoom::Nobody),
    }
}

/// The next in line: those behind the last one whose turn it was, then those that were passed over.
pub(super) fn next(pass: &Pass<'_>, room: &Room, shutters: &Shutters<'_>) -> Vec<TargetName> {
    let within = room.domain.as_ref();
    let turned = Wanted { lanes: TURNED, after: None, within };
    let last = pass.board.tree().last(&turned).map(Member::spot);
    let mut picker =
        Picker { pass, shutters, within, turns: room.turns, spare: room.spare, names: Vec::new() };
    picker.pick(last, None);
    if last.is_some() {
        picker.pick(None, last);
    }
    picker.names
}

struct Picker<'a> {
    pass: &'a Pass<'a>,
    shutters: &'a Shutters<'a>,
    within: Option<&'a DomainPlace>,
    turns: u64,
    spare: u64,
    names: Vec<TargetName>,
}

impl Picker<'_> {
    /// Picks from behind one place up to another. Once nothing may be spared any more, only the broken are looked at.
    fn pick(&mut self, after: Option<Spot<'_>>, upto: Option<Spot<'_>>) {
        let behind = if self.spare > 0 { self.pick_in(IN_LINE, after, upto) } else { None };
        let name = behind.as_ref().and_then(|name| self.pass.board.member(name));
        if self.turns > 0 && self.spare == 0 {
            self.pick_in(LaneSet::of(&[Lane::Sick]), name.map(Member::spot).or(after), upto);
        }
    }

    /// The last one that was picked.
    fn pick_in(
        &mut self,
        lanes: LaneSet,
        after: Option<Spot<'_>>,
        upto: Option<Spot<'_>>,
    ) -> Option<TargetName> {
        let only_sick = !lanes.has(Lane::Ready);
        let wanted = Wanted { lanes, after, within: self.within };
        let mut last = None;
        if self.turns == 0 {
            return last;
        }
        self.pass.board.tree().walk(&wanted, &mut |member| {
            if upto.is_some_and(|upto| member.spot() > upto) {
                return false;
            }
            if self.shutters.are_shut_for(member) {
                return true;
            }
            if member.place.lane == Lane::Ready {
                self.spare -= 1;
            }
            self.turns -= 1;
            self.names.push(member.name.clone());
            last = Some(member.name.clone());
            self.turns > 0 && (only_sick || self.spare > 0)
        });
        last
    }
}

/// Of the names a controller chose, those that can be told, as far as there is room.
pub(super) fn fitting(
    pass: &Pass<'_>,
    room: &Room,
    shutters: &Shutters<'_>,
    chosen: &[TargetName],
) -> Vec<TargetName> {
    let (mut turns, mut spare) = (room.turns, room.spare);
    let mut names: Vec<TargetName> = Vec::new();
    for name in chosen {
        let Some(member) = pass.board.member(name) else { continue };
        let lane = member.place.lane;
        let elsewhere = room
            .domain
            .as_ref()
            .is_some_and(|domain| member.rank.as_ref().is_some_and(|rank| rank.domain != *domain));
        let costs = u64::from(lane == Lane::Ready);
        let fits = IN_LINE.has(lane) && turns > 0 && spare >= costs && !elsewhere;
        if fits && !shutters.are_shut_for(member) && !names.contains(name) {
            (turns, spare) = (turns - 1, spare - costs);
            names.push(name.clone());
        }
    }
    names
}
