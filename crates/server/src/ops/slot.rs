//! Slots: taking one, giving it back, taking it from its holder, and how many may. Who may is decided in the core.

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::slot::{AcquireSlot, ForceRelease, RenewSlot, Slot as View, SlotSpec, lease};
use bellwether_core::decide::slots::{self, SlotGrant, SlotRefusal, SlotRequest};
use bellwether_core::records::slot::{MAX_CAPACITY, Slot};
use bellwether_core::words::counter::FenceNumber;
use bellwether_core::words::name::{Actor, HolderName, Namespace, SlotName};
use bellwether_core::world::fleet::Fleet;

use super::{OpError, reason};
use crate::transactor::Transactor;

/// Most slots of a namespace that there is something to say of, if it is only the number they were last taken with.
const MAX_SLOTS: usize = 10_000;

/// Takes a slot as `wish` has it, or lets its holder have it longer. Done is done, however often it is asked.
///
/// # Errors
/// [`OpError::Refused`] when it cannot be had now, and for no other reason.
pub async fn acquire(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &SlotName),
    wish: &SlotRequest,
) -> Result<SlotGrant, OpError> {
    transactor
        .change(namespace, &wish.by, |_, fleet, now| {
            has_room(fleet, name)?;
            let (changeset, grant) =
                slots::acquire(fleet, name, wish.clone(), now).map_err(|not_now| OpError::Refused {
                    reason: format!("lend slot {name} to {}: {not_now}", wish.holder),
                    hint: Some(match not_now {
                        SlotRefusal::Full { .. } => {
                            "ask again; bellwether slot list shows who has it and until when".to_owned()
                        }
                        SlotRefusal::Disagreed { wanted, .. } => {
                            format!(
                                "whoever takes it must agree: bellwether slot set {name} --capacity {wanted}"
                            )
                        }
                    }),
                })?;
            Ok((Some(changeset), grant))
        })
        .await
}

/// Reads what somebody wishes.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn wish(actor: &Actor, acquire: &AcquireSlot) -> Result<SlotRequest, ShapeError> {
    if acquire.capacity.is_some_and(|capacity| !(1..=MAX_CAPACITY).contains(&capacity)) {
        return Err(ShapeError::at("capacity", format!("it is not from 1 to {MAX_CAPACITY}")));
    }
    Ok(SlotRequest {
        holder: read("holder", &acquire.holder)?,
        by: actor.clone(),
        reason: reason(&acquire.reason)?,
        lease: lease(acquire.lease.as_deref())?,
        capacity: acquire.capacity,
    })
}

/// Lets whoever has a slot have it longer, as that very holding.
///
/// # Errors
/// [`OpError::Refused`] when that holding is over, and for no other reason; [`OpError::Invalid`] naming the field.
pub async fn renew(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    renew: &RenewSlot,
) -> Result<SlotGrant, OpError> {
    let (holder, fence): (HolderName, _) = (read("holder", &renew.holder)?, FenceNumber::new(renew.fence));
    let lease = lease(renew.lease.as_deref())?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let renewed = slots::renew(fleet, name, (&holder, fence), lease, now);
            let (changeset, grant) = renewed.map_err(|over| OpError::Refused {
                reason: format!("let {holder} hold slot {name} longer: {over}"),
                hint: Some(format!("see what became of it: bellwether describe slot/{name}")),
            })?;
            Ok((Some(changeset), grant))
        })
        .await
}

/// Gives a slot back, that very holding if one is said. Done is done, also when it was not held.
///
/// # Errors
/// [`OpError`] when it could not be written.
pub async fn release(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    (holder, fence): (&HolderName, Option<FenceNumber>),
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| Ok((slots::release(fleet, name, holder, fence), ())))
        .await
}

/// Forgets a slot that nobody holds.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while somebody holds it.
pub async fn delete(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| match (slots::forget(fleet, name), fleet.slots.get(name)) {
            (Some(changeset), _) => Ok((Some(changeset), ())),
            (None, None) => Err(OpError::NotFound(format!("slot {name}"))),
            (None, Some(_)) => Err(OpError::Refused {
                reason: format!("delete slot {name}: somebody holds it"),
                hint: Some(format!("bellwether describe slot/{name}")),
            }),
        })
        .await
}

/// Takes a slot from whoever holds it.
///
/// # Errors
/// [`OpError::NotFound`] when they do not hold it; [`OpError::Invalid`] without a reason.
pub async fn force(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    force: &ForceRelease,
) -> Result<(), OpError> {
    let holder: HolderName = read("holder", &force.holder)?;
    let reason = reason(&force.reason)?;
    if reason.is_empty() {
        return Err(ShapeError::at("reason", "say why: it is what others read who ask who took it").into());
    }
    transactor
        .change(namespace, actor, |_, fleet, _| match slots::force(fleet, name, &holder, &reason) {
            Some(changeset) => Ok((Some(changeset), ())),
            None => Err(OpError::NotFound(format!("{holder} among the holders of slot {name}"))),
        })
        .await
}

/// Sets how many may hold a slot, and for how long. Whoever holds it goes on.
///
/// # Errors
/// [`OpError::Invalid`] naming the field.
pub async fn set(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    spec: &SlotSpec,
) -> Result<View, OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            has_room(fleet, name)?;
            let kept = fleet.slots.get(name);
            let old = kept.map_or_else(|| Slot::fresh(name.clone()), |kept| (*kept.value).clone());
            let (capacity, lease) = spec.read((old.capacity, old.lease))?;
            let view = View::from(&Slot { capacity, lease, ..old });
            Ok((slots::set(fleet, name, (capacity, lease)), view))
        })
        .await
}

fn has_room(fleet: &Fleet, name: &SlotName) -> Result<(), OpError> {
    if fleet.slots.contains_key(name) || fleet.slots.size() < MAX_SLOTS {
        return Ok(());
    }
    let reason = format!("there are {MAX_SLOTS} slots already; delete some: bellwether slot list --all");
    Err(ShapeError::at("slot", reason).into())
}
