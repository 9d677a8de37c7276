//! Retention of runs: a run that ended long ago is removed with its entity, and its nodes forget it.

use alloc::format;
use alloc::vec;

use crate::records::event::EventDraft;
use crate::records::key::Key;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::EntityName;
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Default time for which a run is kept after its end.
pub const RUNS_KEPT: Span = Span::from_secs(7 * 86_400);

/// Most removals in one verdict; the rest follows in the next pass.
const AT_ONCE: usize = 64;

/// Removes the runs that ended `kept` ago or earlier.
///
/// Woken by: rollouts, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, kept: Span, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for name in fleet.runs.keys() {
        if verdict.changesets.len() >= AT_ONCE {
            break;
        }
        let Some(ends) = fleet.run_ended(name).map(|ended| ended.plus(kept)) else { continue };
        if ends <= now {
            verdict.changesets.push(forget(name, kept));
        } else {
            verdict.wake = Some(verdict.wake.map_or(ends, |wake| wake.min(ends)));
        }
    }
    verdict
}

fn forget(name: &EntityName, kept: Span) -> Changeset {
    let cause = format!("it ended {kept} ago");
    let subject = format!("entity/{name}");
    let event = EventDraft { kind: "run.forgotten", subject, before: None, after: None, cause };
    let writes = vec![Write::delete(Key::Run(name.clone())), Write::delete(Key::Entity(name.clone()))];
    Changeset { writes, events: vec![event] }
}

#[cfg(test)]
mod tests;
