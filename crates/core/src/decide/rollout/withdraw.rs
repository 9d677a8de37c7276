//! Withdraws what an aborted run of a workflow has assigned: its nodes end the jobs that run, and begin no other.

use alloc::vec::Vec;

use super::pass::Pass;
use crate::rollout::board::phase::{PhaseSet, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::words::name::TargetName;

/// Most targets at once; the others follow in the next round.
const AT_ONCE: u64 = 1_024;

/// Removes the assignments of an aborted run that its nodes may still work on; returns whether there were any.
pub(super) fn withdraw(pass: &mut Pass<'_>) -> bool {
    if !pass.board.frame().withdraws {
        return false;
    }
    let open = WalkFilter::all(PhaseSet::of(&[TargetPhase::Settling]));
    let names: Vec<TargetName> = pass.board.tree().names(&open, AT_ONCE);
    for name in &names {
        pass.put(name, None, None);
    }
    !names.is_empty()
}

#[cfg(test)]
mod tests;
