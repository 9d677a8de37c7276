//! Routes of services.

use bellwether_api::paths;
use bellwether_api::v1::http_sd::TargetGroup;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::service::{ServiceSummary, ServiceView};
use bellwether_core::access::{ObjectKind, RequiredAccess, Right};
use utoipa::openapi::path::HttpMethod::{Delete, Get};

use super::super::routes::{Empty, Routes, route};
use super::super::services;

/// Services and their instances.
pub(super) fn services(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<ServiceSummary>, _, _>(
            route(
                Get,
                paths::SERVICES,
                RequiredAccess::NodeOr(Right::get(ObjectKind::Service)),
                "List services",
            )
            .list()
            .query(&["index", "wait"]),
            services::list,
        )
        .add::<Empty, ServiceView, _, _>(
            route(
                Get,
                paths::SERVICE,
                RequiredAccess::NodeOr(Right::get(ObjectKind::Service)),
                "Get a service",
            )
            .query(&["index", "wait"]),
            services::get,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::SERVICE,
                RequiredAccess::delete(ObjectKind::Service),
                "Forget a service that has no instances",
            ),
            services::forget,
        )
        .item::<TargetGroup>()
        .add::<Empty, Vec<TargetGroup>, _, _>(
            route(
                Get,
                paths::HTTP_SD,
                RequiredAccess::NodeOr(Right::get(ObjectKind::Service)),
                "List the targets of a service for Prometheus",
            )
            .query(&["service", "tag"]),
            services::targets,
        )
}
