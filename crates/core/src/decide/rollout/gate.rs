//! Gates: what around a rollout keeps targets from taking their turn: freezes, windows, services that are needed. Owns
//! which of them is shut, and until when; never what follows.

use alloc::vec::Vec;

use super::pass::Pass;
use crate::records::freeze::{Freeze, Strength};
use crate::records::rollout::Wait;
use crate::rollout::board::member::Member;
use crate::words::time::Timestamp;
use crate::words::window::{Opening, Window};

/// Why nobody takes a turn, and when that changes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gate {
    pub(super) wait: Wait,
    pub(super) until: Option<Timestamp>,
}

impl Gate {
    /// A gate that time does not open.
    pub(super) const fn of(wait: Wait) -> Self {
        Self { wait, until: None }
    }
}

/// The gate that is shut for every target.
pub(super) fn shut(pass: &Pass<'_>) -> Option<Gate> {
    frozen(pass).or_else(|| outside_windows(pass)).or_else(|| in_need(pass))
}

fn frozen(pass: &Pass<'_>) -> Option<Gate> {
    let Freeze { name, by, why, until, .. } = pass.around.freeze(&pass.board.entity().name, pass.now)?;
    let (freeze, by, why, until) = (name.clone(), by.clone(), why.clone(), *until);
    Some(Gate { wait: Wait::Frozen { freeze, by, why, until }, until })
}

fn outside_windows(pass: &Pass<'_>) -> Option<Gate> {
    let windows = pass.board.entity().policy.windows.iter().filter(|window| !window.is_for_some());
    let mut opens = None;
    for window in windows {
        match window.at(pass.now) {
            Opening::Open { .. } => return None,
            Opening::Closed { until } => opens = [opens, Some(until)].into_iter().flatten().min(),
        }
    }
    let opens = opens?;
    Some(Gate { wait: Wait::Window { opens }, until: Some(opens) })
}

fn in_need(pass: &Pass<'_>) -> Option<Gate> {
    let functional = |service| pass.around.services.get(service).copied().unwrap_or_default();
    let needs = &pass.board.entity().policy.needs;
    let need = needs.iter().find(|need| functional(&need.service) < u64::from(need.count))?;
    Some(Gate::of(Wait::Need { need: need.clone() }))
}

/// What keeps single targets from being told something: freezes by label, and windows of their own.
pub(super) struct Shutters<'a> {
    freezes: Vec<&'a Freeze>,
    windows: Vec<(Window, Opening)>,
}

impl<'a> Shutters<'a> {
    /// Those for a turn.
    pub(super) fn for_turns(pass: &Pass<'a>) -> Self {
        let windows = pass.board.entity().policy.windows.iter().filter(|window| window.is_for_some());
        let windows = windows.map(|window| (window.clone(), window.at(pass.now))).collect();
        Self { windows, ..Self::for_known_good(pass) }
    }

    /// Those for being brought to last known good.
    pub(super) fn for_known_good(pass: &Pass<'a>) -> Self {
        let around = pass.around;
        let picking = around.freezes.iter().map(|freeze| &**freeze);
        Self { freezes: picking.filter(|freeze| freeze.is_in_force(pass.now)).collect(), windows: Vec::new() }
    }

    /// Those for the way back.
    pub(super) fn for_returns(pass: &Pass<'a>) -> Self {
        let mut shutters = Self::for_known_good(pass);
        shutters.freezes.retain(|freeze| freeze.strength == Strength::Stop);
        shutters
    }

    /// Whether a target is not to be told anything.
    pub(super) fn are_shut_for(&self, member: &Member) -> bool {
        let Some(sighting) = &member.sighting else { return false };
        let (name, labels) = (&member.name, &sighting.labels);
        let mut own =
            self.windows.iter().filter(|(window, _)| window.is_for(name.as_str(), labels)).peekable();
        let outside =
            own.peek().is_some() && own.all(|(_, opening)| matches!(opening, Opening::Closed { .. }));
        outside || self.freezes.iter().any(|freeze| freeze.picks(name, labels))
    }

    /// When one of them opens by itself.
    pub(super) fn until(&self) -> Option<Timestamp> {
        let windows = self.windows.iter().filter_map(|(_, opening)| match opening {
            Opening::Closed { until } => Some(*until),
            Opening::Open { .. } => None,
        });
        self.freezes.iter().filter_map(|freeze| freeze.until).chain(windows).min()
    }
}
