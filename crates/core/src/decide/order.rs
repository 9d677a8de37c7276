//! One order per node; a next generation is written only when the content changes.

use alloc::vec;

use crate::records::key::Record;
use crate::records::order::Order;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::counter::{Generation, Term};
use crate::world::fleet::Fleet;

/// New orders for every node whose last one is outdated.
///
/// Woken by: target states, node pauses, orders, the ledgers in reports.
#[must_use]
pub fn decide(fleet: &Fleet, term: Term) -> Verdict {
    let changesets = fleet.stale_orders.iter().map(|name| {
        let last = fleet.orders.get(name).map(|kept| &*kept.value);
        let content = fleet.contents.get(name).cloned().unwrap_or_default();
        let content = content
            .bound(last.map(|last| &last.content), fleet.ledger(name), |run| fleet.goes_on_after(run, name));
        let stored = last.map_or(Generation::ZERO, |last| last.generation);
        let generation = stored.max(fleet.held_generation(name)).next_in(fleet.epoch);
        let order = Order { generation, term, epoch: fleet.epoch, content };
        Changeset { writes: vec![Write::put(Record::Order(name.clone(), order))], events: vec![] }
    });
    Verdict { changesets: changesets.collect(), wake: None }
}

#[cfg(test)]
mod tests;
