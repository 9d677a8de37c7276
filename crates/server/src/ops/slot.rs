//! Operations on slots: acquire, renew, release, force release, configure, delete. Core decides who may hold one.

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::slot::{AcquireSlot, ForceRelease, RenewSlot, Slot as View, SlotSpec, lease};
use bellwether_core::decide::slots::{self, SlotGrant, SlotHold, SlotRefusal, SlotRequest};
use bellwether_core::records::slot::{MAX_CAPACITY, Slot, SlotLimits};
use bellwether_core::words::counter::FenceNumber;
use bellwether_core::words::name::{Actor, HolderName, SlotName};
use bellwether_core::world::fleet::Fleet;

use super::scope::SlotScope;
use super::{OpError, reason};
use crate::transactor::Transactor;

/// Most slots of a namespace, counting those of which only the last fencing number is kept.
const MAX_SLOTS: usize = 10_000;

/// Acquires a slot, or extends the lease of its holder. Repeating the request is safe.
///
/// # Errors
/// [`OpError::Refused`] when it cannot be acquired now, and for no other reason.
pub async fn acquire(
    transactor: &Transactor,
    scope: SlotScope<'_>,
    request: &SlotRequest,
) -> Result<SlotGrant, OpError> {
    let name = scope.slot;
    transactor
        .change(scope.namespace, scope.actor, |_, fleet, now| {
            has_room(fleet, name)?;
            let (changeset, grant) =
                slots::acquire(fleet, name, request.clone(), now).map_err(|not_now| OpError::Refused {
                    reason: format!("give slot {name} to {}: {not_now}", request.holder),
                    hint: Some(match not_now {
                        SlotRefusal::Full { .. } => {
                            "retry; bellwether slot list shows its holders".to_owned()
                        }
                        SlotRefusal::Disagreed { wanted, .. } => {
                            format!(
                                "all clients must use the same capacity: bellwether slot set {name} --capacity {wanted}"
                            )
                        }
                    }),
                })?;
            Ok((Some(changeset), grant))
        })
        .await
}

/// Parses a request for a slot.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn request(actor: &Actor, acquire: &AcquireSlot) -> Result<SlotRequest, ShapeError> {
    if acquire.capacity.is_some_and(|capacity| !(1..=MAX_CAPACITY).contains(&capacity)) {
        return Err(ShapeError::at("capacity", format!("must be between 1 and {MAX_CAPACITY}")));
    }
    Ok(SlotRequest {
        holder: read("holder", &acquire.holder)?,
        by: actor.clone(),
        reason: reason(&acquire.reason)?,
        lease: lease(acquire.lease.as_deref())?,
        capacity: acquire.capacity,
    })
}

/// Extends the lease of one holding of a slot.
///
/// # Errors
/// [`OpError::Refused`] when the holding is over, and for no other reason; [`OpError::Invalid`] naming the field.
pub async fn renew(
    transactor: &Transactor,
    scope: SlotScope<'_>,
    renew: &RenewSlot,
) -> Result<SlotGrant, OpError> {
    let name = scope.slot;
    let (holder, fence): (HolderName, _) = (read("holder", &renew.holder)?, FenceNumber::new(renew.fence));
    let lease = lease(renew.lease.as_deref())?;
    transactor
        .change(scope.namespace, scope.actor, |_, fleet, now| {
            let renewed = slots::renew(fleet, name, SlotHold { holder: &holder, fence }, lease, now);
            let (changeset, grant) = renewed.map_err(|over| OpError::Refused {
                reason: format!("renew slot {name} for {holder}: {over}"),
                hint: Some(format!("show its state: bellwether describe slot/{name}")),
            })?;
            Ok((Some(changeset), grant))
        })
        .await
}

/// Releases a slot; with a fencing number, only that holding. Releasing a slot that is not held, or a holding that has ended, succeeds.
///
/// # Errors
/// [`OpError::Refused`] when the number is not that of this holder; [`OpError::Forbidden`] when another token acquired it, unless `of_all`.
pub async fn release(
    transactor: &Transactor,
    scope: SlotScope<'_>,
    holder: &HolderName,
    fence: Option<FenceNumber>,
    of_all: bool,
) -> Result<(), OpError> {
    let name = scope.slot;
    transactor
        .change(scope.namespace, scope.actor, |_, fleet, _| {
            let released = slots::release(fleet, name, holder, fence).map_err(|other| OpError::Refused {
                reason: format!("release slot {name} for {holder}: {other}"),
                hint: Some(format!("show its state: bellwether describe slot/{name}")),
            })?;
            let held = fleet.slots.get(name).and_then(|kept| kept.value.holders.get(holder));
            if let Some(held) = held.filter(|held| !of_all && held.by != *scope.actor) {
                return Err(OpError::Forbidden {
                    what: format!("release slot {name} for {holder}: token {} acquired it", held.by),
                    needed: format!("update slot/{name} in {}", scope.namespace),
                });
            }
            Ok((released, ()))
        })
        .await
}

/// Deletes a slot without holders.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while it is held.
pub async fn delete(transactor: &Transactor, scope: SlotScope<'_>) -> Result<(), OpError> {
    let name = scope.slot;
    transactor
        .change(scope.namespace, scope.actor, |_, fleet, _| {
            match (slots::forget(fleet, name), fleet.slots.get(name)) {
                (Some(changeset), _) => Ok((Some(changeset), ())),
                (None, None) => Err(OpError::NotFound(format!("slot {name}"))),
                (None, Some(_)) => Err(OpError::Refused {
                    reason: format!("delete slot {name}: it is held"),
                    hint: Some(format!("bellwether describe slot/{name}")),
                }),
            }
        })
        .await
}

/// Releases a slot on behalf of its holder.
///
/// # Errors
/// [`OpError::NotFound`] when the holder does not hold it; [`OpError::Invalid`] without a reason.
pub async fn force(
    transactor: &Transactor,
    scope: SlotScope<'_>,
    force: &ForceRelease,
) -> Result<(), OpError> {
    let name = scope.slot;
    let holder: HolderName = read("holder", &force.holder)?;
    let reason = reason(&force.reason)?;
    if reason.is_empty() {
        return Err(ShapeError::at("reason", "missing; the former holder reads it").into());
    }
    transactor
        .change(scope.namespace, scope.actor, |_, fleet, _| {
            match slots::force(fleet, name, &holder, &reason) {
                Some(changeset) => Ok((Some(changeset), ())),
                None => Err(OpError::NotFound(format!("{holder} among the holders of slot {name}"))),
            }
        })
        .await
}

/// Sets the capacity and the lease of a slot, which then exists until it is deleted. Present holders keep it.
///
/// # Errors
/// [`OpError::Invalid`] naming the field.
pub async fn set(transactor: &Transactor, scope: SlotScope<'_>, spec: &SlotSpec) -> Result<View, OpError> {
    let name = scope.slot;
    transactor
        .change(scope.namespace, scope.actor, |_, fleet, _| {
            has_room(fleet, name)?;
            let kept = fleet.slots.get(name);
            let old = kept.map_or_else(|| Slot::fresh(name.clone()), |kept| (*kept.value).clone());
            let limits = spec.read(SlotLimits { capacity: old.capacity, lease: old.lease })?;
            let SlotLimits { capacity, lease } = limits;
            let view = View::from(&Slot { capacity, lease, configured: true, ..old });
            Ok((slots::set(fleet, name, limits), view))
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
