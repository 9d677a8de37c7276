//! Slots: taking one, giving it back, taking it from its holder, and how many may. Who may is decided in the core.

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::slot::{Force, Slot as View, SlotSpec};
use bellwether_core::decide::slots::{self, Wish};
use bellwether_core::records::slot::Slot;
use bellwether_core::words::name::{Actor, HolderName, Namespace, SlotName};
use bellwether_core::world::fleet::Fleet;

use super::{OpError, reason};
use crate::desk::Desk;

/// Most slots of a namespace that there is something to say of.
const MAX_SLOTS: usize = 1_000;

/// Takes a slot for `holder`, or lets it hold it longer. Done is done, however often it is asked.
///
/// # Errors
/// [`OpError::Refused`] when nobody more may hold it, and for no other reason.
pub async fn acquire(
    desk: &Desk,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    (holder, why): (&HolderName, &str),
) -> Result<(), OpError> {
    desk.change(namespace, actor, |_, fleet, now| {
        has_room(fleet, name)?;
        let wish = Wish { holder: holder.clone(), by: actor.clone(), why: why.to_owned() };
        let atom = slots::acquire(fleet, name, wish, now).map_err(|full| OpError::Refused {
            reason: format!("lend slot {name} to {holder}: {full}"),
            hint: Some("ask again; bellwether slot list shows who has it and until when".to_owned()),
        })?;
        Ok((Some(atom), ()))
    })
    .await
}

/// Gives a slot back. Done is done, also when it was not held.
///
/// # Errors
/// [`OpError`] when it could not be written.
pub async fn release(
    desk: &Desk,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    holder: &HolderName,
) -> Result<(), OpError> {
    desk.change(namespace, actor, |_, fleet, _| Ok((slots::release(fleet, name, holder), ()))).await
}

/// Takes a slot from whoever holds it.
///
/// # Errors
/// [`OpError::NotFound`] when they do not hold it; [`OpError::Invalid`] without a reason.
pub async fn force(
    desk: &Desk,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    force: &Force,
) -> Result<(), OpError> {
    let holder: HolderName = read("holder", &force.holder)?;
    let why = reason(&force.why)?;
    if why.is_empty() {
        return Err(ShapeError::at("why", "say why: it is what others read who ask who took it").into());
    }
    desk.change(namespace, actor, |_, fleet, _| match slots::force(fleet, name, &holder, &why) {
        Some(atom) => Ok((Some(atom), ())),
        None => Err(OpError::NotFound(format!("{holder} among the holders of slot {name}"))),
    })
    .await
}

/// Sets how many may hold a slot, and for how long. Whoever holds it goes on.
///
/// # Errors
/// [`OpError::Invalid`] naming the field.
pub async fn set(
    desk: &Desk,
    (namespace, name): (&Namespace, &SlotName),
    actor: &Actor,
    spec: &SlotSpec,
) -> Result<View, OpError> {
    desk.change(namespace, actor, |_, fleet, _| {
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
    let reason = format!("there are {MAX_SLOTS} slots already; see which: bellwether slot list");
    Err(ShapeError::at("slot", reason).into())
}
