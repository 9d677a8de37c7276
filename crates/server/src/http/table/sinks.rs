//! Routes of sinks of events.

use bellwether_api::paths;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::sink::{EnableSink, ReplayEvents, Sink, SinkSpec, SinkTest};
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::sinks as handlers;

/// Sinks of events.
pub(super) fn sinks(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Sink);
    let update = || RequiredAccess::update(ObjectKind::Sink);
    let delete = RequiredAccess::delete(ObjectKind::Sink);
    routes
        .add::<Empty, Page<Sink>, _, _>(
            route(Get, paths::SINKS, get(), "List sinks of events, and how far they are").list(),
            handlers::list,
        )
        .add::<Empty, Sink, _, _>(
            route(Get, paths::SINK, get(), "Get a sink of events, and how far it is"),
            handlers::get,
        )
        .add::<SinkSpec, Sink, _, _>(
            route(
                Put,
                paths::SINK,
                update(),
                "Create a sink of events, or change it; also needs the right to get everything in the namespace",
            )
            .creates()
            .conditional(),
            handlers::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::SINK, delete, "Delete a sink of events").conditional(),
            handlers::delete,
        )
        .add::<EnableSink, Sink, _, _>(
            route(Put, paths::SINK_ENABLED, update(), "Enable a sink of events, or disable it"),
            handlers::enable,
        )
        .add::<ReplayEvents, Sink, _, _>(
            route(Post, paths::SINK_REPLAY, update(), "Send events again"),
            handlers::replay,
        )
        .add::<Empty, SinkTest, _, _>(
            route(Post, paths::SINK_TEST, update(), "Send a test event to the receiver of a sink"),
            handlers::test,
        )
}
