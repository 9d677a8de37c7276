//! What a server holds while it does: its place among the servers, and the leadership. Starts to try for both, and hands the
//! leadership over before the server stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::server::Server;
use bellwether_core::words::counter::{Revision, Term};
use bellwether_core::words::name::ServerName;
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::installation::Installation;
use crate::membership::LeaseKey;

/// How long a server that stops waits at most until another one leads: that one has only to write that it does.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(1);

/// Both seats of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Memberships {
    /// Its place among the servers, while it has one.
    pub place: watch::Receiver<Option<Revision>>,
    /// The leadership, while this server has it.
    pub term: watch::Receiver<Option<Term>>,
    me: ServerName,
    /// Cancelled when the leadership is not to be had any more.
    leads: CancellationToken,
}

impl Memberships {
    /// Starts to try for both. The leadership is on `tasks`, the place on `inner`, as requests in flight still need it then.
    #[must_use]
    pub fn take(
        config: &Config,
        (store, listens): (&Store, SocketAddr),
        (tasks, inner): (&Tasks, &Tasks),
        (clock, installation): (&Clock, Installation),
    ) -> Self {
        let sole = config.etcd.is_none();
        let server = Server {
            name: config.name.clone(),
            address: config.address.clone().unwrap_or_else(|| format!("https://{listens}")),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since: clock.now(),
        };
        let (places, place) = watch::channel(None);
        let seat = LeaseKey::of_server(store.clone(), server, clock.clone(), sole);
        inner.spawn("place", seat.run(places, inner.token()));
        let leads = tasks.child().token();
        let (taken, led) = watch::channel(None);
        let seat = LeaseKey::of_leader(store.clone(), config.name.clone(), clock.clone(), sole);
        tasks.spawn("leader", seat.run(taken, leads.clone()));
        let (terms, term) = watch::channel(None);
        tasks.spawn("term", tell_terms(led, terms, installation));
        Self { place, term, me: config.name.clone(), leads }
    }

    /// Gives the leadership back, if this server has it, and waits for a moment until another server has it: it then decides
    /// before the agents of this one come to it, not after.
    pub async fn hand_over(&self, mut worlds: watch::Receiver<Arc<World>>) {
        let led = self.term.borrow().is_some();
        self.leads.cancel();
        let has_others = worlds.borrow().servers.keys().any(|server| *server != self.me);
        if !led || !has_others {
            return;
        }
        let leads =
            |world: &Arc<World>| world.leader.as_ref().is_some_and(|leader| leader.value.server != self.me);
        match tokio::time::timeout(HAND_OVER_WITHIN, worlds.wait_for(leads)).await {
            Ok(Ok(_)) => tracing::info!("another server leads"),
            Ok(Err(_)) | Err(_) => tracing::info!("stopping before another server leads"),
        }
    }
}

/// Turns revisions at which the leadership was taken into terms, until its seat is no longer tried for.
async fn tell_terms(
    mut led: watch::Receiver<Option<Revision>>,
    terms: watch::Sender<Option<Term>>,
    installation: Installation,
) {
    while led.changed().await.is_ok() {
        let taken = *led.borrow_and_update();
        terms.send_replace(taken.map(|at| installation.term(at)));
    }
}
