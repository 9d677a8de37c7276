//! The control plane itself, over HTTP.

use std::collections::BTreeMap;

use axum::extract::State;
use bellwether_api::v1::server::{ControlPlane, Leader, Server};
use bellwether_core::world::World;

use super::App;
use super::input::Answer;

pub(crate) async fn list(State(app): State<App>) -> Answer<ControlPlane> {
    let world = app.world();
    Answer(ControlPlane {
        answered_by: app.me.to_string(),
        servers: world.servers.values().map(|kept| Server::from(&*kept.value)).collect(),
        leader: world.leader.as_ref().map(|kept| Leader::from(&*kept.value)),
        term: world.leader.as_ref().map(|kept| app.installation.term(kept.revision).get()),
        revision: world.revision.get(),
        sessions: sessions(&world),
    })
}

/// How many nodes each server holds, over all namespaces.
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
