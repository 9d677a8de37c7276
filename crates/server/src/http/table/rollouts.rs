//! Routes of rollouts, events and explanations.

use bellwether_api::paths;
use bellwether_api::v1::event::{Event, EventChain};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::plan::{NewPlan, Plan};
use bellwether_api::v1::rollout::{NewRollout, Rollout, RolloutOperation, RolloutView, StartedRollout};
use bellwether_api::v1::why::Why;
use bellwether_core::access::{ObjectKind, RequiredAccess, Right};
use utoipa::openapi::path::HttpMethod::{Get, Post};

use super::super::routes::{Empty, Routes, route};
use super::super::{event_chain, events, plan, rollouts, why};

/// Rollouts.
pub(super) fn rollouts(routes: Routes) -> Routes {
    routes
        .add::<NewPlan, Plan, _, _>(
            route(Post, paths::PLAN, RequiredAccess::get(ObjectKind::Rollout), "Predict a rollout"),
            plan::plan,
        )
        .add::<NewRollout, StartedRollout, _, _>(
            route(
                Post,
                paths::ROLLOUTS,
                RequiredAccess::update_field(ObjectKind::Rollout, "/start"),
                "Start a rollout",
            ),
            rollouts::start,
        )
        .add::<Empty, Page<Rollout>, _, _>(
            route(Get, paths::ROLLOUTS, RequiredAccess::get(ObjectKind::Rollout), "List rollouts").list(),
            rollouts::list,
        )
        .add::<Empty, Rollout, _, _>(
            route(Get, paths::ROLLOUT, RequiredAccess::get(ObjectKind::Rollout), "Get a rollout"),
            rollouts::get,
        )
        .add::<Empty, RolloutView, _, _>(
            route(
                Get,
                paths::ROLLOUT_CURRENT,
                RequiredAccess::get(ObjectKind::Rollout),
                "Get the current rollout, or the last one",
            )
            .query(&["index", "wait"]),
            rollouts::current,
        )
        .add::<RolloutOperation, Empty, _, _>(
            route(
                Post,
                paths::ROLLOUT_OPERATION,
                RequiredAccess::Right(Right::update(ObjectKind::Rollout).partial()),
                "Pause, resume, approve, abort, undo or retry a rollout",
            )
            .optional_body(),
            rollouts::act,
        )
}

/// Events, and why something waits.
pub(super) fn events(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Event>, _, _>(
            route(Get, paths::EVENTS, RequiredAccess::Token, "List events").list().query(&["wait"]),
            events::list,
        )
        .add::<Empty, Empty, _, _>(
            route(Get, paths::EVENTS_STREAM, RequiredAccess::Token, "Stream events")
                .query(&["after", "filter"])
                .media(&["text/event-stream"]),
            events::stream,
        )
        .add::<Empty, EventChain, _, _>(
            route(
                Get,
                paths::EVENT_CHAIN,
                RequiredAccess::Token,
                "Get an event with those that led to it and those that it led to",
            ),
            event_chain::get,
        )
        .add::<Empty, Why, _, _>(
            route(Get, paths::WHY, RequiredAccess::Token, "Explain what an object waits for"),
            why::get,
        )
}
