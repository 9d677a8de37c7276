//! The hanging request of an agent: heartbeat, order and catalogue in one. It holds the node's session open.

use std::time::Duration;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::order::OrderPoll;
use bellwether_core::words::counter::{Generation, Revision};
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_rt::fail::{self, FailPoint};

use super::AppState;
use super::input::{JsonAnswer, NamespacePath, Node, QueryParams};
use super::problem::Failure;
use super::servers;
use super::services::{last, update};

/// How long a sync hangs when the agent does not say.
const WAIT: Duration = Duration::from_secs(55);

/// How long a sync waits for this server to take its place; it takes it within milliseconds of its start.
const PLACE_WITHIN: Duration = Duration::from_secs(5);

/// Why another server is to be called.
const NO_PLACE: &str =
    "keep its place among the servers, as the store does not answer in time; call another server";

/// How long it hangs at most while no report of the node is known: it is asked for one soon, but never in a tight loop.
const UNREPORTED_WAIT: Duration = Duration::from_secs(1);

/// Answers an order newer than `generation`, and what changed in the catalogue past `catalogue`, at once or as soon as there
/// is something, or nothing after `wait`; with it the servers in place, if their tag is not `servers`.
pub(crate) async fn sync(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    query: QueryParams,
) -> Result<JsonAnswer<OrderPoll>, Failure> {
    query.only(&["generation", "catalogue", "servers", "wait"])?;
    let known = Generation::new(query.get("generation")?.unwrap_or_default());
    let seen = query.get("catalogue")?.map(Revision::new);
    let told: Option<String> = query.get("servers")?;
    let wait = query.get::<String>("wait")?.map_or(Ok(WAIT), |_| query.wait())?;
    // Not kept while it hangs.
    drop(query);
    // Without its place this server cannot tell anybody that the node is there: another one can.
    let mut place = app.seats.place.clone();
    let placed = tokio::time::timeout(PLACE_WITHIN, place.wait_for(Option::is_some)).await;
    if !placed.is_ok_and(|placed| placed.is_ok()) {
        return Err(Failure::new(Code::Store, NO_PLACE));
    }
    // Opened before the world is looked at: an order that comes in between rings the bell.
    let mut session = app.sessions.open(&namespace, &name);
    let wait = if lacks_report(&app.world(), &namespace, &name) { wait.min(UNREPORTED_WAIT) } else { wait };
    let mut catalogue = app.sessions.catalogue(&namespace);
    let news = async {
        loop {
            // Not kept while it hangs: a fleet of old worlds is a lot to remember.
            if has_news(&app.world(), (&namespace, &name), (known, seen)) {
                return;
            }
            // Both arms only wait; whoever does not want the catalogue is not woken for it.
            tokio::select! {
                () = session.rung() => {}
                rung = catalogue.changed(), if seen.is_some() => if rung.is_err() { return },
            }
        }
    };
    // All arms only wait; the world is looked at again below.
    tokio::select! {
        () = news => {}
        () = tokio::time::sleep(wait) => {}
        () = app.stop.cancelled() => {}
        _ = place.wait_for(Option::is_none) => return Err(Failure::new(Code::Store, NO_PLACE)),
    }
    let world = app.world();
    let order = newer(&world, &namespace, &name, known);
    if order.is_some() {
        fail::pass(FailPoint::OrderUntold);
    }
    let catalogue = seen.and_then(|seen| update(&world, &namespace, seen));
    // Told with the next answer, whatever that is for: nobody is woken because a server came or went.
    let servers = told.and_then(|tag| servers::news(&world, app.clock.now(), &tag));
    Ok(JsonAnswer(OrderPoll {
        order,
        report_requested: lacks_report(&world, &namespace, &name),
        catalogue,
        servers,
    }))
}

/// Whether there is something to tell a node that knows this much.
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
