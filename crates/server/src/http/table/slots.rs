//! Routes of slots, and of the FleetLock protocol over them.

use bellwether_api::paths;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::slot::{
    AcquireSlot, FleetLock, ForceRelease, ReleaseSlot, RenewSlot, Slot, SlotGrant, SlotSpec, SlotView,
};
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::{fleet_lock, slots};

/// Slots.
pub(super) fn slots(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Slot>, _, _>(
            route(Get, paths::SLOTS, RequiredAccess::get(ObjectKind::Slot), "List slots")
                .list()
                .query(&["all"]),
            slots::list,
        )
        .add::<SlotSpec, Slot, _, _>(
            route(
                Put,
                paths::SLOT,
                RequiredAccess::update(ObjectKind::Slot),
                "Set the capacity and lease of a slot",
            ),
            slots::put,
        )
        .add::<Empty, SlotView, _, _>(
            route(Get, paths::SLOT, RequiredAccess::get(ObjectKind::Slot), "Get a slot")
                .query(&["index", "wait"]),
            slots::get,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::SLOT,
                RequiredAccess::delete(ObjectKind::Slot),
                "Delete a slot that has no holder",
            ),
            slots::delete,
        )
}

/// Acquisitions of slots.
pub(super) fn acquisitions(routes: Routes) -> Routes {
    routes
        .add::<AcquireSlot, SlotGrant, _, _>(
            route(
                Post,
                paths::SLOT_ACQUIRE,
                RequiredAccess::update_field(ObjectKind::Slot, "/holders"),
                "Acquire a slot, or renew it by holder",
            ),
            slots::acquire,
        )
        .add::<RenewSlot, SlotGrant, _, _>(
            route(
                Post,
                paths::SLOT_RENEW,
                RequiredAccess::update_field(ObjectKind::Slot, "/holders"),
                "Renew a slot by its fencing number",
            ),
            slots::renew,
        )
        .add::<ReleaseSlot, Empty, _, _>(
            route(
                Post,
                paths::SLOT_RELEASE,
                RequiredAccess::update_field(ObjectKind::Slot, "/holders"),
                "Release a slot",
            ),
            slots::release,
        )
        .add::<ForceRelease, Empty, _, _>(
            route(
                Post,
                paths::SLOT_FORCE_RELEASE,
                RequiredAccess::update(ObjectKind::Slot),
                "Take a slot from its holder",
            ),
            slots::force_release,
        )
}

/// The FleetLock protocol.
pub(super) fn fleet_lock(routes: Routes) -> Routes {
    routes
        .add::<FleetLock, Empty, _, _>(
            route(
                Post,
                paths::PRE_REBOOT,
                RequiredAccess::update_field(ObjectKind::Slot, "/holders"),
                "FleetLock: acquire the slot `reboot`",
            ),
            fleet_lock::pre_reboot,
        )
        .add::<FleetLock, Empty, _, _>(
            route(
                Post,
                paths::STEADY_STATE,
                RequiredAccess::update_field(ObjectKind::Slot, "/holders"),
                "FleetLock: release the slot `reboot`",
            ),
            fleet_lock::steady_state,
        )
        .add::<FleetLock, Empty, _, _>(
            route(
                Post,
                paths::SLOT_PRE_REBOOT,
                RequiredAccess::update_field(ObjectKind::Slot, "/holders"),
                "FleetLock: acquire a slot",
            ),
            fleet_lock::pre_reboot_of,
        )
        .add::<FleetLock, Empty, _, _>(
            route(
                Post,
                paths::SLOT_STEADY_STATE,
                RequiredAccess::update_field(ObjectKind::Slot, "/holders"),
                "FleetLock: release a slot",
            ),
            fleet_lock::steady_state_of,
        )
}
