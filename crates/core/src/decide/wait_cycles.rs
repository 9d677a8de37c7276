//! Wait cycles: one event when a cycle appears and one when it ends. They are found by the index of waits, in
//! `crates/core/src/world/waits.rs`.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::wait_cycle::{WaitCycle, WaitCycles, Waiter};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Writes wait cycles that appeared and ended. Costs time in proportion to the cycles, not to all waits.
///
/// Woken by: reports, service registrations.
#[must_use]
pub fn decide(fleet: &Fleet, now: Timestamp) -> Verdict {
    let none = WaitCycles::default();
    let known = &fleet.wait_cycles.as_ref().map_or(&none, |kept| &*kept.value).0;
    let there = fleet.waits.wait_cycles();
    let found: Vec<WaitCycle> = there
        .iter()
        .map(|members| {
            let Some(old) = known.iter().find(|old| old.is_same(members)) else {
                return WaitCycle { members: members.clone(), since: now };
            };
            let named = old.members.iter().zip(members);
            let named = named.map(|(old, new)| if fleet.waits.has(old) { old } else { new });
            WaitCycle { members: named.cloned().collect(), since: old.since }
        })
        .collect();
    let is_in =
        |all: &[WaitCycle], wait_cycle: &WaitCycle| all.iter().any(|one| one.is_same(&wait_cycle.members));
    let new = found.iter().filter(|wait_cycle| !is_in(known, wait_cycle));
    let over = known.iter().filter(|wait_cycle| !is_in(&found, wait_cycle));
    let mut events: Vec<EventDraft> =
        new.map(|wait_cycle| event_draft("wait.cycle_started", wait_cycle, wait_cycle.hint())).collect();
    events.extend(
        over.map(|wait_cycle| {
            event_draft("wait.cycle_ended", wait_cycle, "the cycle is resolved".to_string())
        }),
    );
    if found == *known {
        return Verdict::default();
    }
    let write = Write::put(Record::WaitCycles(WaitCycles(found)));
    Verdict { changesets: vec![Changeset { writes: vec![write], events }], wake: None }
}

fn event_draft(kind: &'static str, wait_cycle: &WaitCycle, cause: String) -> EventDraft {
    let subject = wait_cycle.members.first().map(|member| Waiter::subject(&member.who)).unwrap_or_default();
    EventDraft { kind, subject, before: None, after: Some(wait_cycle.to_string()), cause }
}

#[cfg(test)]
mod tests;
