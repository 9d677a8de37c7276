//! Which targets of an entity need attention, and why: some of each kind with their reasons, the rest counted.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::settled::{Deviation, all_run, desired, failures};
use super::{WhyTime, why};
use crate::records::rollout::Rollout;
use crate::rollout::board::Board;
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::phase::{ASSIGNABLE, HELD, MOVED, PhaseSet, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::words::version::Version;

/// Most targets that are named with their reasons.
const NAMED: usize = 10;

/// The kinds of targets that a reader looks for, the worst first.
const KINDS: [(&str, PhaseSet); 6] = [
    ("failed", PhaseSet::of(&[TargetPhase::Failed, TargetPhase::FailedAsBefore, TargetPhase::Departed])),
    ("unreachable", PhaseSet::of(&[TargetPhase::Lost, TargetPhase::Silent, TargetPhase::Quiet])),
    ("paused", HELD),
    ("in flight", PhaseSet::of(&[TargetPhase::InFlight, TargetPhase::Adopting, TargetPhase::CarriedOver])),
    ("to be rolled back", MOVED),
    ("waiting", ASSIGNABLE),
];

/// The first failures of the entity's newest rollout `last` if that is or was rolled back, and at most [`NAMED`] targets with
/// their reasons: those that a rollout in progress has not finished with, or else those that are not as desired. Others
/// are counted. Costs time in proportion to all targets while no rollout is in progress.
#[must_use]
pub fn why_targets(board: &Board, last: Option<&Rollout>, time: WhyTime) -> Vec<String> {
    let mut lines = failures(&board.entity().name, last, time.now);
    lines.extend(match desired(board) {
        Some(version) => deviating(board, version, time),
        None => unfinished(board, time),
    });
    lines
}

/// The targets that are not on the version, or not healthy; or that there is none.
fn deviating(board: &Board, version: &Version, time: WhyTime) -> Vec<String> {
    let mut found: BTreeMap<Deviation, Vec<&BoardMember>> = BTreeMap::new();
    for member in board.tree().iter() {
        if let Some(deviation) = Deviation::of(member, version) {
            found.entry(deviation).or_default().push(member);
        }
    }
    let (mut lines, mut others) = (Vec::new(), Vec::new());
    for (deviation, members) in &found {
        let room = NAMED.saturating_sub(lines.len());
        lines.extend(members.iter().take(room).map(|member| why(board, &member.name, time)));
        let rest = members.len().saturating_sub(room);
        if rest > 0 {
            others.push(format!("{rest} {}", deviation.kind()));
        }
    }
    if !others.is_empty() {
        lines.push(format!("and {}", others.join(", ")));
    }
    if lines.is_empty() {
        lines.extend(all_run(board, version));
    }
    lines
}

/// The targets that a rollout in progress has not finished with.
fn unfinished(board: &Board, time: WhyTime) -> Vec<String> {
    let (mut lines, mut others) = (Vec::new(), BTreeMap::new());
    for (place, (kind, phases)) in KINDS.iter().enumerate() {
        let before = lines.len();
        if before < NAMED {
            board.tree().walk(&WalkFilter::all(*phases), &mut |member| {
                lines.push(why(board, &member.name, time));
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
