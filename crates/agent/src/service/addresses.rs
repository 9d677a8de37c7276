//! Where this machine is reached: the addresses of its interfaces, looked at now and then, or what the configuration says.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use bellwether_core::records::registrations::MAX_ADDRESSES;
use bellwether_core::words::name::InterfaceName;
use bellwether_rt::tasks::Tasks;
use sysinfo::Networks;
use tokio::sync::watch;

/// How often the interfaces are looked at: reading them costs microseconds, and a machine rarely moves.
const LOOK: Duration = Duration::from_secs(15);

/// Where this machine is reached, kept up to date.
#[derive(Debug, Clone)]
pub(crate) struct LocalAddresses(watch::Receiver<bellwether_core::words::addresses::Addresses>);

impl LocalAddresses {
    /// What the configuration says, for ever; otherwise what the interfaces have, for as long as the level runs.
    pub(crate) fn watch(said: Option<bellwether_core::words::addresses::Addresses>, level: &Tasks) -> Self {
        if let Some(said) = said {
            return Self(watch::Sender::new(said).subscribe());
        }
        let sender = watch::Sender::new(look());
        let addresses = Self(sender.subscribe());
        level.spawn("addresses", follow(sender, level.clone()));
        addresses
    }

    pub(crate) fn now(&mut self) -> bellwether_core::words::addresses::Addresses {
        self.0.borrow_and_update().clone()
    }

    /// Waits until they change; for ever when they never will. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn follow(sender: watch::Sender<bellwether_core::words::addresses::Addresses>, level: Tasks) {
    let token = level.token();
    loop {
        // Both arms only wait.
        tokio::select! {
            () = token.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        let found = look();
        sender.send_if_modified(|known| {
            let moved = *known != found;
            *known = found;
            moved
        });
    }
}

/// The addresses that others can reach: none of loopback, none that holds on one link alone.
fn look() -> bellwether_core::words::addresses::Addresses {
    let networks = match Networks::new_with_refreshed_list() {
        Ok(networks) => networks,
        Err(error) => {
            tracing::warn!(%error, "could not read this machine's addresses; name them in agent.addresses");
            return bellwether_core::words::addresses::Addresses::default();
        }
    };
    let mut all: BTreeMap<InterfaceName, Vec<IpAddr>> = BTreeMap::new();
    for (interface, network) in &networks {
        let name = interface.to_str().and_then(|name| InterfaceName::parse(name).ok());
        let Some(name) = name else { continue };
        let mut found: Vec<IpAddr> = network.ip_networks().iter().map(|network| network.addr).collect();
        found.retain(reachable);
        found.sort();
        found.dedup();
        if !found.is_empty() {
            all.insert(name, found);
        }
    }
    let mut room = MAX_ADDRESSES;
    for list in all.values_mut() {
        list.truncate(room);
        room -= list.len();
    }
    bellwether_core::words::addresses::Addresses(all)
}

fn reachable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local() && !v4.is_unspecified(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local() && !v6.is_unspecified(),
    }
}
