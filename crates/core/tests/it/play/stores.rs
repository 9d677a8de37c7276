//! The data stores of clusters in a play: `cluster db has db-1 primary, db-2 replica down, db-3 learner, db-4 replica unknown, db-5 replica
//! away, db-6 primary foreign`, `cluster db fell apart and has …`. A cluster of which it is said again is replaced.

use std::sync::Arc;

use bellwether_core::records::probes::StoreState;
use bellwether_core::rollout::stores::{StoreEnvironment, StoreRole, StoreStanding};
use bellwether_core::words::name::ClusterName;

use super::Step;
use crate::world::World;

/// Says what is known of the data stores of a cluster.
pub(super) fn set(world: &mut World, (cluster, is_split): (&str, bool), members: &str) -> Step {
    let cluster: ClusterName = cluster.parse().map_err(|error| format!("{error}"))?;
    let mut stores = world.environment.stores.as_deref().cloned().unwrap_or_default();
    stores = StoreEnvironment { probe: "db".parse().ok(), ..stores };
    stores.clusters.retain(|_, of| *of != cluster);
    stores.split.remove(&cluster);
    if is_split {
        stores.split.insert(cluster.clone());
    }
    let mut standings = std::collections::BTreeMap::new();
    for text in members.split(", ") {
        let (name, standing) = member(text)?;
        stores.clusters.insert(name.parse().map_err(|error| format!("{error}"))?, cluster.clone());
        standings.insert(name.parse().map_err(|error| format!("{error}"))?, standing);
    }
    stores.members.insert(cluster, standings);
    world.environment.stores = Some(Arc::new(stores));
    Ok(())
}

fn member(text: &str) -> Result<(&str, StoreStanding), String> {
    let words: Vec<&str> = text.split(' ').collect();
    let [name, role, ref state @ ..] = words[..] else { return Err("NAME ROLE [STATE]".into()) };
    let role = match role {
        "primary" => StoreRole::Primary,
        "replica" => StoreRole::Replica,
        "learner" => StoreRole::Learner,
        _ => return Err(format!("no role {role}")),
    };
    let is_foreign = state == ["foreign"];
    let (state, is_counted) = match state {
        [] => (StoreState::Up, true),
        ["foreign"] => (StoreState::Up, false),
        ["down"] => (StoreState::Down, false),
        ["unknown"] => (StoreState::Unknown, false),
        // Its agent is out of contact.
        ["away"] => (StoreState::Up, false),
        _ => return Err(format!("no state {state:?}")),
    };
    Ok((name, StoreStanding { state, role, is_counted, is_foreign }))
}
