//! The order poll of an agent: heartbeat, order and catalogue in one long poll. It keeps the node's session open.

use std::time::Duration;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::order::OrderPoll;
use bellwether_core::words::counter::{Generation, Revision};
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_rt::fail::{self, FailPoint};

use super::input::{JsonAnswer, NamespacePath, Node, QueryParams};
use super::problem::Failure;
use super::servers;
use super::services::{last, update};
use super::state::AppState;

/// Longest wait of a poll, unless the agent requests another.
const WAIT: Duration = Duration::from_secs(55);

/// Longest wait of a poll for this server's membership, which is acquired within milliseconds of the start.
const PLACE_WITHIN: Duration = Duration::from_secs(5);

/// The error of a server without membership.
const NO_PLACE: &str =
    "this server has no membership, since the store does not answer in time; call another server";

/// Longest wait of a poll while the node has no report: it is asked for one soon, but not in a tight loop.
const UNREPORTED_WAIT: Duration = Duration::from_secs(1);

/// Returns an order newer than `generation`, and what changed in the catalogue after `catalogue`, as soon as there is either,
/// or neither after `wait`. Includes the live servers if their tag is not `servers`.
pub(crate) async fn sync(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    query: QueryParams,
) -> Result<JsonAnswer<OrderPoll>, Failure> {
    query.only(&["generation", "catalogue", "servers", "wait"])?;
    let known = Generation::new(query.get("generation")?.unwrap_or_default());
    let seen = query.get("catalogue")?.map(Revision::new);
    let server_list: Option<String> = query.get("servers")?;
    let wait = query.get::<String>("wait")?.map_or(Ok(WAIT), |_| query.wait())?;
    // Dropped, so that it does not occupy memory while the poll waits.
    drop(query);
    // Without its membership this server cannot record that the node is present; another server can.
    let mut place = app.cluster.membership.clone();
    let placed = tokio::time::timeout(PLACE_WITHIN, place.wait_for(Option::is_some)).await;
    if !placed.is_ok_and(|placed| placed.is_ok()) {
        return Err(Failure::new(Code::Store, NO_PLACE));
    }
    // Opened before the world is read, so that an order in between wakes this poll.
    let mut session = app.traffic.sessions.open(&namespace, &name);
    let wait = if lacks_report(&app.world(), &namespace, &name) { wait.min(UNREPORTED_WAIT) } else { wait };
    let mut catalogue = app.traffic.sessions.catalogue(&namespace);
    let news = async {
        loop {
            // Not kept across the await: ten thousand polls would keep old worlds alive.
            if has_news(&app.world(), (&namespace, &name), (known, seen)) {
                return;
            }
            // Both arms only wait; polls without a catalogue are not woken for it.
            tokio::select! {
                () = session.woken() => {}
                woken = catalogue.changed(), if seen.is_some() => if woken.is_err() { return },
            }
        }
    };
    // All arms only wait; the world is read below.
    tokio::select! {
        () = news => {}
        () = tokio::time::sleep(wait) => {}
        () = app.stop.cancelled() => {}
        _ = place.wait_for(Option::is_none) => return Err(Failure::new(Code::Store, NO_PLACE)),
    }
    let world = app.world();
    let order = newer(&world, &namespace, &name, known);
    if order.is_some() {
        fail::pass(FailPoint::OrderUnsent);
    }
    let catalogue = seen.and_then(|seen| update(&world, &namespace, seen));
    // Included in the next response, whatever its reason: polls are not woken because a server came or went.
    let servers = server_list.and_then(|tag| servers::news(&world, app.clock.now(), &tag));
    Ok(JsonAnswer(OrderPoll {
        order,
        report_requested: lacks_report(&world, &namespace, &name),
        catalogue,
        servers,
    }))
}

/// Whether there is an order or a catalogue update for a node that has these.
fn has_news(
    world: &World,
    (namespace, name): (&Namespace, &NodeName),
    (known, seen): (Generation, Option<Revision>),
) -> bool {
    seen.is_some_and(|seen| last(world, namespace) != seen) || newer(world, namespace, name, known).is_some()
}

fn newer(
    world: &World,
    namespace: &Namespace,
    name: &NodeName,
    known: Generation,
) -> Option<bellwether_api::v1::order::Order> {
    let order = &world.fleets.get(namespace)?.orders.get(name)?.value;
    (order.generation > known).then(|| (&**order).into())
}

fn lacks_report(world: &World, namespace: &Namespace, name: &NodeName) -> bool {
    world.fleets.get(namespace).is_none_or(|fleet| !fleet.reports.contains_key(name))
}
