//! Absorbs reports: compares them with the last ones and creates the events.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::report::Report;
use crate::records::status::{FILES, MAX_CATEGORIES, OF_ASSIGNMENTS, ORDERS, Status};
use crate::verdict::{Changeset, Write};
use crate::words::name::Category;
use crate::words::time::Timestamp;

/// The changes to write for a report; `None` if it is the same as the last one.
///
/// The caller has turned ages into times, and `ledger_since` is the present epoch, which counts if the ledger is another one; `since` of a status is kept while the state is the same, and
/// becomes `now` when it changes: node clocks are not trusted. A category that is missing in this report is
/// kept if it was set by hand, and so is one that repeats an update already reported: it may have been set by
/// hand since, or have become silent.
#[must_use]
pub fn absorb(last: Option<&Report>, new: Report, now: Timestamp) -> Option<Changeset> {
    fold(last, new, ReportSource::Node, now)
}

/// Most events of a report that are committed at once: a transaction has 128 operations, and the report and the jobs of its node are some of
/// them.
pub const EVENTS_AT_ONCE: usize = 96;

/// Most entities of a part of a report: each is at most an event.
const ENTITIES_AT_ONCE: usize = 64;

/// A report that says what the last one said and a part of what a new one says: its statuses first, then its entities, some at a time. `None`
/// once nothing of it is left but what the last part lacks, such as the order that it answers. Parts are absorbed one after the other where
/// a report has too many changes for one transaction; what of an entity is decided on is all in what is said of it.
#[must_use]
pub fn part(last: Option<&Report>, new: &Report, number: usize) -> Option<Report> {
    let empty = || Report {
        generation: Default::default(),
        entities: Default::default(),
        statuses: Default::default(),
        deleted: Default::default(),
        ..new.clone()
    };
    let mut part = last.cloned().unwrap_or_else(empty);
    part.ledger.clone_from(&new.ledger);
    (part.ledger_since, part.sequence) = (new.ledger_since, new.sequence);
    let Some(before) = number.checked_sub(1) else {
        for (category, status) in &new.statuses {
            if part.statuses.len() < MAX_CATEGORIES || part.statuses.contains_key(category) {
                part.statuses.insert(category.clone(), status.clone());
            }
        }
        return Some(part);
    };
    let skipped = before.saturating_mul(ENTITIES_AT_ONCE);
    let entities = new.entities.iter().skip(skipped).take(ENTITIES_AT_ONCE);
    let mut entities = entities.map(|(name, entity)| (name.clone(), entity.clone())).peekable();
    entities.peek()?;
    part.entities.extend(entities);
    Some(part)
}

/// The changes to write for a report of a node whose order assigns nothing: what it last reported of
/// configuration and validation is no longer true.
#[must_use]
pub fn absorb_unassigned(last: Option<&Report>, new: Report, now: Timestamp) -> Option<Changeset> {
    fold(last, new, ReportSource::UnassignedNode, now)
}

/// The changes to write when a person or program sets `category` as in `new`, which otherwise equals the last
/// report; this is a change even if the node reported the same before.
#[must_use]
pub fn set(last: Option<&Report>, new: Report, category: &Category, now: Timestamp) -> Option<Changeset> {
    fold(last, new, ReportSource::Hand(category), now)
}

/// Where a report comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportSource<'a> {
    /// From a node.
    Node,
    /// From a node whose order assigns nothing.
    UnassignedNode,
    /// From a person or program that set this category.
    Hand(&'a Category),
}

impl ReportSource<'_> {
    /// Whether a status that the new report lacks stays. One that was set by hand must survive an agent's report;
    /// one of files that a node no longer renders, or of orders that it accepts again, must not.
    ///
    /// Neither must one that a program on the node had set: the node reports all of those that exist.
    fn keeps(self, category: &Category, status: &Status) -> bool {
        let gone = match self {
            Self::Hand(_) => false,
            Self::Node => status.update != 0,
            Self::UnassignedNode => status.update != 0 || OF_ASSIGNMENTS.contains(&category.as_str()),
        };
        ![FILES, ORDERS].contains(&category.as_str()) && !gone
    }
}

fn fold(
    last: Option<&Report>,
    mut new: Report,
    source: ReportSource<'_>,
    now: Timestamp,
) -> Option<Changeset> {
    new.received_at = now;
    let by_hand = matches!(source, ReportSource::Hand(_));
    if last.is_some_and(|last| !by_hand && new.is_overtaken(last)) {
        return None;
    }
    if !by_hand {
        leave_out_deleted(last, &mut new);
    }
    if let Some(last) = last.filter(|last| last.ledger == new.ledger) {
        new.ledger_since = last.ledger_since;
    }
    for (category, status) in &mut new.statuses {
        let before = last.and_then(|last| last.statuses.get(category));
        let repeated = |before: &&Status| {
            source != ReportSource::Hand(category) && status.update != 0 && before.update == status.update
        };
        if let Some(before) = before.filter(repeated) {
            status.clone_from(before);
            continue;
        }
        status.silent = false;
        let same = before.filter(|before| before.shown() == status.shown());
        status.since = same.map_or(now, |before| before.since);
    }
    time_answers(last, &mut new);
    if let Some(last) = last {
        for (category, status) in
            last.statuses.iter().filter(|(category, status)| source.keeps(category, status))
        {
            if new.statuses.len() < MAX_CATEGORIES {
                new.statuses.entry(category.clone()).or_insert_with(|| status.clone());
            }
        }
        steady(last, &mut new);
        let same = Report { received_at: last.received_at, sequence: last.sequence, ..new.clone() } == *last;
        if same && !new.is_behind_a_gap(last) {
            return None;
        }
    }
    let events = events(last, &new);
    Some(Changeset { writes: vec![Write::put(Record::Report(new))], events })
}

/// Leaves out the statuses that were deleted at the control plane, as long as the node repeats the same update.
fn leave_out_deleted(last: Option<&Report>, new: &mut Report) {
    let deleted = last.into_iter().flat_map(|last| &last.deleted);
    let repeated = deleted.filter(|(category, update)| {
        new.statuses.get(*category).is_some_and(|status| status.update == **update)
    });
    new.deleted = repeated.map(|(category, update)| (category.clone(), *update)).collect();
    new.statuses.retain(|category, _| !new.deleted.contains_key(category));
}

/// The changes to write when a person or program deletes a status at the control plane; `None` if there is none in
/// `category`. It stays deleted although the node repeats it, until a program on the node sets it again.
#[must_use]
pub fn delete(last: &Report, category: &Category, cause: &str) -> Option<Changeset> {
    let mut new = last.clone();
    let status = new.statuses.remove(category)?;
    if status.update != 0 {
        new.deleted.insert(category.clone(), status.update);
    }
    let events = vec![deleted(&new, category, &status, cause)];
    Some(Changeset { writes: vec![Write::put(Record::Report(new))], events })
}

fn deleted(report: &Report, category: &Category, status: &Status, cause: &str) -> EventDraft {
    EventDraft {
        kind: "status.deleted",
        subject: alloc::format!("node/{}", report.node),
        before: Some(alloc::format!("{category}={}", status.shown())),
        after: None,
        cause: cause.to_string(),
    }
}

/// Notes since when each entity's report answers its assignment.
fn time_answers(last: Option<&Report>, new: &mut Report) {
    for (name, entity) in &mut new.entities {
        let before = last.and_then(|last| last.entities.get(name));
        let same = before.filter(|before| before.answering == entity.answering);
        entity.answered_at = same.map_or(new.received_at, |before| before.answered_at);
    }
}

/// Variation of travel time that makes a healthy start, or the start of a step, differ by some milliseconds; a
/// smaller difference is ignored.
const JITTER_MS: u64 = 1_000;

fn steady(last: &Report, new: &mut Report) {
    for (name, entity) in &mut new.entities {
        let before = last.entities.get(name);
        if let (Some(before), Some(after)) =
            (before.and_then(|before| before.step.as_ref()), &mut entity.step)
            && before.since.as_millis().abs_diff(after.since.as_millis()) < JITTER_MS
        {
            after.since = before.since;
        }
        let before = before.filter(|before| before.running == entity.running);
        let before = before.and_then(|before| before.healthy_since);
        if let (Some(before), Some(after)) = (before, entity.healthy_since)
            && before.as_millis().abs_diff(after.as_millis()) < JITTER_MS
        {
            entity.healthy_since = Some(before);
        }
    }
}

fn events(last: Option<&Report>, new: &Report) -> Vec<EventDraft> {
    let subject = alloc::format!("node/{}", new.node);
    let mut events = Vec::new();
    for (category, status) in &new.statuses {
        let before = last.and_then(|last| last.statuses.get(category)).map(Status::shown);
        if before != Some(status.shown()) {
            events.push(EventDraft {
                kind: "status.changed",
                subject: subject.clone(),
                before: before.map(|shown| alloc::format!("{category}={shown}")),
                after: Some(alloc::format!("{category}={}", status.shown())),
                cause: line(&status.reason, "reported by the node"),
            });
        }
    }
    let gone = last.into_iter().flat_map(|last| &last.statuses);
    let gone = gone.filter(|(category, _)| !new.statuses.contains_key(*category));
    events.extend(gone.filter_map(|(category, status)| {
        let cause = match (category.as_str(), status.update) {
            (ORDERS, _) => "the node accepts its orders again",
            (_, 0) => return None,
            (_, _) => "the node no longer reports it",
        };
        Some(deleted(new, category, status, cause))
    }));
    for (name, entity) in &new.entities {
        let before = last.and_then(|last| last.entities.get(name)).and_then(|entity| entity.running.as_ref());
        if let Some(running) = entity.running.as_ref().filter(|running| before != Some(*running)) {
            events.push(EventDraft {
                kind: "version.running",
                subject: subject.clone(),
                before: before.map(|version| alloc::format!("{name}={version}")),
                after: Some(alloc::format!("{name}={running}")),
                cause: "validation passed".to_string(),
            });
        }
    }
    events
}

fn line(reason: &str, otherwise: &str) -> String {
    if reason.is_empty() { otherwise.to_string() } else { reason.to_string() }
}

#[cfg(test)]
mod tests;
