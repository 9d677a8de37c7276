//! The part of the table that keeps things from happening: freezes, pauses, and slots that only so many may hold.

use bellwether_api::paths;
use bellwether_api::v1::freeze::{FreezeSpec, FreezeView};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::pause::{PauseSpec, PauseView};
use bellwether_api::v1::slot::{Acquire, FleetLock, Force, GiveBack, Grant, Renew, Slot, SlotSpec, SlotView};
use bellwether_core::access::Need;
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::routes::{Nothing, Routes};
use super::super::{fleet_lock, freezes, pauses, slots};
use super::route;

/// What targets are not told, for a while.
pub(super) fn frozen(routes: Routes) -> Routes {
    routes
        .add::<Nothing, Page<FreezeView>, _, _>(
            route(Get, paths::FREEZES, Need::Read, "List freezes, and those of every namespace"),
            freezes::list,
        )
        .add::<Nothing, FreezeView, _, _>(route(Get, paths::FREEZE, Need::Read, "Get a freeze"), freezes::get)
        .add::<FreezeSpec, FreezeView, _, _>(
            route(Put, paths::FREEZE, Need::Operate, "Set a freeze, in place of any of its name"),
            freezes::put,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::FREEZE, Need::Operate, "End a freeze"),
            freezes::delete,
        )
        .add::<Nothing, Page<FreezeView>, _, _>(
            route(Get, paths::GLOBAL_FREEZES, Need::Administer, "List freezes of every namespace"),
            freezes::list_global,
        )
        .add::<Nothing, FreezeView, _, _>(
            route(Get, paths::GLOBAL_FREEZE, Need::Administer, "Get a freeze of every namespace"),
            freezes::get_global,
        )
        .add::<FreezeSpec, FreezeView, _, _>(
            route(Put, paths::GLOBAL_FREEZE, Need::Administer, "Set a freeze of every namespace"),
            freezes::put_global,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::GLOBAL_FREEZE, Need::Administer, "End a freeze of every namespace"),
            freezes::delete_global,
        )
}

/// Nodes that start nothing new, by selector.
pub(super) fn paused(routes: Routes) -> Routes {
    routes
        .add::<Nothing, Page<PauseView>, _, _>(
            route(Get, paths::PAUSES, Need::Read, "List pauses of nodes by selector"),
            pauses::list,
        )
        .add::<Nothing, PauseView, _, _>(route(Get, paths::PAUSE, Need::Read, "Get a pause"), pauses::get)
        .add::<PauseSpec, PauseView, _, _>(
            route(Put, paths::PAUSE, Need::Operate, "Pause nodes by selector, in place of any of its name"),
            pauses::put,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::PAUSE, Need::Operate, "End a pause"),
            pauses::delete,
        )
}

/// What only so many may do at once, and who may reboot.
pub(super) fn turns(routes: Routes) -> Routes {
    routes
        .add::<Nothing, Page<Slot>, _, _>(route(Get, paths::SLOTS, Need::Read, "List slots"), slots::list)
        .add::<SlotSpec, Slot, _, _>(
            route(Put, paths::SLOT, Need::Operate, "Set how many may hold a slot, and for how long"),
            slots::put,
        )
        .add::<Nothing, SlotView, _, _>(route(Get, paths::SLOT, Need::Read, "Get a slot"), slots::get)
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::SLOT, Need::Operate, "Forget a slot that nobody holds"),
            slots::delete,
        )
        .add::<Acquire, Grant, _, _>(
            route(Post, paths::SLOT_ACQUIRE, Need::Operate, "Take a slot, or hold it longer"),
            slots::acquire,
        )
        .add::<Renew, Grant, _, _>(
            route(Post, paths::SLOT_RENEW, Need::Operate, "Hold a slot longer, as that very holding"),
            slots::renew,
        )
        .add::<GiveBack, Nothing, _, _>(
            route(Post, paths::SLOT_GIVE_BACK, Need::Operate, "Give a slot back"),
            slots::give_back,
        )
        .add::<Force, Nothing, _, _>(
            route(Post, paths::SLOT_RELEASE, Need::Operate, "Take a slot from its holder"),
            slots::release,
        )
        .add::<FleetLock, Nothing, _, _>(
            route(Post, paths::PRE_REBOOT, Need::Operate, "FleetLock: take one's turn to reboot"),
            fleet_lock::pre_reboot,
        )
        .add::<FleetLock, Nothing, _, _>(
            route(Post, paths::STEADY_STATE, Need::Operate, "FleetLock: the reboot is done"),
            fleet_lock::steady_state,
        )
        .add::<FleetLock, Nothing, _, _>(
            route(Post, paths::SLOT_PRE_REBOOT, Need::Operate, "FleetLock over a slot: take one's turn"),
            fleet_lock::pre_reboot_of,
        )
        .add::<FleetLock, Nothing, _, _>(
            route(Post, paths::SLOT_STEADY_STATE, Need::Operate, "FleetLock over a slot: it is done"),
            fleet_lock::steady_state_of,
        )
}
