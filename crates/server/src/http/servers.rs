//! The control plane itself, over HTTP.

use std::collections::BTreeMap;

use axum::extract::State;
use bellwether_api::v1::server::{
    ControlPlane, Leader, LiveServers, Server, ServerAddress, ServerTime, StoreCondition, StoreEngine,
    StoreStatus,
};
use bellwether_core::records::server as core;
use bellwether_core::words::digest::Digest;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_store::{Condition, Health};
use tokio::time::Instant;

use super::input::JsonAnswer;
use super::state::AppState;

/// This server's time, which starting servers adopt.
pub(crate) async fn time(State(app): State<AppState>) -> JsonAnswer<ServerTime> {
    JsonAnswer(ServerTime { now_ms: app.clock.now().as_millis() })
}

pub(crate) async fn list(State(app): State<AppState>) -> JsonAnswer<ControlPlane> {
    let world = app.world();
    JsonAnswer(ControlPlane {
        answered_by: app.identity.name.to_string(),
        servers: world.servers.values().map(|kept| Server::from(&*kept.value)).collect(),
        leader: world.leader.as_ref().map(|kept| Leader::from(&*kept.value)),
        term: world.leader.as_ref().map(|kept| app.identity.installation.term(kept.revision).get()),
        revision: world.revision.get(),
        store: store(&app.records.store.health().borrow()),
        sessions: sessions(&world),
    })
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
