//! Drains that were requested: each begins when its budget allows it, and is given up at its deadline.

use alloc::format;
use alloc::vec;

use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::node::{Drain, Node};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::NodeName;
use crate::words::time::Timestamp;
use crate::world::drain::Withdrawn;
use crate::world::fleet::Fleet;

/// Begins the drains that keep to their budgets, one after the other, and gives up those whose deadline has passed.
///
/// Before `watched` not every node had the time to report, so that no instance is known to be available, and nothing
/// is decided. A drain whose deadline passed in that time is tried once more before it is given up.
///
/// Woken by: nodes with a requested drain, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, watched: Timestamp, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    if fleet.drains.is_empty() {
        return verdict;
    }
    if watched > now {
        verdict.wake = Some(watched);
        return verdict;
    }
    let mut withdrawn = Withdrawn::default();
    for name in fleet.drains.iter() {
        let Some(budget) = fleet.drain_budget(name) else { continue };
        let outcome = match fleet.drain_obstacle(name, budget, &withdrawn) {
            None => {
                fleet.withdraw(name, &mut withdrawn);
                settled(fleet, name, Some(Drain::Drained(now)), "drained")
            }
            Some(obstacle) if budget.deadline <= now => settled(
                fleet,
                name,
                None,
                &format!("deadline of the drain passed: {}; requested", obstacle.line()),
            ),
            Some(_) => {
                verdict.wake = [verdict.wake, Some(budget.deadline)].into_iter().flatten().min();
                None
            }
        };
        verdict.changesets.extend(outcome);
    }
    verdict
}

/// The node with its drain done or given up.
fn settled(fleet: &Fleet, name: &NodeName, drain: Option<Drain>, action: &str) -> Option<Changeset> {
    let mut node = Node::clone(&fleet.active_node(name)?.value);
    let cordon = node.cordon.as_mut()?;
    cordon.drain = drain;
    let event = EventDraft {
        kind: if drain.is_some() { "node.drained" } else { "node.drain_failed" },
        subject: format!("node/{name}"),
        before: None,
        after: None,
        cause: cordon.annotation.describe(action),
    };
    Some(Changeset { writes: vec![Write::put(Record::Node(node))], events: vec![event] })
}

#[cfg(test)]
mod tests;
