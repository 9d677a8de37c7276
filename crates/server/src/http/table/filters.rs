//! Routes of saved filters.

use bellwether_api::paths;
use bellwether_api::v1::filter::{Filter, FilterSpec};
use bellwether_api::v1::page::Page;
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Put};

use super::super::filters;
use super::super::routes::{Empty, Routes, route};

/// Saved filters.
pub(super) fn filters(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Filter>, _, _>(
            route(Get, paths::FILTERS, RequiredAccess::get(ObjectKind::Filter), "List saved filters").list(),
            filters::list,
        )
        .add::<Empty, Filter, _, _>(
            route(Get, paths::FILTER, RequiredAccess::get(ObjectKind::Filter), "Get a saved filter"),
            filters::get,
        )
        .add::<FilterSpec, Filter, _, _>(
            route(Put, paths::FILTER, RequiredAccess::update(ObjectKind::Filter), "Save a filter")
                .creates()
                .conditional(),
            filters::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::FILTER,
                RequiredAccess::delete(ObjectKind::Filter),
                "Delete a saved filter that no other names",
            )
            .conditional(),
            filters::delete,
        )
}
