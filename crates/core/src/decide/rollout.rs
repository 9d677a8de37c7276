//! The rollout decider: from an entity's board and the time to what is written next. Owns the verdict and the rounds in
//! which it is reached; never asks what changed.
//!
//! A round heeds what people asked, settles what reports and time have brought, judges the rollout, hands out what
//! there is room for and says what it waits for. Rounds go on, on a copy of the board, until one changes nothing: so the verdict of one pass leaves
//! nothing for a second.

mod apply_requests;
mod capacity;
mod dispatch;
mod dispatch_gate;
mod draft;
mod event_text;
mod hooked;
mod judge;
mod monitor;
mod pass;
mod questions;
mod rest;
mod settle;
mod stage;

use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::progress::Progress;
use crate::records::rollout::Rollout;
use crate::records::target::TargetState;
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::rollout::hook_question::HookQuestion;
use crate::words::name::TargetName;
use crate::words::time::Timestamp;

/// Most rounds of one pass. The longest known chain (a version found bad, taken back, ended, the next one started,
/// adopted, good, ended) takes ten; what is left after the last round is done by the next pass, at once.
const MAX_ROUNDS: usize = 32;

/// What is to be written, in this order: rollouts, progress, targets. It may be cut anywhere and the rest lost: what was
/// written is safe, and the next pass continues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutVerdict {
    /// Rollouts that began or changed, oldest first.
    pub rollouts: Vec<Rollout>,
    /// The entity's progress, if it changed.
    pub progress: Option<Progress>,
    /// What rollouts and progress have to tell; belongs in the same write as they.
    pub events: Vec<EventDraft>,
    /// Targets that changed: those that free a place first, those that take one last.
    pub targets: Vec<TargetChange>,
    /// What the policy's controllers would be asked now, so that a later decision can go on. Nothing that is written.
    pub questions: Vec<HookQuestion>,
    /// When to decide again even if nothing changes.
    pub wake: Option<Timestamp>,
}

/// One target's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetChange {
    /// Which target.
    pub target: TargetName,
    /// What it is told and what came of it; `None` removes what is kept of it.
    pub state: Option<TargetState>,
    /// What the change has to tell; belongs in the same write.
    pub events: Vec<EventDraft>,
}

impl RolloutVerdict {
    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rollouts.is_empty() && self.progress.is_none() && self.targets.is_empty()
    }
}

/// Decides what is written next for one entity. It is decided again whenever its board or what is around it changes.
#[must_use]
pub fn decide(board: &Board, environment: &RolloutEnvironment, now: Timestamp) -> RolloutVerdict {
    let mut pass = pass::Pass::new(board, environment, now);
    let done = (0..MAX_ROUNDS).any(|_| !round(&mut pass));
    questions::ask(&mut pass);
    let verdict = pass.verdict(board);
    if done { verdict } else { RolloutVerdict { wake: Some(now), ..verdict } }
}

/// One round; says whether it changed anything.
fn round(pass: &mut pass::Pass<'_>) -> bool {
    pass.begin_round();
    apply_requests::apply_requests(pass)
        || settle::settle(pass)
        || judge::judge(pass)
        || dispatch::dispatch(pass)
        || rest::rest(pass)
}
