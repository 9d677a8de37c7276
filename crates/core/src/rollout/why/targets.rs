//! Which targets of an entity need attention, and why: some of each kind with their reasons, the rest counted.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::why;
use crate::rollout::board::Board;
use crate::rollout::board::phase::{ASSIGNABLE, MOVED, PhaseSet, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::words::time::Timestamp;

/// Most targets that are named with their reasons.
const NAMED: usize = 10;

/// The kinds of targets that a reader looks for, the worst first.
const KINDS: [(&str, PhaseSet); 6] = [
    ("failed", PhaseSet::of(&[TargetPhase::Failed, TargetPhase::Departed])),
    ("unreachable", PhaseSet::of(&[TargetPhase::Lost, TargetPhase::Silent, TargetPhase::Quiet])),
    ("paused", PhaseSet::of(&[TargetPhase::Held, TargetPhase::HeldFlight])),
    ("in flight", PhaseSet::of(&[TargetPhase::InFlight, TargetPhase::Adopting, TargetPhase::CarriedOver])),
    ("to be rolled back", MOVED),
    ("waiting", ASSIGNABLE),
];

/// At most [`NAMED`] targets with their reasons, and how many others there are of each kind. Costs time in proportion to
/// the named targets.
#[must_use]
pub fn why_targets(board: &Board, now: Timestamp) -> Vec<String> {
    let (mut lines, mut others) = (Vec::new(), BTreeMap::new());
    for (place, (kind, phases)) in KINDS.iter().enumerate() {
        let before = lines.len();
        if before < NAMED {
            board.tree().walk(&WalkFilter::all(*phases), &mut |member| {
                lines.push(why(board, &member.name, now));
                lines.len() < NAMED
            });
        }
        let named = u64::try_from(lines.len() - before).unwrap_or(u64::MAX);
        let rest = board.tree().tally().count(*phases).saturating_sub(named);
        if rest > 0 {
            others.insert(place, format!("{rest} {kind}"));
        }
    }
    if !others.is_empty() {
        lines.push(format!("and {}", others.into_values().collect::<Vec<_>>().join(", ")));
    }
    lines
}
