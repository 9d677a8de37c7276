//! Dispatch capacity: how many targets may start now, by batch, stage, domain and unavailable targets, and
//! which ones.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::dispatch_gate::DispatchGate;
use super::pass::Pass;
use super::stage;
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::phase::{IN_FLIGHT_PHASES, PhaseSet, QUEUED, STARTED, TargetPhase};
use crate::rollout::board::rank::{DomainRank, OrderKeyRef};
use crate::rollout::board::tally::PhaseTally;
use crate::rollout::board::tree::walk::WalkFilter;
use crate::words::name::TargetName;

/// How many targets may start now, and in which domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DispatchCapacity {
    /// The domain to update now, if the policy has domains.
    pub(super) domain: Option<DomainRank>,
    /// Number of targets that may start.
    pub(super) turns: u64,
    /// How many of them may be available at present; starting an unavailable one costs nothing more.
    pub(super) spare: u64,
    /// Whether the domain, not the whole entity, has reached the limit of unavailable targets.
    pub(super) domain_is_short: bool,
}

/// Why no target may start.
pub(super) enum NoCapacity {
    /// No target is queued, or another domain must end first.
    Nobody,
    /// No target carries the domain's label.
    NoDomain(Arc<str>),
    /// A freeze or window blocks every queued target.
    Shut,
}

/// The capacity for updates at present.
pub(super) fn room(pass: &Pass<'_>, gate: &DispatchGate<'_>) -> Result<DispatchCapacity, NoCapacity> {
    let (tree, policy) = (pass.board.tree(), &pass.board.entity().policy);
    let thresholds = pass.board.thresholds();
    let in_flight = u64::from(tree.tally().in_flight);
    let turns = thresholds.batch.saturating_sub(in_flight).min(stage::room(&pass.board));
    let domain = match &policy.domain {
        None => None,
        Some(domain) => Some(domain_in_turn(pass, gate, &domain.key)?),
    };
    let left = |tally: &PhaseTally| match policy.max_unavailable {
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
    Ok(DispatchCapacity { domain, turns, spare: fleet.min(own), domain_is_short: own < fleet })
}

/// Number of targets that may be assigned last known good now.
pub(super) fn room_for_newcomers(pass: &Pass<'_>) -> u64 {
    let tally = pass.board.tree().tally();
    let thresholds = pass.board.thresholds();
    let batch = thresholds.batch.saturating_sub(u64::from(tally.in_flight));
    match thresholds.max_unavailable {
        None => batch,
        Some(most) => batch.min(most.saturating_sub(u64::from(tally.unavailable))),
    }
}

/// The domain with targets in flight; else that of the first queued target.
fn domain_in_turn(
    pass: &Pass<'_>,
    gate: &DispatchGate<'_>,
    key: &Arc<str>,
) -> Result<DomainRank, NoCapacity> {
    let tree = pass.board.tree();
    let domain =
        |member: &BoardMember| member.rank.as_ref().map(|rank| rank.domain.clone()).unwrap_or_default();
    if tree.iter().next().is_some_and(|member| domain(member).0 == u32::MAX) {
        return Err(NoCapacity::NoDomain(key.clone()));
    }
    let in_flight = WalkFilter::all(IN_FLIGHT_PHASES);
    match (tree.first(&in_flight).map(domain), tree.last(&in_flight).map(domain)) {
        (Some(first), Some(last)) if first == last => return Ok(first),
        (Some(_), Some(_)) => return Err(NoCapacity::Nobody),
        (_, _) => {}
    }
    let mut found = None;
    tree.walk(&WalkFilter::all(QUEUED), &mut |member| {
        found = (!gate.are_shut_for(member)).then(|| domain(member));
        found.is_none()
    });
    match found {
        Some(domain) => Ok(domain),
        None if tree.tally().count(QUEUED) > 0 => Err(NoCapacity::Shut),
        None => Err(NoCapacity::Nobody),
    }
}

/// The next queued targets: those after the last one that started, then those that were skipped.
pub(super) fn next(pass: &Pass<'_>, room: &DispatchCapacity, gate: &DispatchGate<'_>) -> Vec<TargetName> {
    let within = room.domain.as_ref();
    let turned = WalkFilter { phases: STARTED, after: None, within };
    let last = pass.board.tree().last(&turned).map(BoardMember::spot);
    let mut picker =
        DomainPicker { pass, gate, within, turns: room.turns, spare: room.spare, names: Vec::new() };
    picker.pick(last, None);
    if last.is_some() {
        picker.pick(None, last);
    }
    picker.names
}

struct DomainPicker<'a> {
    pass: &'a Pass<'a>,
    gate: &'a DispatchGate<'a>,
    within: Option<&'a DomainRank>,
    turns: u64,
    spare: u64,
    names: Vec<TargetName>,
}

impl DomainPicker<'_> {
    /// Picks targets from after one sort key up to another. Once no functional target may become unavailable,
    /// only targets that are unavailable already are picked.
    fn pick(&mut self, after: Option<OrderKeyRef<'_>>, upto: Option<OrderKeyRef<'_>>) {
        let behind = if self.spare > 0 { self.pick_in(QUEUED, after, upto) } else { None };
        let name = behind.as_ref().and_then(|name| self.pass.board.member(name));
        if self.turns > 0 && self.spare == 0 {
            self.pick_in(
                PhaseSet::of(&[TargetPhase::Unhealthy]),
                name.map(BoardMember::spot).or(after),
                upto,
            );
        }
    }

    /// The last picked target.
    fn pick_in(
        &mut self,
        phases: PhaseSet,
        after: Option<OrderKeyRef<'_>>,
        upto: Option<OrderKeyRef<'_>>,
    ) -> Option<TargetName> {
        let only_sick = !phases.has(TargetPhase::Ready);
        let wanted = WalkFilter { phases, after, within: self.within };
        let mut last = None;
        if self.turns == 0 {
            return last;
        }
        self.pass.board.tree().walk(&wanted, &mut |member| {
            if upto.is_some_and(|upto| member.spot() > upto) {
                return false;
            }
            if self.gate.are_shut_for(member) {
                return true;
            }
            if member.place.phase == TargetPhase::Ready {
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

/// Those of a hook's chosen targets that can be assigned the version, within the capacity.
pub(super) fn fitting(
    pass: &Pass<'_>,
    room: &DispatchCapacity,
    gate: &DispatchGate<'_>,
    chosen: &[TargetName],
) -> Vec<TargetName> {
    let (mut turns, mut spare) = (room.turns, room.spare);
    let mut names: Vec<TargetName> = Vec::new();
    for name in chosen {
        let Some(member) = pass.board.member(name) else { continue };
        let phase = member.place.phase;
        let elsewhere = room
            .domain
            .as_ref()
            .is_some_and(|domain| member.rank.as_ref().is_some_and(|rank| rank.domain != *domain));
        let costs = u64::from(phase == TargetPhase::Ready);
        let fits = QUEUED.has(phase) && turns > 0 && spare >= costs && !elsewhere;
        if fits && !gate.are_shut_for(member) && !names.contains(name) {
            (turns, spare) = (turns - 1, spare - costs);
            names.push(name.clone());
        }
    }
    names
}
