//! Slots: acquisition, renewal, release and expiry.
//!
//! Requests to acquire and release are decided here too: expired holds are removed first, so that nobody
//! waits for the decider's next run.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::records::slot::{Holder, Slot, SlotLimits};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::counter::FenceNumber;
use crate::words::name::{Actor, HolderName, SlotName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Most by which the time of a server that takes part may differ from the right one.
pub const CLOCK_BOUND: Span = Span::from_millis(500);

/// How long after its end a hold expires. The server that granted it and the one that ends it may be on either side of the right
/// time.
pub const SLACK: Span = CLOCK_BOUND.plus(CLOCK_BOUND);

/// A request to hold a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRequest {
    /// Name of the holder.
    pub holder: HolderName,
    /// The token that makes the request.
    pub by: Actor,
    /// The reason for holding it.
    pub reason: String,
    /// Duration of the hold; `None` for the slot's own lease.
    pub lease: Option<Span>,
    /// The capacity that the caller expects: all callers must agree. `None` accepts any.
    pub capacity: Option<u32>,
}

/// Identifies one hold of a slot, for its renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotHold<'a> {
    /// Name of the holder.
    pub holder: &'a HolderName,
    /// Fencing number that the holder received when it acquired the slot.
    pub fence: FenceNumber,
}

/// A slot that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotGrant {
    /// Fencing number of the hold.
    pub fence: FenceNumber,
    /// Start of the holding, by the server's clock.
    pub since: Timestamp,
    /// Time the hold expires unless it is renewed, by the server's clock.
    pub ends: Timestamp,
}

/// Why a slot is not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlotRefusal {
    /// The slot has no free capacity.
    #[error("{}", full(*.capacity, .holders))]
    Full {
        /// Capacity of the slot.
        capacity: u32,
        /// The present holders, each with the start of its hold.
        holders: Vec<(HolderName, Timestamp)>,
    },
    /// The caller expects another capacity than the slot has.
    #[error("capacity is {capacity}, not {wanted}")]
    Disagreed {
        /// Capacity of the slot.
        capacity: u32,
        /// The capacity that the caller expects.
        wanted: u32,
    },
}

/// A holding ended: it expired, was released, or was taken from its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hold with fencing number {fence} has ended")]
pub struct SlotLost {
    /// Fencing number of the hold that ended.
    pub fence: FenceNumber,
}

/// A holding that is to be released is of somebody else, or has another fencing number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{holder} holds it with fencing number {fence}")]
pub struct SlotMismatch {
    /// Who holds the slot.
    pub holder: HolderName,
    /// Fencing number of that hold.
    pub fence: FenceNumber,
}

fn full(capacity: u32, holders: &[(HolderName, Timestamp)]) -> String {
    let Some((first, _)) = holders.first() else {
        return "capacity is 0".to_string();
    };
    let more = match holders.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    format!("{} of {capacity} held, by {first}{more}", holders.len())
}

/// Removes expired holds.
///
/// Woken by: slots, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for kept in fleet.slots.values() {
        let mut next = kept.value.next_end().map(|end| end.plus(SLACK));
        if next.is_some_and(|end| end <= now) {
            let mut slot = (*kept.value).clone();
            let events = expire(&mut slot, now);
            next = slot.next_end().map(|end| end.plus(SLACK));
            verdict.changesets.push(Changeset { writes: vec![write(slot)], events });
        }
        verdict.wake = [verdict.wake, next].into_iter().flatten().min();
    }
    verdict
}

/// Acquires a slot, or renews the hold if the holder has it already.
///
/// # Errors
/// [`SlotRefusal`] when it is full, or the expected capacities differ.
pub fn acquire(
    fleet: &Fleet,
    name: &SlotName,
    wish: SlotRequest,
    now: Timestamp,
) -> Result<(Changeset, SlotGrant), SlotRefusal> {
    let mut slot = slot_of(fleet, name);
    let mut events = expire(&mut slot, now);
    let ends = now.plus(wish.lease.unwrap_or(slot.lease));
    if let Some(holder) = slot.holders.get_mut(&wish.holder) {
        // Never shortened: the slot's lease may have been reduced meanwhile.
        holder.ends = holder.ends.max(ends);
        let grant = grant(holder);
        return Ok((Changeset { writes: vec![write(slot)], events }, grant));
    }
    events.extend(agree(&mut slot, wish.capacity)?);
    if slot.holders.len() >= usize::try_from(slot.capacity).unwrap_or(usize::MAX) {
        let holders = slot.holders.into_iter().map(|(name, holder)| (name, holder.since));
        return Err(SlotRefusal::Full { capacity: slot.capacity, holders: holders.collect() });
    }
    let before = words(&slot);
    slot.fence = slot.fence.next_in(fleet.epoch);
    let cause = format!("acquired by {}, fencing number {}: {}", wish.holder, slot.fence, wish.reason);
    let holder = Holder { fence: slot.fence, since: now, ends, by: wish.by, reason: wish.reason };
    let grant = grant(&holder);
    slot.holders.insert(wish.holder, holder);
    events.push(event_draft("slot.acquired", &slot, before, cause));
    Ok((Changeset { writes: vec![write(slot)], events }, grant))
}

/// Sets the expected capacity on a slot that nobody has configured or holds; checks it on any other.
fn agree(slot: &mut Slot, wanted: Option<u32>) -> Result<Option<EventDraft>, SlotRefusal> {
    match wanted {
        Some(wanted) if wanted != slot.capacity && slot.is_idle() => {
            let before = limits_text(slot);
            slot.capacity = wanted;
            Ok(Some(changed(slot, before, "set by its first holder")))
        }
        Some(wanted) if wanted != slot.capacity => {
            Err(SlotRefusal::Disagreed { capacity: slot.capacity, wanted })
        }
        Some(_) | None => Ok(None),
    }
}

/// Renews a hold by its whole duration, if the fencing number is still valid.
///
/// # Errors
/// [`SlotLost`]; a hold that ended is never valid again.
pub fn renew(
    fleet: &Fleet,
    name: &SlotName,
    hold: SlotHold<'_>,
    lease: Option<Span>,
    now: Timestamp,
) -> Result<(Changeset, SlotGrant), SlotLost> {
    let mut slot = slot_of(fleet, name);
    let ends = now.plus(lease.unwrap_or(slot.lease));
    let held = slot.holders.get_mut(hold.holder);
    let held = held.filter(|held| held.fence == hold.fence && !is_over(held, now));
    let held = held.ok_or(SlotLost { fence: hold.fence })?;
    held.ends = held.ends.max(ends);
    let grant = grant(held);
    Ok((Changeset { writes: vec![write(slot)], events: vec![] }, grant))
}

const fn grant(holder: &Holder) -> SlotGrant {
    SlotGrant { fence: holder.fence, since: holder.since, ends: holder.ends }
}

/// Releases a slot, only that hold if a number is given; `None` when that hold has ended, or nobody holds the slot.
///
/// # Errors
/// [`SlotMismatch`] when the number is that of another hold, or none that was given.
pub fn release(
    fleet: &Fleet,
    name: &SlotName,
    holder: &HolderName,
    fence: Option<FenceNumber>,
) -> Result<Option<Changeset>, SlotMismatch> {
    let Some(kept) = fleet.slots.get(name) else { return Ok(None) };
    if let Some(fence) = fence
        && let Some((holder, held)) = mismatch(&kept.value, holder, fence)
    {
        return Err(SlotMismatch { holder: holder.clone(), fence: held.fence });
    }
    let cause = format!("released by {holder}");
    Ok(take_from(fleet, name, holder, "slot.released", cause))
}

/// The hold that is meant by somebody who names a wrong one. One that ended is not wrong: its release may have been answered before, and
/// the answer lost.
fn mismatch<'a>(
    slot: &'a Slot,
    holder: &HolderName,
    fence: FenceNumber,
) -> Option<(&'a HolderName, &'a Holder)> {
    if let Some((own, held)) = slot.holders.get_key_value(holder) {
        return (held.fence != fence).then_some((own, held));
    }
    let of_other = slot.holders.iter().find(|(_, held)| held.fence == fence);
    let was_given = FenceNumber::ZERO < fence && fence <= slot.fence;
    of_other.or_else(|| slot.holders.iter().next().filter(|_| !was_given))
}

/// Removes a slot without holders, with its fencing number; `None` when there is none or it is held.
#[must_use]
pub fn forget(fleet: &Fleet, name: &SlotName) -> Option<Changeset> {
    let slot = &fleet.slots.get(name)?.value;
    let event = EventDraft {
        kind: "slot.deleted",
        subject: subject(name),
        before: Some(format!("{}, number {}", limits_text(slot), slot.fence)),
        after: None,
        cause: "deleted; fencing numbers start again".to_string(),
    };
    let changeset = Changeset { writes: vec![Write::delete(Key::Slot(name.clone()))], events: vec![event] };
    slot.holders.is_empty().then_some(changeset)
}

/// Takes a slot from a holder, as a person ordered; `None` when that holder does not have it.
#[must_use]
pub fn force(fleet: &Fleet, name: &SlotName, holder: &HolderName, reason: &str) -> Option<Changeset> {
    let cause = format!("taken from {holder}: {reason}");
    take_from(fleet, name, holder, "slot.forced", cause)
}

/// Sets the limits of a slot, which then exists until it is deleted; `None` when they are set so already.
/// Present holders are not affected.
#[must_use]
pub fn set(fleet: &Fleet, name: &SlotName, limits: SlotLimits) -> Option<Changeset> {
    let SlotLimits { capacity, lease } = limits;
    let old = slot_of(fleet, name);
    let slot = Slot { capacity, lease, configured: true, ..old.clone() };
    if slot == old {
        return None;
    }
    let mut event = changed(&slot, limits_text(&old), "set");
    event.before = event.before.filter(|before| event.after.as_ref() != Some(before));
    Some(Changeset { writes: vec![write(slot)], events: vec![event] })
}

fn limits_text(slot: &Slot) -> String {
    format!("capacity {}, lease {}", slot.capacity, slot.lease)
}

fn changed(slot: &Slot, before: String, cause: &str) -> EventDraft {
    EventDraft {
        kind: "slot.changed",
        subject: subject(&slot.name),
        before: Some(before),
        after: Some(limits_text(slot)),
        cause: cause.to_string(),
    }
}

fn slot_of(fleet: &Fleet, name: &SlotName) -> Slot {
    fleet.slots.get(name).map_or_else(|| Slot::fresh(name.clone()), |kept| (*kept.value).clone())
}

fn take_from(
    fleet: &Fleet,
    name: &SlotName,
    holder: &HolderName,
    kind: &'static str,
    cause: String,
) -> Option<Changeset> {
    let mut slot = slot_of(fleet, name);
    let before = words(&slot);
    slot.holders.remove(holder)?;
    let event = event_draft(kind, &slot, before, cause);
    Some(Changeset { writes: vec![write(slot)], events: vec![event] })
}

/// Whether a hold has ended by the clock of every server.
fn is_over(holder: &Holder, now: Timestamp) -> bool {
    holder.ends.plus(SLACK) <= now
}

fn expire(slot: &mut Slot, now: Timestamp) -> Vec<EventDraft> {
    let over = slot.holders.iter().filter(|(_, holder)| is_over(holder, now));
    let over: Vec<HolderName> = over.map(|(name, _)| name.clone()).collect();
    let mut events = Vec::new();
    for name in over {
        let before = words(slot);
        let Some(holder) = slot.holders.remove(&name) else { continue };
        let held = holder.ends.since(holder.since);
        let cause = format!("{name} neither released nor renewed it within its lease; held for {held}");
        events.push(event_draft("slot.expired", slot, before, cause));
    }
    events
}

/// The write that stores a slot, or removes it when it holds no information.
fn write(slot: Slot) -> Write {
    if slot.says_nothing() { Write::delete(Key::Slot(slot.name)) } else { Write::put(Record::Slot(slot)) }
}

fn event_draft(kind: &'static str, slot: &Slot, before: String, cause: String) -> EventDraft {
    EventDraft { kind, subject: subject(&slot.name), before: Some(before), after: Some(words(slot)), cause }
}

fn subject(name: &SlotName) -> String {
    format!("slot/{name}")
}

fn words(slot: &Slot) -> String {
    format!("{} of {} held", slot.holders.len(), slot.capacity)
}

#[cfg(test)]
mod tests;
