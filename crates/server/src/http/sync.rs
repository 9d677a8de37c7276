//! The order poll of an agent: heartbeat, order and catalogue in one long poll. It keeps the node's session open.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::authorities::TrustBundle;
use bellwether_api::v1::node_params::{LiveParams, LiveParamsTag};
use bellwether_api::v1::order::OrderPoll;
use bellwether_core::words::counter::{Generation, LogPosition};
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::{World, live_params as world};
use bellwether_rt::fail::{self, FailPoint};

use super::access;
use super::input::{JsonAnswer, NamespacePath, Node, QueryParams};
use super::listen::Peer;
use super::problem::Failure;
use super::servers;
use super::services::{last, update};
use super::state::AppState;

/// What a poll may say: what the node has, and how long it waits.
pub(crate) const QUERY: [&str; 9] = [
    "generation",
    "catalogue",
    "servers",
    "params",
    "authorities",
    "reported",
    "registered",
    "ledger",
    "wait",
];

/// Longest wait of a poll, unless the agent requests another.
const WAIT: Duration = Duration::from_secs(55);

/// Longest wait of a poll for this server's membership, which is acquired within milliseconds of the start.
const PLACE_WITHIN: Duration = Duration::from_secs(5);

/// The error of a server without membership.
const NO_PLACE: &str =
    "this server has no membership, since the store does not answer in time; call another server";

/// Longest wait of a poll while the node has no report: it is asked for one soon, but not in a tight loop.
const UNREPORTED_WAIT: Duration = Duration::from_secs(1);

/// Returns an order newer than `generation`, what changed in the catalogue after `catalogue`, the live params if their tag is
/// not `params`, and what readers of logs wait for, as soon as there is any, or none after `wait`. Includes the live servers if their tag is not `servers`.
pub(crate) async fn sync(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    peer: Option<Extension<Peer>>,
    query: QueryParams,
) -> Result<JsonAnswer<OrderPoll>, Failure> {
    let (known, server_list, wait) = asked(&query)?;
    // Dropped, so that it does not occupy memory while the poll waits.
    drop(query);
    let issuer = issuer(peer.as_ref());
    access::note_shown(&app, (&namespace, &name), (peer.map(|peer| peer.0), known.authorities)).await;
    // Without its membership this server cannot record that the node is present; another server can.
    let mut place = app.cluster.membership.clone();
    let placed = tokio::time::timeout(PLACE_WITHIN, place.wait_for(Option::is_some)).await;
    if !placed.is_ok_and(|placed| placed.is_ok()) {
        return Err(Failure::new(Code::Store, NO_PLACE));
    }
    // Opened before the world is read, so that an order in between wakes this poll.
    let mut session = app.traffic.sessions.open(&namespace, &name);
    // As of now: it goes on reporting while the poll waits.
    let is_overwritten = is_overwritten(&app.world(), (&namespace, &name), &known);
    let is_overtaken = is_overwritten || is_overtaken(&app.world(), (&namespace, &name), known.reported);
    let is_wanted = is_overtaken || lacks_report(&app.world(), &namespace, &name);
    let wait = if is_wanted { wait.min(UNREPORTED_WAIT) } else { wait };
    let mut catalogue = app.traffic.sessions.catalogue(&namespace);
    let news = async {
        loop {
            // Not kept across the await: ten thousand polls would keep old worlds alive.
            let is_asked = app.traffic.log_requests.waits(&namespace, &name) || has_authorities(&app, &known);
            if is_asked || has_news(&app.world(), (&namespace, &name), &known) {
                return;
            }
            // Both arms only wait; polls without a catalogue are not woken for it.
            tokio::select! {
                () = session.woken() => {}
                woken = catalogue.changed(), if known.catalogue.is_some() => if woken.is_err() { return },
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
    let order = newer(&world, &namespace, &name, known.generation);
    if order.is_some() {
        fail::pass(FailPoint::OrderUnsent);
    }
    let catalogue = known.catalogue.and_then(|seen| update(&world, &namespace, seen));
    let params =
        known.params.as_ref().and_then(|tag| live_params(&world, (&namespace, &name), tag)).transpose()?;
    // Included in the next response, whatever its reason: polls are not woken because a server came or went.
    let (authorities, renew) = authorities(&app, &known, issuer.as_deref());
    let servers = server_list.and_then(|tag| servers::news(&world, app.clock.now(), &tag));
    Ok(JsonAnswer(OrderPoll {
        order,
        report_requested: is_overtaken || lacks_report(&world, &namespace, &name),
        overwritten: is_overwritten,
        catalogue,
        servers,
        params,
        renew,
        authorities,
        // Last: what is taken is in this response.
        log_requests: app.traffic.log_requests.take(&namespace, &name),
    }))
}

/// What a node has received already.
struct Known {
    generation: Generation,
    /// `None` if it keeps no copy of the catalogue.
    catalogue: Option<LogPosition>,
    /// `None` if it uses no live params.
    params: Option<LiveParamsTag>,
    /// Version of the authorities; `None` if it does not take in others.
    authorities: Option<u64>,
    /// Number of the last report that its agent sent; `None` before the first one.
    reported: Option<u64>,
    /// Revision at which its registrations were recorded last; `None` before, and while others are sent.
    registered: Option<u64>,
    /// Ledger of its reports; `None` before the first one has arrived.
    ledger: Option<String>,
}

/// What a node says that it has, the tag of its list of servers, and how long it waits.
fn asked(query: &QueryParams) -> Result<(Known, Option<String>, Duration), Failure> {
    query.only(&QUERY)?;
    let known = Known {
        generation: Generation::new(query.get("generation")?.unwrap_or_default()),
        catalogue: query.get("catalogue")?.map(LogPosition::new),
        params: query.get("params")?,
        authorities: query.get("authorities")?,
        reported: query.get("reported")?,
        registered: query.get("registered")?,
        ledger: query.get("ledger")?,
    };
    let wait = query.get::<String>("wait")?.map_or(Ok(WAIT), |_| query.wait())?;
    Ok((known, query.get("servers")?, wait))
}

/// The authority that issued the certificate that was shown.
fn issuer(peer: Option<&Extension<Peer>>) -> Option<Arc<str>> {
    peer?.bearer.as_ref()?.issuer.clone()
}

/// The authorities that a node does not have yet, and whether it is to renew the certificate that it has shown.
fn authorities(app: &AppState, known: &Known, issuer: Option<&str>) -> (Option<TrustBundle>, bool) {
    let Some(known) = known.authorities else { return (None, false) };
    let live = app.identity.pki.live();
    let bundle = || TrustBundle { version: live.version(), certificates: live.bundle().to_owned() };
    ((live.version() > known).then(bundle), issuer.is_some_and(|issuer| issuer != live.active()))
}

/// Whether this server has later authorities than a node.
fn has_authorities(app: &AppState, known: &Known) -> bool {
    known.authorities.is_some_and(|known| app.identity.pki.live().version() > known)
}

/// Whether there is an order, a catalogue update or a change of params for a node that has these.
fn has_news(world: &World, (namespace, name): (&Namespace, &NodeName), known: &Known) -> bool {
    // Its agent learns from the next poll that it was decommissioned.
    let is_gone = world.fleets.get(namespace).is_some_and(|fleet| fleet.active_node(name).is_none());
    is_gone
        || known.catalogue.is_some_and(|seen| world.position(last(world, namespace)) != seen)
        || newer(world, namespace, name, known.generation).is_some()
        || known.params.as_ref().is_some_and(|tag| changed_params(world, (namespace, name), tag).is_some())
}

/// The live params of a node and their digest, unless they are those that it has, or this server's world is older than what it
/// has.
fn changed_params<'a>(
    world: &'a World,
    (namespace, name): (&Namespace, &NodeName),
    known: &LiveParamsTag,
) -> Option<(world::LiveParams<'a>, u64)> {
    let live = world.fleets.get(namespace)?.live_params(name);
    let digest = live.digest();
    (digest != known.digest && world.position(world.revision) >= known.read_at).then_some((live, digest))
}

fn live_params(
    world: &World,
    node: (&Namespace, &NodeName),
    known: &LiveParamsTag,
) -> Option<Result<LiveParams, ShapeError>> {
    let (live, digest) = changed_params(world, node, known)?;
    Some(LiveParams::of(LiveParamsTag { read_at: world.position(world.revision), digest }, &live))
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

/// Whether a later report of a node is known than the last one that this agent of it has sent.
fn is_overtaken(world: &World, (namespace, name): (&Namespace, &NodeName), sent: Option<u64>) -> bool {
    let last = || Some(world.fleets.get(namespace)?.reports.get(name)?.value.sequence);
    sent.zip(last()).is_some_and(|(sent, last)| last > sent)
}

/// Whether somebody else has reported as this node, with a ledger of their own, or registered services as it, since its agent did.
fn is_overwritten(world: &World, (namespace, name): (&Namespace, &NodeName), known: &Known) -> bool {
    let Some(fleet) = world.fleets.get(namespace) else { return false };
    let registered = fleet.registrations.get(name).map(|kept| kept.revision.get());
    let ledger = fleet.reports.get(name).and_then(|kept| kept.value.ledger.as_ref());
    registered.zip(known.registered).is_some_and(|(now, then)| now > then)
        || ledger.zip(known.ledger.as_ref()).is_some_and(|(now, own)| now.to_string() != *own)
}

fn lacks_report(world: &World, namespace: &Namespace, name: &NodeName) -> bool {
    world.fleets.get(namespace).is_none_or(|fleet| !fleet.reports.contains_key(name))
}
