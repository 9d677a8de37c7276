//! The control plane itself, over HTTP.

use std::collections::BTreeMap;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::shape::reason;
use bellwether_api::v1::node::Reason;
use bellwether_api::v1::server::{
    self as v1, ControlPlane, Leader, LiveServers, Server, ServerAddress, ServerTime, SteppedDown,
    StoreCondition, StoreEngine, StoreStatus,
};
use bellwether_core::records::server as core;
use bellwether_core::words::digest::Digest;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_store::{Condition, Health};
use tokio::time::Instant;

use super::auth::Authenticated;
use super::input::{JsonAnswer, OptionalBody};
use super::problem::Failure;
use super::state::AppState;
use crate::leadership::StepDownError;
use crate::ops;
use crate::timing::judge::Standing;
use crate::timing::keeper::{ClockTable, ServerClock};

/// This server's time, which starting servers adopt.
pub(crate) async fn time(State(app): State<AppState>) -> JsonAnswer<ServerTime> {
    JsonAnswer(ServerTime {
        now_ms: app.clock.now().as_millis(),
        wall_ms: Some(app.clock.wall().as_millis()),
        takes_part: app.cluster.clocks.borrow().standing == Standing::TakesPart,
    })
}

pub(crate) async fn list(State(app): State<AppState>) -> JsonAnswer<ControlPlane> {
    let world = app.world();
    let leader = app.leader(&world);
    let health = app.records.store.health().borrow().clone();
    JsonAnswer(ControlPlane {
        answered_by: app.identity.name.to_string(),
        servers: world.servers.values().map(|kept| Server::from(&*kept.value)).collect(),
        not_registered: app.cluster.known.not_registered(&world, &health).iter().map(Server::from).collect(),
        leader: leader.map(|kept| Leader::from(&*kept.value)),
        term: leader.map(|kept| app.identity.installation.term(kept.revision).get()),
        revision: world.revision.get(),
        store: store(&health),
        sessions: sessions(&world),
        clocks: clocks(&app.cluster.clocks.borrow()),
        clock_warnings: app.cluster.clocks.borrow().warnings(),
    })
}

pub(crate) async fn step_down(
    State(app): State<AppState>,
    caller: Authenticated,
    OptionalBody(because): OptionalBody<Reason>,
) -> Result<JsonAnswer<SteppedDown>, Failure> {
    let reason = reason(&because.reason)?;
    let (before, transactor) = (app.identity.name.clone(), &app.records.transactor);
    let leader = app.cluster.leadership.step_down(transactor.follow()).await?;
    if let Err(error) =
        ops::server::stepped_down(transactor, &caller.actor(), (&before, &leader), &reason).await
    {
        tracing::warn!(%error, %leader, "stepped down, and cannot record it");
    }
    Ok(JsonAnswer(SteppedDown { before: before.to_string(), leader: leader.to_string() }))
}

impl From<StepDownError> for Failure {
    fn from(error: StepDownError) -> Self {
        let detail = format!("cannot step down: {error}");
        match error {
            StepDownError::NotLeading { leader: Some((_, address)) } => {
                Self::new(Code::Refused, detail).hint(format!("ask the leader: {address}"))
            }
            StepDownError::NotLeading { leader: None } => {
                Self::new(Code::Refused, detail).hint("retry once a server leads: bellwether server list")
            }
            StepDownError::Alone => {
                Self::new(Code::Refused, detail).hint("start another server first: bellwether server list")
            }
            StepDownError::NobodyTookOver => Self::new(Code::Store, detail)
                .hint("the other servers may be cut off from the store; see their logs")
                .retry_after_ms(1_000),
        }
    }
}

/// The live servers, for a node whose list has another tag. None if there are none: this server itself is one.
pub(super) fn news(world: &World, now: Timestamp, tag: &str) -> Option<LiveServers> {
    let servers = || world.servers.values().map(|kept| &*kept.value);
    let mut digest = Digest::default();
    for server in servers() {
        digest.add(server.name.as_str().as_bytes());
        digest.add(server.address.as_bytes());
    }
    let fresh = format!("{:016x}", digest.finish());
    if fresh == tag || world.servers.is_empty() {
        return None;
    }
    let callable = |server: &core::Server| ServerAddress {
        name: server.name.to_string(),
        address: server.address.clone(),
        up_for_ms: now.since(server.since).as_millis(),
    };
    Some(LiveServers { tag: fresh, servers: servers().map(callable).collect() })
}

fn clocks(table: &ClockTable) -> BTreeMap<String, v1::ServerClock> {
    let shown = |clock: &ServerClock| {
        let ServerClock { skew_ms, ahead_ms, takes_part } = *clock;
        v1::ServerClock { skew_ms, ahead_ms, takes_part }
    };
    table.servers.iter().map(|(name, clock)| (name.to_string(), shown(clock))).collect()
}

/// Number of nodes with a session on each server, over all namespaces.
fn sessions(world: &World) -> BTreeMap<String, u64> {
    let mut sessions = BTreeMap::new();
    for (server, held) in world.fleets.values().flat_map(|fleet| fleet.held.iter()) {
        if let Some(server) = server {
            let count = u64::try_from(held.size()).unwrap_or(u64::MAX);
            *sessions.entry(server.to_string()).or_insert(0_u64) += count;
        }
    }
    sessions
}

/// The status of the store.
pub(super) fn store(health: &Health) -> StoreStatus {
    let (condition, trouble) = match &health.condition {
        Condition::Writable => (StoreCondition::Writable, None),
        Condition::ReadOnly { reason, since } => (StoreCondition::ReadOnly, Some((reason, since))),
        Condition::Unreachable { reason, since } => (StoreCondition::Unreachable, Some((reason, since))),
        Condition::Failed { reason, since } => (StoreCondition::Failed, Some((reason, since))),
    };
    let for_ms = |since: &Instant| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    StoreStatus {
        engine: match health.engine {
            "etcd" => StoreEngine::Etcd,
            "embedded" => StoreEngine::Embedded,
            _ => StoreEngine::Memory,
        },
        version: health.version.clone(),
        endpoints: health.endpoints.clone(),
        condition,
        reason: trouble.map(|(reason, _)| reason.clone()),
        degraded_for_ms: trouble.map(|(_, since)| for_ms(since)),
        size_bytes: health.size_bytes,
        quota_bytes: health.quota_bytes,
        alarms: health.alarms.clone(),
        warnings: health.warnings(),
    }
}
