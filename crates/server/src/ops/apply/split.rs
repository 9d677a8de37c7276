//! How the changes of an apply are split into transactions: as few as take them, each object whole in one of them.

use std::collections::BTreeSet;
use std::ops::Range;

use bellwether_api::v1::apply::AppliedObject;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::AnyKey;
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_store::{MAX_OPS, MAX_TXN_BYTES};

use super::object::ObjectId;
use crate::ops::OpError;
use crate::records::commit::CommitError;
use crate::records::encoding;

/// What an event takes besides its texts: its number, time, actor and envelope, in bytes.
const EVENT_BYTES: usize = 256;

/// The operation that numbers the events of a transaction.
const EVENT_NUMBER_OPS: usize = 1;

/// What a transaction compares besides records: the numbering of events, and whether its server leads.
const OTHER_COMPARES: usize = 2;

/// One object that is set or pruned.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) id: ObjectId,
    pub(super) answer: AppliedObject,
    pub(super) changes: GuardedChangeset,
}

/// One transaction of an apply.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) changeset: Changeset,
    /// Records that must not have changed, besides those that the apply writes.
    pub(super) guards: BTreeSet<AnyKey>,
    /// The steps whose changes it has.
    pub(super) steps: Range<usize>,
}

/// What changes take of a transaction.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    operations: usize,
    compares: usize,
    bytes: usize,
}

impl Cost {
    fn of(changeset: &Changeset, guards: usize) -> Result<Self, OpError> {
        let mut bytes: usize = changeset.events.iter().map(event).sum();
        for write in &changeset.writes {
            if let Write::Put(record) = write {
                bytes += encoding::write_any(record).map_err(CommitError::Shape)?.len();
            }
        }
        let operations = changeset.writes.len() + changeset.events.len();
        Ok(Self { operations, compares: changeset.writes.len() + guards, bytes })
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            compares: self.compares + other.compares,
            bytes: self.bytes + other.bytes,
        }
    }

    const fn fits(self) -> bool {
        self.operations + EVENT_NUMBER_OPS <= MAX_OPS
            && self.compares + OTHER_COMPARES <= MAX_OPS
            && self.bytes <= MAX_TXN_BYTES
    }
}

/// Splits the changes of the steps, in their order; no part if nothing changes. If one transaction takes everything, it also
/// compares `unchanged`, the objects that stay as they are, as far as there is room: without it the answer calls an object
/// unchanged that somebody else may just have changed. What is written does not depend on it.
///
/// # Errors
/// [`OpError::Refused`] naming an object that no transaction takes.
pub(super) fn split(steps: &[Step], unchanged: &[AnyKey]) -> Result<Vec<Part>, OpError> {
    let writes = steps.iter().flat_map(|step| &step.changes.changeset.writes);
    let written: BTreeSet<AnyKey> = writes.map(Write::key).collect();
    let mut parts: Vec<Part> = Vec::new();
    let mut used = Cost::default();
    for (index, step) in steps.iter().enumerate() {
        let GuardedChangeset { changeset, guards } = &step.changes;
        if changeset.writes.is_empty() && changeset.events.is_empty() {
            continue;
        }
        let guards = guards.iter().filter(|key| !written.contains(*key)).cloned();
        let guards: BTreeSet<AnyKey> = guards.collect();
        let cost = Cost::of(changeset, guards.len())?;
        if !cost.fits() {
            return Err(too_large(&step.id, cost));
        }
        match parts.last_mut() {
            Some(part) if used.plus(cost).fits() => {
                // An entity's step writes its profile again, so that it is not deleted meanwhile.
                let again = |write: &Write| changeset.writes.iter().any(|other| other.key() == write.key());
                part.changeset.writes.retain(|write| !again(write));
                part.changeset.writes.extend(changeset.writes.iter().cloned());
                part.changeset.events.extend(changeset.events.iter().cloned());
                part.guards.extend(guards);
                part.steps.end = index + 1;
                used = used.plus(cost);
            }
            Some(_) | None => {
                parts.push(Part { changeset: changeset.clone(), guards, steps: index..index + 1 });
                used = cost;
            }
        }
    }
    if let [part] = parts.as_mut_slice()
        && used.compares + unchanged.len() + OTHER_COMPARES <= MAX_OPS
    {
        part.guards.extend(unchanged.iter().cloned());
    }
    Ok(parts)
}

fn too_large(object: &ObjectId, cost: Cost) -> OpError {
    let (operations, bytes) = (cost.operations + EVENT_NUMBER_OPS, cost.bytes);
    let reason = format!(
        "apply {object}: it takes {operations} operations and {bytes} bytes, \
         and a transaction at most {MAX_OPS} operations and {MAX_TXN_BYTES} bytes"
    );
    OpError::Refused { reason, hint: Some("nothing was changed".to_owned()) }
}

fn event(event: &EventDraft) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    EVENT_BYTES + event.subject.len() + event.cause.len() + text(&event.before) + text(&event.after)
}
