//! Routes of freezes and pauses.

use bellwether_api::paths;
use bellwether_api::v1::freeze::{FreezeSpec, FreezeView};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::pause::{PauseSpec, PauseView};
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::{freezes, pauses};

/// Freezes.
pub(super) fn freezes(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<FreezeView>, _, _>(
            route(
                Get,
                paths::FREEZES,
                RequiredAccess::get(ObjectKind::Freeze),
                "List freezes, including global ones",
            )
            .list(),
            freezes::list,
        )
        .add::<Empty, FreezeView, _, _>(
            route(Get, paths::FREEZE, RequiredAccess::get(ObjectKind::Freeze), "Get a freeze"),
            freezes::get,
        )
        .add::<FreezeSpec, FreezeView, _, _>(
            route(
                Put,
                paths::FREEZE,
                RequiredAccess::update(ObjectKind::Freeze),
                "Set a freeze, replacing any of that name",
            )
            .creates(),
            freezes::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::FREEZE, RequiredAccess::delete(ObjectKind::Freeze), "End a freeze"),
            freezes::delete,
        )
}

/// Freezes of all namespaces.
pub(super) fn global_freezes(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<FreezeView>, _, _>(
            route(
                Get,
                paths::GLOBAL_FREEZES,
                RequiredAccess::get(ObjectKind::GlobalFreeze),
                "List global freezes",
            )
            .list(),
            freezes::list_global,
        )
        .add::<Empty, FreezeView, _, _>(
            route(
                Get,
                paths::GLOBAL_FREEZE,
                RequiredAccess::get(ObjectKind::GlobalFreeze),
                "Get a global freeze",
            ),
            freezes::get_global,
        )
        .add::<FreezeSpec, FreezeView, _, _>(
            route(
                Put,
                paths::GLOBAL_FREEZE,
                RequiredAccess::update(ObjectKind::GlobalFreeze),
                "Set a global freeze",
            )
            .creates(),
            freezes::put_global,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::GLOBAL_FREEZE,
                RequiredAccess::delete(ObjectKind::GlobalFreeze),
                "End a global freeze",
            ),
            freezes::delete_global,
        )
}

/// Pauses of nodes by selector.
pub(super) fn pauses(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<PauseView>, _, _>(
            route(
                Get,
                paths::PAUSES,
                RequiredAccess::get(ObjectKind::Pause),
                "List pauses of nodes by selector",
            )
            .list(),
            pauses::list,
        )
        .add::<Empty, PauseView, _, _>(
            route(Get, paths::PAUSE, RequiredAccess::get(ObjectKind::Pause), "Get a pause"),
            pauses::get,
        )
        .add::<PauseSpec, PauseView, _, _>(
            route(
                Put,
                paths::PAUSE,
                RequiredAccess::update(ObjectKind::Pause),
                "Pause nodes by selector, replacing any pause of that name",
            )
            .creates(),
            pauses::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::PAUSE, RequiredAccess::delete(ObjectKind::Pause), "End a pause"),
            pauses::delete,
        )
}
