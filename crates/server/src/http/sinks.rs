//! Sinks of events over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::SINKS;
use bellwether_api::problem::Code;
use bellwether_api::v1::cloud_event::CloudEvent;
use bellwether_api::v1::event::Event;
use bellwether_api::v1::sink::state::{SinkState, SinkStatus};
use bellwether_api::v1::sink::{EnableSink, ReplayEvents, Sink, SinkSpec, SinkTest};
use bellwether_core::decide::sinks::waits_for;
use bellwether_core::records::sink as core;
use bellwether_core::records::sink_state as core_state;
use bellwether_core::words::name::{Namespace, SinkName};
use bellwether_core::world::World;
use tokio::time::Instant;

use super::auth::Authenticated;
use super::input::{AtRevision, JsonAnswer, JsonBody, NamedSink, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::event_log;
use crate::ops;
use crate::ops::sink::SinkScope;
use crate::sinks::receiver::{Receiver, SendingContext, is_for};

/// Most events that are counted as still to be sent.
pub(super) const MAX_COUNTED: usize = 1_000;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &SINKS, &[])?;
    let world = app.world();
    let mut sinks = Vec::new();
    let names = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.sinks.keys());
    let names: Vec<SinkName> = names.cloned().collect();
    for name in &names {
        sinks.extend(shown(&app, &world, (&namespace, name)).await);
    }
    list.answer_json((&SINKS, app.clock.now()), sinks.into_iter(), world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedSink(name)): (NamespacePath, NamedSink),
) -> Result<JsonAnswer<Sink>, Failure> {
    let shown = shown(&app, &app.world(), (&namespace, &name)).await;
    shown.map(JsonAnswer).ok_or_else(|| missing(&name))
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSink(name)): (NamespacePath, NamedSink),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<SinkSpec>,
) -> Result<SetResponse<Sink>, Failure> {
    ops::sink::exportable(caller.rights()?, &namespace)?;
    app.sinks.permit(name.as_str(), &spec.desired()?.target)?;
    let scope = SinkScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    let (sink, is_new) = ops::sink::set(&app.records.transactor, scope, &spec).await?;
    Ok(SetResponse { is_new, value: Sink::from(&sink) })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSink(name)): (NamespacePath, NamedSink),
    AtRevision(only_at): AtRevision,
) -> Result<JsonAnswer<Empty>, Failure> {
    let scope = SinkScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    ops::sink::delete(&app.records.transactor, scope).await?;
    Ok(JsonAnswer(Empty {}))
}

/// Enables a sink, or disables it.
pub(crate) async fn enable(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSink(name)): (NamespacePath, NamedSink),
    JsonBody(request): JsonBody<EnableSink>,
) -> Result<JsonAnswer<Sink>, Failure> {
    let actor = caller.actor();
    let scope = SinkScope::of(&namespace, &name, &actor);
    let sink = ops::sink::enable(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(Sink::from(&sink)))
}

/// Has a sink send events again.
pub(crate) async fn replay(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSink(name)): (NamespacePath, NamedSink),
    JsonBody(request): JsonBody<ReplayEvents>,
) -> Result<JsonAnswer<Sink>, Failure> {
    let actor = caller.actor();
    let scope = SinkScope::of(&namespace, &name, &actor);
    let sink = ops::sink::replay(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(Sink::from(&sink)))
}

/// Sends a test event to the receiver of a sink, from this server, whatever the sink waits for.
pub(crate) async fn test(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSink(name)): (NamespacePath, NamedSink),
) -> Result<JsonAnswer<SinkTest>, Failure> {
    let world = app.world();
    let kept = world.fleets.get(&namespace).and_then(|fleet| fleet.sinks.get(&name));
    let sink = kept.map(|kept| (*kept.value).clone()).ok_or_else(|| missing(&name))?;
    if let (core::SinkTarget::File(_), None) = (&sink.target, app.cluster.leadership.term()) {
        let leader = app.leader(&world).map(|leader| leader.value.server.clone());
        let url = leader.as_ref().and_then(|leader| Some(world.servers.get(leader)?.value.address.clone()));
        let leader = leader.map_or_else(String::new, |leader| format!(" {leader}"));
        let url = url.unwrap_or_else(|| "URL".to_owned());
        let reason = format!("cannot test sink {name}: its file is on the machine of the server that leads");
        return Err(Failure::new(Code::Refused, reason)
            .hint(format!("ask the leader{leader}: bellwether sink test {name} --server {url}")));
    }
    let now = app.clock.now();
    let event = Event {
        seq: 0,
        time_ms: now.as_millis(),
        actor: caller.actor().to_string(),
        kind: "sink.test".to_owned(),
        subject: format!("sink/{name}"),
        before: None,
        after: None,
        cause: "a test of the sink".to_owned(),
        caused_by: None,
    };
    let mut number = [0_u8; 8];
    getrandom::fill(&mut number)
        .map_err(|error| Failure::new(Code::Internal, format!("cannot name the test: {error}")))?;
    let id = format!("{namespace}-test-{:016x}", u64::from_be_bytes(number));
    let event = CloudEvent { id, ..CloudEvent::of(&app.identity.installation.id, namespace.as_str(), event) };
    let context = SendingContext {
        settings: &app.sinks,
        keyring: app.records.transactor.keyring(),
        providers: &app.providers,
        namespace: &namespace,
    };
    let began = Instant::now();
    let sent = Receiver::of(&sink, context).send(context, &world, (&sink, &event), now).await;
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (delivered, answer) = match sent {
        Ok(answer) => (true, answer),
        Err(failed) => (false, failed.reason),
    };
    Ok(JsonAnswer(SinkTest { delivered, answer, took_ms, id: event.id }))
}

/// A sink with how far it is; `None` if there is none of this name.
pub(super) async fn shown(
    app: &AppState,
    world: &World,
    (namespace, name): (&Namespace, &SinkName),
) -> Option<Sink> {
    let fleet = world.fleets.get(namespace)?;
    let sink = &*fleet.sinks.get(name)?.value;
    let state = &*fleet.sink_states.get(name)?.value;
    let status = status(app, world, (namespace, sink), state).await;
    Some(Sink { status: Some(status), ..Sink::from(sink) })
}

async fn status(
    app: &AppState,
    world: &World,
    (namespace, sink): (&Namespace, &core::Sink),
    state: &core_state::SinkState,
) -> SinkStatus {
    let now = app.clock.now();
    let read = event_log::read(world, &app.records.store, (namespace, state.cursor), MAX_COUNTED).await;
    // What cannot be read now is not counted; the state is known all the same.
    let events = read.unwrap_or_default();
    let left: Vec<&Event> = events.iter().filter(|event| is_for(sink, event, now)).collect();
    let nobody_leads = || {
        (app.leader(world).is_none() && !left.is_empty())
            .then(|| "no server leads, and the leader sends".to_owned())
    };
    SinkStatus {
        state: SinkState::from(state),
        undelivered: u64::try_from(left.len() + state.resend.len()).unwrap_or(u64::MAX),
        oldest_undelivered_ms: left.first().map(|event| event.time_ms),
        waits_for: waits_for(sink, state, now).or_else(nobody_leads),
    }
}

pub(super) fn missing(name: &SinkName) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find sink {name}")).hint("list them: bellwether sink list")
}
