//! Runs that have ended: one that is rolled back is undone by another, and one that ended long ago is removed with its entity, and its
//! nodes forget it.

pub mod undo;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

use crate::records::event::EventDraft;
use crate::records::key::Key;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{EntityName, NodeName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Default time for which a run is kept after its end.
pub const RUNS_KEPT: Span = Span::from_secs(7 * 86_400);

/// Most removals in one verdict; the rest follows in the next pass.
const AT_ONCE: usize = 64;

/// Undoes the runs that are rolled back, one step in each pass, has nodes on which a run is undone begin others, and removes those that ended `kept` ago or earlier.
///
/// Woken by: rollouts, runs, targets, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, kept: Span, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    let to_undo = fleet.run_index.first_to_undo().and_then(|name| fleet.runs.get(name));
    verdict.changesets.extend(to_undo.map(|run| undo::step(fleet, &run.value, now)));
    verdict.changesets.extend(fleet.undone_marks.iter().take(AT_ONCE).map(|node| runnable(fleet, node)));
    for (ended, name) in fleet.run_index.by_end() {
        let ends = ended.plus(kept);
        if ends > now {
            verdict.wake = Some(ends);
            break;
        }
        if verdict.changesets.len() >= AT_ONCE {
            break;
        }
        verdict.changesets.push(forget(name, kept));
    }
    verdict
}

/// A node on which the run that failed there is undone begins runs again.
fn runnable(fleet: &Fleet, node: &NodeName) -> Changeset {
    let run = fleet.not_runnable.get(node).and_then(|kept| kept.value.run.as_ref());
    let undo = run.and_then(|run| fleet.undo_of(run)).map_or_else(String::new, ToString::to_string);
    let cause = format!("run {undo} undid the one that failed on it");
    let subject = format!("node/{node}");
    let event = EventDraft { kind: "node.runnable", subject, before: None, after: None, cause };
    Changeset { writes: vec![Write::delete(Key::NotRunnable(node.clone()))], events: vec![event] }
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
