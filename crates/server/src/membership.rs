//! The membership of a server: a lease-bound key with its name and address, by which other servers and agents find it.
//!
//! Requests in flight and sessions need it: a server without its membership answers no order poll.

use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::records::server::Server;
use bellwether_core::words::counter::Revision;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use tokio::sync::watch;

use crate::config::Config;
use crate::lease_key::{Abstention, LeaseKey};
use crate::records::key_text;
use crate::secrets::keyring::Keyring;

/// The record of this server, which listens there, as of now.
#[must_use]
pub fn record((config, keyring): (&Config, &Keyring), listens: SocketAddr, clock: &Clock) -> Server {
    let address = config.advertised(listens).unwrap_or_else(|| {
        if config.etcd.is_some() {
            tracing::warn!(
                "agents do not learn the address of this server, which listens on all: set `address` in its configuration"
            );
        }
        format!("https://{listens}")
    });
    Server {
        name: config.name.clone(),
        address,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        secret_keys: keyring.ids(),
        since: clock.now(),
    }
}

/// Starts to hold the membership of this server. The receiver has the revision at which it was acquired, while it is held.
#[must_use]
pub fn start(
    config: &Config,
    server: Server,
    store: &Store,
    clock: &Clock,
    tasks: &Tasks,
) -> watch::Receiver<Option<Revision>> {
    let clock = clock.clone();
    let key = LeaseKey {
        store: store.clone(),
        key: key_text::server(&server.name),
        purpose: "membership",
        has_own_store: config.etcd.is_none(),
        record: Arc::new(move || GlobalRecord::Server(Server { since: clock.now(), ..server.clone() })),
        // Only the store says that a membership is over.
        given_up: watch::channel(None).1,
        abstains: watch::channel(Abstention::default()).1,
        confirms_key: config.rules.confirms_keys,
    };
    let (holding, membership) = watch::channel(None);
    tasks.spawn("membership", key.run(holding, tasks.token()));
    membership
}
