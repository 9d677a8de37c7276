//! Statuses that were not refreshed within their lifetime become silent. Silent is not failed: the state is
//! unknown.

use alloc::vec;
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::report::Report;
use crate::records::status::UNKNOWN;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Marks statuses silent whose lifetime is over, by the server's clock, with one event each.
///
/// Before `watched` not every node had the time to refresh its statuses, so none becomes silent.
///
/// Woken by: reports with statuses that have a lifetime, its own wake. Like absorption it writes the report,
/// conditional on the revision it was decided on: a refresh at the same moment wins or is decided on again,
/// and is never lost.
#[must_use]
pub fn decide(fleet: &Fleet, watched: Timestamp, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for (at, node) in fleet.silences.iter() {
        if (*at).max(watched) > now {
            verdict.wake = Some((*at).max(watched));
            break;
        }
        if let Some(kept) = fleet.reports.get(node) {
            let (report, mut events) = fall_silent((*kept.value).clone(), now);
            if fleet.active_node(node).is_none() {
                // A decommissioned node is excluded from counts; nobody needs events about it.
                events.clear();
            }
            verdict.changesets.push(Changeset { writes: vec![Write::put(Record::Report(report))], events });
        }
    }
    verdict
}

fn fall_silent(mut report: Report, now: Timestamp) -> (Report, Vec<EventDraft>) {
    let subject = alloc::format!("node/{}", report.node);
    let mut events = Vec::new();
    for (category, status) in &mut report.statuses {
        let over = status.ends().filter(|end| *end <= now).zip(status.lifetime);
        if let Some((end, lifetime)) = over {
            events.push(EventDraft {
                kind: "status.changed",
                subject: subject.clone(),
                before: Some(alloc::format!("{category}={}", status.shown())),
                after: Some(alloc::format!("{category}={UNKNOWN}")),
                cause: alloc::format!("not renewed within {}", lifetime.lasts),
            });
            status.silent = true;
            status.since = end;
        }
    }
    (report, events)
}

#[cfg(test)]
mod tests;
