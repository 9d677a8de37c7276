//! The part of the table that keeps things from happening: freezes, pauses, and slots that only so many may hold.

use bellwether_api::paths;
use bellwether_api::v1::freeze::{FreezeSpec, FreezeView};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::pause::{PauseSpec, PauseView};
use bellwether_api::v1::slot::{
    AcquireSlot, FleetLock, ForceRelease, ReleaseSlot, RenewSlot, Slot, SlotGrant, SlotSpec, SlotView,
};
use bellwether_core::access::RequiredAccess;
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::routes::{Empty, Routes};
use super::super::{fleet_lock, freezes, pauses, slots};
use super::route;

/// What targets are not told, for a while.
pub(super) fn frozen(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<FreezeView>, _, _>(
            route(Get, paths::FREEZES, RequiredAccess::Read, "List freezes, and those of every namespace"),
            freezes::list,
        )
        .add::<Empty, FreezeView, _, _>(
            route(Get, paths::FREEZE, RequiredAccess::Read, "Get a freeze"),
            freezes::get,
        )
        .add::<FreezeSpec, FreezeView, _, _>(
            route(Put, paths::FREEZE, RequiredAccess::Operate, "Set a freeze, in place of any of its name"),
            freezes::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::FREEZE, RequiredAccess::Operate, "End a freeze"),
            freezes::delete,
        )
        .add::<Empty, Page<FreezeView>, _, _>(
            route(Get, paths::GLOBAL_FREEZES, RequiredAccess::Administer, "List freezes of every namespace"),
            freezes::list_global,
        )
        .add::<Empty, FreezeView, _, _>(
            route(Get, paths::GLOBAL_FREEZE, RequiredAccess::Administer, "Get a freeze of every namespace"),
            freezes::get_global,
        )
        .add::<FreezeSpec, FreezeView, _, _>(
            route(Put, paths::GLOBAL_FREEZE, RequiredAccess::Administer, "Set a freeze of every namespace"),
            freezes::put_global,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::GLOBAL_FREEZE,
                RequiredAccess::Administer,
                "End a freeze of every namespace",
            ),
            freezes::delete_global,
        )
}

/// Nodes that start nothing new, by selector.
pub(super) fn paused(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<PauseView>, _, _>(
            route(Get, paths::PAUSES, RequiredAccess::Read, "List pauses of nodes by selector"),
            pauses::list,
        )
        .add::<Empty, PauseView, _, _>(
            route(Get, paths::PAUSE, RequiredAccess::Read, "Get a pause"),
            pauses::get,
        )
        .add::<PauseSpec, PauseView, _, _>(
            route(
                Put,
                paths::PAUSE,
                RequiredAccess::Operate,
                "Pause nodes by selector, in place of any of its name",
            ),
            pauses::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::PAUSE, RequiredAccess::Operate, "End a pause"),
            pauses::delete,
        )
}

/// What only so many may do at once, and who may reboot.
pub(super) fn turns(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Slot>, _, _>(
            route(Get, paths::SLOTS, RequiredAccess::Read, "List slots").query(&["all"]),
            slots::list,
        )
        .add::<SlotSpec, Slot, _, _>(
            route(
                Put,
                paths::SLOT,
                RequiredAccess::Operate,
                "Set how many may hold a slot, and for how long",
            ),
            slots::put,
        )
        .add::<Empty, SlotView, _, _>(
            route(Get, paths::SLOT, RequiredAccess::Read, "Get a slot").query(&["index", "wait"]),
            slots::get,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::SLOT, RequiredAccess::Operate, "Forget a slot that nobody holds"),
            slots::delete,
        )
        .add::<AcquireSlot, SlotGrant, _, _>(
            route(Post, paths::SLOT_ACQUIRE, RequiredAccess::Operate, "Take a slot, or hold it longer"),
            slots::acquire,
        )
        .add::<RenewSlot, SlotGrant, _, _>(
            route(
                Post,
                paths::SLOT_RENEW,
                RequiredAccess::Operate,
                "Hold a slot longer, as that very holding",
            ),
            slots::renew,
        )
        .add::<ReleaseSlot, Empty, _, _>(
            route(Post, paths::SLOT_RELEASE, RequiredAccess::Operate, "Give a slot back"),
            slots::give_back,
        )
        .add::<ForceRelease, Empty, _, _>(
            route(Post, paths::SLOT_FORCE_RELEASE, RequiredAccess::Operate, "Take a slot from its holder"),
            slots::release,
        )
}

/// The FleetLock protocol.
pub(super) fn fleet_lock(routes: Routes) -> Routes {
    routes
        .add::<FleetLock, Empty, _, _>(
            route(Post, paths::PRE_REBOOT, RequiredAccess::Operate, "FleetLock: take one's turn to reboot"),
            fleet_lock::pre_reboot,
        )
        .add::<FleetLock, Empty, _, _>(
            route(Post, paths::STEADY_STATE, RequiredAccess::Operate, "FleetLock: the reboot is done"),
            fleet_lock::steady_state,
        )
        .add::<FleetLock, Empty, _, _>(
            route(
                Post,
                paths::SLOT_PRE_REBOOT,
                RequiredAccess::Operate,
                "FleetLock over a slot: take one's turn",
            ),
            fleet_lock::pre_reboot_of,
        )
        .add::<FleetLock, Empty, _, _>(
            route(
                Post,
                paths::SLOT_STEADY_STATE,
                RequiredAccess::Operate,
                "FleetLock over a slot: it is done",
            ),
            fleet_lock::steady_state_of,
        )
}
