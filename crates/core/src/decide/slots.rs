//! Slots: who may take one, who gives one back, and whose time is over.
//!
//! Taking and giving back are decided here as well, for whoever asks: what ran out is taken from its holder first, so that
//! nobody waits for the decider's next look.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::event::Draft;
use crate::records::key::{Key, Record};
use crate::records::slot::{Holder, Slot};
use crate::verdict::{Atom, Verdict, Write};
use crate::words::name::{Actor, HolderName, SlotName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Somebody who wants to hold a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Who.
    pub holder: HolderName,
    /// Whose token was shown.
    pub by: Actor,
    /// What for.
    pub why: String,
}

/// Nobody more may hold it now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct Full {
    /// How many may.
    pub capacity: u32,
    /// Who does, and since when.
    pub holders: Vec<(HolderName, Timestamp)>,
}

impl Full {
    fn words(&self) -> String {
        let Some((first, _)) = self.holders.first() else {
            return "nobody may hold it: its capacity is 0".to_string();
        };
        let more = match self.holders.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        format!("{} of {} held: by {first}{more}", self.holders.len(), self.capacity)
    }
}

/// Takes from holders what ran out.
///
/// Woken by: slots, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for kept in fleet.slots.values() {
        let mut next = kept.value.next_end();
        if next.is_some_and(|end| end <= now) {
            let mut slot = (*kept.value).clone();
            let events = expire(&mut slot, now);
            next = slot.next_end();
            verdict.atoms.push(Atom { writes: vec![write(slot)], events });
        }
        verdict.wake = [verdict.wake, next].into_iter().flatten().min();
    }
    verdict
}

/// Takes a slot for somebody, or gives whoever has it already its whole time again.
///
/// # Errors
/// [`Full`] when nobody more may hold it.
pub fn acquire(fleet: &Fleet, name: &SlotName, wish: Wish, now: Timestamp) -> Result<Atom, Full> {
    let mut slot = slot_of(fleet, name);
    let mut events = expire(&mut slot, now);
    let ends = now.plus(slot.lease);
    if let Some(holder) = slot.holders.get_mut(&wish.holder) {
        // Never shortened: somebody may have made the lease shorter meanwhile.
        holder.ends = holder.ends.max(ends);
        return Ok(Atom { writes: vec![write(slot)], events });
    }
    if slot.holders.len() >= usize::try_from(slot.capacity).unwrap_or(usize::MAX) {
        let holders = slot.holders.into_iter().map(|(name, holder)| (name, holder.since));
        return Err(Full { capacity: slot.capacity, holders: holders.collect() });
    }
    let before = words(&slot);
    let cause = format!("{} takes it: {}", wish.holder, wish.why);
    slot.holders.insert(wish.holder, Holder { since: now, ends, by: wish.by, why: wish.why });
    events.push(told("slot.acquired", &slot, before, cause));
    Ok(Atom { writes: vec![write(slot)], events })
}

/// Gives a slot back; nothing to do when it is not held, or no longer.
#[must_use]
pub fn release(fleet: &Fleet, name: &SlotName, holder: &HolderName) -> Option<Atom> {
    let cause = format!("{holder} gives it back");
    take_from(fleet, name, holder, ("slot.released", cause))
}

/// Takes a slot from whoever holds it, because a person says so; nothing to do when it is not held, or no longer.
#[must_use]
pub fn force(fleet: &Fleet, name: &SlotName, holder: &HolderName, why: &str) -> Option<Atom> {
    let cause = format!("it was taken from {holder}: {why}");
    take_from(fleet, name, holder, ("slot.forced", cause))
}

/// Sets how many may hold a slot, and for how long; nothing to do when it is so. Whoever holds it goes on.
#[must_use]
pub fn set(fleet: &Fleet, name: &SlotName, (capacity, lease): (u32, Span)) -> Option<Atom> {
    let old = slot_of(fleet, name);
    let slot = Slot { capacity, lease, ..old.clone() };
    if slot == old {
        return None;
    }
    let limits = |slot: &Slot| format!("capacity {}, lease {}", slot.capacity, slot.lease);
    let event = Draft {
        kind: "slot.changed",
        subject: subject(name),
        before: Some(limits(&old)),
        after: Some(limits(&slot)),
        cause: "it was set".to_string(),
    };
    Some(Atom { writes: vec![write(slot)], events: vec![event] })
}

fn slot_of(fleet: &Fleet, name: &SlotName) -> Slot {
    fleet.slots.get(name).map_or_else(|| Slot::fresh(name.clone()), |kept| (*kept.value).clone())
}

fn take_from(
    fleet: &Fleet,
    name: &SlotName,
    holder: &HolderName,
    (kind, cause): (&'static str, String),
) -> Option<Atom> {
    let mut slot = slot_of(fleet, name);
    let before = words(&slot);
    slot.holders.remove(holder)?;
    let event = told(kind, &slot, before, cause);
    Some(Atom { writes: vec![write(slot)], events: vec![event] })
}

fn expire(slot: &mut Slot, now: Timestamp) -> Vec<Draft> {
    let over = slot.holders.iter().filter(|(_, holder)| holder.ends <= now);
    let over: Vec<HolderName> = over.map(|(name, _)| name.clone()).collect();
    let mut events = Vec::new();
    for name in over {
        let before = words(slot);
        let Some(holder) = slot.holders.remove(&name) else { continue };
        let held = holder.ends.since(holder.since);
        let cause =
            format!("{name} neither gave it back nor asked again within its lease; it had it for {held}");
        events.push(told("slot.expired", slot, before, cause));
    }
    events
}

/// What is kept of a slot: nothing, when it says nothing.
fn write(slot: Slot) -> Write {
    if slot.says_nothing() { Write::Delete(Key::Slot(slot.name)) } else { Write::put(Record::Slot(slot)) }
}

fn told(kind: &'static str, slot: &Slot, before: String, cause: String) -> Draft {
    Draft { kind, subject: subject(&slot.name), before: Some(before), after: Some(words(slot)), cause }
}

fn subject(name: &SlotName) -> String {
    format!("slot/{name}")
}

fn words(slot: &Slot) -> String {
    format!("{} of {} held", slot.holders.len(), slot.capacity)
}

#[cfg(test)]
mod tests;
