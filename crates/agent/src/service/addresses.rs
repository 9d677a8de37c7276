//! The addresses of this node: read from its interfaces from time to time, or given in the configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use bellwether_core::records::registrations::MAX_ADDRESSES;
use bellwether_core::words::name::InterfaceName;
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::changed_or_never;
use sysinfo::Networks;
use tokio::sync::watch;

/// Interval between two readings of the interfaces: it costs microseconds, and addresses rarely change.
const LOOK: Duration = Duration::from_secs(15);

/// The addresses of this node, kept up to date.
#[derive(Debug, Clone)]
pub(crate) struct LocalAddresses(watch::Receiver<bellwether_core::words::addresses::Addresses>);

impl LocalAddresses {
    /// The configured addresses; without any, those of the interfaces, for as long as the agent runs.
    pub(crate) fn watch(
        configured: Option<bellwether_core::words::addresses::Addresses>,
        tasks: &Tasks,
    ) -> Self {
        if let Some(configured) = configured {
            return Self(watch::Sender::new(configured).subscribe());
        }
        let sender = watch::Sender::new(look());
        let addresses = Self(sender.subscribe());
        tasks.spawn("addresses", follow(sender, tasks.clone()));
        addresses
    }

    pub(crate) fn now(&mut self) -> bellwether_core::words::addresses::Addresses {
        self.0.borrow_and_update().clone()
    }

    /// Waits until they change; for ever if they never will. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        changed_or_never(&mut self.0).await;
    }
}

async fn follow(sender: watch::Sender<bellwether_core::words::addresses::Addresses>, tasks: Tasks) {
    let token = tasks.token();
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

/// The addresses that other nodes can reach: neither loopback nor link-local ones.
fn look() -> bellwether_core::words::addresses::Addresses {
    let networks = match Networks::new_with_refreshed_list() {
        Ok(networks) => networks,
        Err(error) => {
            tracing::warn!(%error, "cannot read the addresses of this node; set agent.addresses");
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
