//! The rollout decider: from an entity's board and the time to what is written next. Owns the verdict and the rounds in
//! which it is reached; never asks what changed.
//!
//! A round heeds what people asked, settles what reports and time have brought, judges the rollout, hands out what
//! there is room for and says what it waits for. Rounds go on, on a copy of the board, until one changes nothing: so the verdict of one pass leaves
//! nothing for a second.

mod apply_requests;
mod capacity;
mod dispatch;
mod dispatch_block;
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
pub mod verdict;

use crate::decide::rollout::verdict::RolloutVerdict;
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::words::time::Timestamp;

/// Most rounds of one pass. The longest known chain (a version found bad, taken back, ended, the next one started,
/// adopted, good, ended) takes ten; what is left after the last round is done by the next pass, at once.
const MAX_ROUNDS: usize = 32;

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
