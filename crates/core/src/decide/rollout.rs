//! The rollout decider: from an entity's board and the time to the next writes. Owns the verdict and the
//! rounds that produce it; never depends on what changed.
//!
//! A round applies requests, settles the targets that are due, judges the rollout, dispatches within the
//! capacity, withdraws what an aborted run assigned, and records what the rollout waits for. Rounds repeat,
//! on a copy of the board, until one changes nothing, so that the verdict of one pass leaves nothing for a
//! second.

mod apply_requests;
mod capacity;
mod deadline;
mod dispatch;
mod dispatch_block;
mod dispatch_gate;
mod draft;
mod event_text;
mod hooked;
mod judge;
mod monitor;
mod outcome;
mod pass;
mod questions;
mod reopen;
mod rest;
mod settle;
mod stage;
mod store_gate;
pub mod verdict;
mod withdraw;

use crate::decide::rollout::verdict::RolloutVerdict;
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::words::time::Timestamp;

/// Most rounds of one pass. The longest known chain (a version known bad, rolled back, ended, the next one
/// started, adopted, good, ended) takes ten; anything left after the last round is done by the next pass, at
/// once.
const MAX_ROUNDS: usize = 32;

/// Decides the next writes for one entity. Runs again whenever its board or environment changes.
#[must_use]
pub fn decide(board: &Board, environment: &RolloutEnvironment, now: Timestamp) -> RolloutVerdict {
    let mut pass = pass::Pass::new(board, environment, now);
    let done = (0..MAX_ROUNDS).any(|_| !round(&mut pass));
    questions::ask(&mut pass);
    let verdict = pass.verdict(board);
    if done { verdict } else { RolloutVerdict { wake: Some(now), ..verdict } }
}

/// Runs one round; returns whether it changed anything.
fn round(pass: &mut pass::Pass<'_>) -> bool {
    pass.begin_round();
    apply_requests::apply_requests(pass)
        || reopen::reopen(pass)
        || settle::settle(pass)
        || judge::judge(pass)
        || dispatch::dispatch(pass)
        || withdraw::withdraw(pass)
        || rest::rest(pass)
}
