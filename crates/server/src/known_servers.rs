//! The servers that were live and are not registered now. Owns what one server remembers of them, in memory.
//!
//! A registration needs a lease, and a store that takes no changes grants none: servers that lost theirs are away from the world
//! until it does, though they run and answer. They are remembered so that a person sees them meanwhile. While the store takes
//! changes, a server without a registration does not run, or is cut off, and is forgotten.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::records::server::Server;
use bellwether_core::words::name::ServerName;
use bellwether_core::world::World;
use bellwether_store::{Condition, Health};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// For how long a server is remembered while the store seems to take changes: whether it does is noticed some seconds late.
const NOTICED_WITHIN: Duration = Duration::from_secs(15);

/// What this server remembers of the others, and its own record. Cheap to clone.
#[derive(Debug, Clone)]
pub struct KnownServers {
    own: Arc<Server>,
    // A std mutex: held to read or change a small map, never across an await.
    gone: Arc<Mutex<BTreeMap<ServerName, (Server, Instant)>>>,
}

impl KnownServers {
    /// Nothing but this server itself.
    #[must_use]
    pub fn new(own: Server) -> Self {
        Self { own: Arc::new(own), gone: Arc::default() }
    }

    /// The servers that run, as far as this one knows, and are not registered, ordered by name: none while the store takes
    /// changes.
    #[must_use]
    pub fn not_registered(&self, world: &World, health: &Health) -> Vec<Server> {
        if matches!(health.condition, Condition::Writable) {
            return Vec::new();
        }
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let mut servers: BTreeMap<&ServerName, &Server> =
            gone.iter().map(|(name, (server, _))| (name, server)).collect();
        servers.insert(&self.own.name, &self.own);
        servers.retain(|name, _| !world.servers.contains_key(*name));
        servers.into_values().cloned().collect()
    }

    /// Remembers those that lose their registration, until `stop`.
    pub(crate) async fn follow(
        self,
        mut worlds: watch::Receiver<Arc<World>>,
        health: watch::Receiver<Health>,
        stop: CancellationToken,
    ) {
        let mut before = worlds.borrow_and_update().clone();
        loop {
            // All arms only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(NOTICED_WITHIN) => {}
            }
            let world = worlds.borrow_and_update().clone();
            let is_writable = matches!(health.borrow().condition, Condition::Writable);
            self.compare(&before, &world, is_writable);
            before = world;
        }
    }

    fn compare(&self, before: &World, now: &World, is_writable: bool) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, kept) in &before.servers {
            if !now.servers.contains_key(name) {
                gone.insert(name.clone(), ((*kept.value).clone(), Instant::now()));
            }
        }
        gone.retain(|name, (_, since)| {
            !(now.servers.contains_key(name) || is_writable && since.elapsed() >= NOTICED_WITHIN)
        });
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::key::global::GlobalRecord;
    use bellwether_core::words::counter::Revision;
    use bellwether_core::words::time::Timestamp;
    use tokio::time::advance;

    use super::*;

    fn server(name: &str) -> Server {
        Server {
            name: ServerName::parse(name).unwrap(),
            address: format!("https://{name}:7420"),
            version: "1.0.0".to_owned(),
            secret_keys: Vec::new(),
            since: Timestamp::from_millis(1),
        }
    }

    fn world(names: &[&str]) -> World {
        let mut world = World::default();
        for (revision, name) in (1..).zip(names) {
            world.put_global(GlobalRecord::Server(server(name)), Revision::new(revision));
        }
        world
    }

    fn health(is_writable: bool) -> Health {
        let since = Instant::now();
        let reason = "it is full".to_owned();
        let condition = if is_writable { Condition::Writable } else { Condition::ReadOnly { reason, since } };
        Health {
            engine: "etcd",
            version: None,
            endpoints: Vec::new(),
            size_bytes: None,
            quota_bytes: None,
            alarms: Vec::new(),
            condition,
            cut: None,
        }
    }

    fn names(known: &KnownServers, world: &World, is_writable: bool) -> Vec<String> {
        let servers = known.not_registered(world, &health(is_writable));
        servers.iter().map(|server| server.name.to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn servers_that_lost_their_registration_are_known_while_the_store_takes_no_changes() {
        let known = KnownServers::new(server("b"));
        let (all, none) = (world(&["a", "b", "c"]), world(&[]));
        known.compare(&all, &none, false);
        assert_eq!(names(&known, &none, false), ["a", "b", "c"]);
        assert_eq!(names(&known, &none, true), Vec::<String>::new(), "they would have registered");
        assert_eq!(names(&known, &world(&["c"]), false), ["a", "b"]);
        advance(NOTICED_WITHIN * 10).await;
        known.compare(&none, &none, false);
        assert_eq!(names(&known, &none, false), ["a", "b", "c"]);
        // One that is back is forgotten, and so are those that are not though they could.
        known.compare(&none, &world(&["a"]), true);
        assert_eq!(names(&known, &none, false), ["b"]);
    }
}
