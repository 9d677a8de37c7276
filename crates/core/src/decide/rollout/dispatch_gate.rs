//! Dispatch gate: freezes, windows, needed services and data stores that keep targets from starting. Owns what is closed,
//! and until when; never the consequences.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::pass::Pass;
use super::store_gate::{StoreBlock, StoreGate};
use crate::decide::rollout::dispatch_block::DispatchBlock;
use crate::records::freeze::{Freeze, FreezeKind};
use crate::records::rollout::RolloutWait;
use crate::records::rollout::frozen_targets::FrozenTargets;
use crate::rollout::board::Board;
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::phase::{PhaseSet, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::words::name::{FreezeName, TargetName};
use crate::words::time::Timestamp;
use crate::words::window::{Window, WindowState};

/// What blocks every target at present.
pub(super) fn shut(pass: &Pass<'_>) -> Option<DispatchBlock> {
    frozen(pass).or_else(|| outside_windows(pass)).or_else(|| in_need(pass))
}

fn frozen(pass: &Pass<'_>) -> Option<DispatchBlock> {
    let Freeze { name, annotation, until, .. } =
        pass.environment.freeze(&pass.board.entity().name, pass.now)?;
    let (freeze, by, reason, until) =
        (name.clone(), annotation.by.clone(), annotation.reason.clone(), *until);
    Some(DispatchBlock { wait: RolloutWait::Frozen { freeze, by, reason, until }, until })
}

fn outside_windows(pass: &Pass<'_>) -> Option<DispatchBlock> {
    let windows = pass.board.entity().policy.windows.iter().filter(|window| !window.is_for_some());
    let mut opens = None;
    for window in windows {
        match window.at(pass.now) {
            WindowState::Open { .. } => return None,
            WindowState::Closed { until } => opens = [opens, Some(until)].into_iter().flatten().min(),
        }
    }
    let opens = opens?;
    Some(DispatchBlock { wait: RolloutWait::Window { opens }, until: Some(opens) })
}

fn in_need(pass: &Pass<'_>) -> Option<DispatchBlock> {
    let functional = |service| pass.environment.services.get(service).copied().unwrap_or_default();
    let needs = &pass.board.entity().policy.needs;
    let need = needs.iter().find(|need| functional(&need.service) < u64::from(need.count))?;
    let functional = functional(&need.service);
    Some(DispatchBlock::of(RolloutWait::Need { need: need.clone(), functional }))
}

/// What blocks single targets: freezes by label, windows of their own, and their data stores.
pub(super) struct DispatchGate<'a> {
    stores: Option<StoreGate<'a>>,
    freezes: Vec<&'a Freeze>,
    windows: Vec<(Window, WindowState)>,
}

impl<'a> DispatchGate<'a> {
    /// The gate for updates.
    pub(super) fn for_turns(pass: &Pass<'a>) -> Self {
        let windows = pass.board.entity().policy.windows.iter().filter(|window| window.is_for_some());
        let windows = windows.map(|window| (window.clone(), window.at(pass.now))).collect();
        Self { windows, stores: StoreGate::of(pass, true), ..Self::for_known_good(pass) }
    }

    /// The gate for assignments of last known good to newcomers.
    pub(super) fn for_known_good(pass: &Pass<'a>) -> Self {
        let environment = pass.environment;
        let picking = environment.freezes.iter().map(|freeze| &**freeze);
        let freezes = picking.filter(|freeze| freeze.is_in_force(pass.now)).collect();
        Self { freezes, windows: Vec::new(), stores: StoreGate::of(pass, false) }
    }

    /// The gate for rollbacks.
    pub(super) fn for_returns(pass: &Pass<'a>) -> Self {
        let mut gate = Self::for_known_good(pass);
        gate.freezes.retain(|freeze| freeze.kind == FreezeKind::Stop);
        gate
    }

    /// Whether the target must not be assigned anything.
    pub(super) fn are_shut_for(&self, member: &BoardMember) -> bool {
        let Some(observation) = &member.observation else { return false };
        let (name, labels, data) = (&member.name, &observation.labels, &observation.data);
        let mut own =
            self.windows.iter().filter(|(window, _)| window.is_for(name.as_str(), labels, data)).peekable();
        let outside =
            own.peek().is_some() && own.all(|(_, opening)| matches!(opening, WindowState::Closed { .. }));
        let store = || self.store_reason(member).is_some();
        outside || self.freezes.iter().any(|freeze| freeze.picks(name, labels, data)) || store()
    }

    /// Those of the targets, which may start each, that may start together.
    pub(super) fn together(&self, targets: Vec<TargetName>) -> Vec<TargetName> {
        match &self.stores {
            Some(stores) => stores.together(targets),
            None => targets,
        }
    }

    fn store_reason(&self, member: &BoardMember) -> Option<StoreBlock> {
        self.stores.as_ref()?.reason(&member.name)
    }

    /// The freeze by label that blocks the target.
    fn freeze_of(&self, member: &BoardMember) -> Option<&'a Freeze> {
        let observation = member.observation.as_ref()?;
        self.freezes
            .iter()
            .copied()
            .find(|freeze| freeze.picks(&member.name, &observation.labels, &observation.data))
    }

    /// The block of an update for which every queued target is closed.
    pub(super) fn block(&self, board: &Board) -> DispatchBlock {
        let (mut closed, mut store) = (0, None);
        let mut frozen: BTreeMap<&FreezeName, (u64, &Freeze)> = BTreeMap::new();
        let queued = PhaseSet::of(&[TargetPhase::Passing, TargetPhase::Ready, TargetPhase::Unhealthy]);
        board.tree().walk(&WalkFilter::all(queued), &mut |member| {
            closed += u64::from(self.are_shut_for(member));
            // What others wait for behind a target is said of that.
            store = match (store.take(), self.store_reason(member)) {
                (Some(StoreBlock::Own(reason)), _) | (_, Some(StoreBlock::Own(reason))) => {
                    Some(StoreBlock::Own(reason))
                }
                (first, other) => first.or(other),
            };
            if let Some(freeze) = self.freeze_of(member) {
                frozen.entry(&freeze.name).or_insert((0, freeze)).0 += 1;
            }
            true
        });
        if let Some(StoreBlock::Own(reason) | StoreBlock::Turn(reason)) = store {
            return DispatchBlock { wait: RolloutWait::Stores { reason }, until: self.until() };
        }
        let most = frozen.into_values().max_by_key(|(targets, _)| *targets);
        let frozen = most.map(|(targets, Freeze { name, annotation, .. })| FrozenTargets {
            targets,
            freeze: name.clone(),
            by: annotation.by.clone(),
            reason: annotation.reason.clone(),
            others: closed - targets,
        });
        let until = self.until();
        DispatchBlock { wait: RolloutWait::Shut { until, frozen }, until }
    }

    /// Time at which one of the blocks next ends without an operation.
    pub(super) fn until(&self) -> Option<Timestamp> {
        let windows = self.windows.iter().filter_map(|(_, opening)| match opening {
            WindowState::Closed { until } => Some(*until),
            WindowState::Open { .. } => None,
        });
        let heard = self.stores.as_ref().and_then(StoreGate::until);
        self.freezes.iter().filter_map(|freeze| freeze.until).chain(windows).chain(heard).min()
    }
}
