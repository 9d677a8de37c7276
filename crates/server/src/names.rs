//! DNS on this server, for the services of one namespace.

use std::sync::Arc;

use bellwether_core::dns::zone::Zone;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_dns::serve::{ServeError, serve};
use bellwether_dns::settings::{DnsSettings, SettingError};
use bellwether_rt::tasks::Tasks;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::sessions::Sessions;

/// Host name of the server in its own zone.
const NAME_SERVER: &str = "server";

/// The table `[dns]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DnsTable {
    listen: Option<Vec<String>>,
    namespace: Option<String>,
    domain: Option<String>,
    datacentre: Option<String>,
    ttl: Option<String>,
    negative_ttl: Option<String>,
    #[serde(default)]
    forward: Vec<String>,
    allow: Option<Vec<String>>,
    answers_per_second: Option<u32>,
}

/// Configuration of DNS on this server.
#[derive(Debug, Clone)]
pub struct ServerDns {
    /// The namespace whose services are answered.
    namespace: Namespace,
    inner: bellwether_dns::settings::DnsConfig,
}

impl DnsTable {
    /// Validates every value.
    pub(crate) fn check(self) -> Result<ServerDns, SettingError> {
        let namespace = self.namespace.as_deref().unwrap_or("default");
        let namespace = Namespace::parse(namespace)
            .map_err(|error| SettingError { key: "namespace", reason: error.to_string() })?;
        let node = NodeName::parse(NAME_SERVER)
            .map_err(|error| SettingError { key: "domain", reason: error.to_string() })?;
        let Self {
            listen, domain, datacentre, ttl, negative_ttl, forward, allow, answers_per_second, ..
        } = self;
        let setting =
            DnsSettings { listen, domain, datacentre, ttl, negative_ttl, forward, allow, answers_per_second };
        Ok(ServerDns { inner: setting.check(namespace.as_str(), node)?, namespace })
    }
}

/// Starts to answer from the newest world, until `tasks` stops.
pub(crate) async fn start(
    names: ServerDns,
    worlds: watch::Receiver<Arc<World>>,
    sessions: &Sessions,
    tasks: &Tasks,
) -> Result<(), ServeError> {
    let notify = sessions.catalogue(&names.namespace);
    let sender = watch::Sender::new(Arc::new(zone(&names, &worlds.borrow())));
    let serving = serve(names.inner.config.clone(), sender.subscribe(), tasks).await?;
    tracing::info!(addresses = ?serving.addresses(), namespace = %names.namespace, "answering DNS");
    tasks.spawn("names", follow(names, worlds, notify, sender, tasks.token()));
    Ok(())
}

async fn follow(
    names: ServerDns,
    worlds: watch::Receiver<Arc<World>>,
    mut notify: watch::Receiver<u64>,
    sender: watch::Sender<Arc<Zone>>,
    stop: CancellationToken,
) {
    loop {
        // Both arms only wait; the world is read below.
        tokio::select! {
            () = stop.cancelled() => return,
            woken = notify.changed() => if woken.is_err() { return },
        }
        let zone = zone(&names, &worlds.borrow());
        sender.send_replace(Arc::new(zone));
    }
}

fn zone(names: &ServerDns, world: &World) -> Zone {
    let fleet = world.fleets.get(&names.namespace);
    let index = fleet.map_or(0, |fleet| fleet.catalogue_log.last().get());
    Zone {
        origin: names.inner.origin.clone(),
        catalogue: fleet.map(|fleet| fleet.catalogue.clone()).unwrap_or_default(),
        // A serial number wraps by design.
        serial: u32::try_from(index & u64::from(u32::MAX)).unwrap_or_default(),
        stale_since: None,
    }
}
