//! DNS on this node: answers from its copy of the catalogue, also while no server can be reached.

use std::sync::Arc;

use bellwether_core::dns::zone::Zone;
use bellwether_dns::settings::DnsConfig;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::catalogue::CatalogueSnapshot;
use crate::link::contact::ServerContact;

/// Serves until the agent stops. A port that is not available does not keep the agent from its other work.
pub(crate) async fn serve(
    names: DnsConfig,
    mut snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    mut contact: watch::Receiver<ServerContact>,
    tasks: Tasks,
) {
    let token = tasks.token();
    let zone = watch::Sender::new(Arc::new(zone(&names, &mut snapshot, &mut contact)));
    match bellwether_dns::serve::serve(names.config.clone(), zone.subscribe(), &tasks).await {
        Ok(serving) => tracing::info!(addresses = ?serving.addresses(), "serving DNS"),
        Err(error) => return tracing::error!("cannot {error}"),
    }
    loop {
        // All arms only wait; the values are read below.
        let open = tokio::select! {
            () = token.cancelled() => return,
            changed = snapshot.changed() => changed.is_ok(),
            changed = contact.changed() => changed.is_ok(),
        };
        if !open {
            return;
        }
        zone.send_replace(Arc::new(self::zone(&names, &mut snapshot, &mut contact)));
    }
}

fn zone(
    names: &DnsConfig,
    snapshot: &mut watch::Receiver<Arc<CatalogueSnapshot>>,
    contact: &mut watch::Receiver<ServerContact>,
) -> Zone {
    let (snapshot, contact) = (snapshot.borrow_and_update().clone(), contact.borrow_and_update().clone());
    Zone {
        origin: names.origin.clone(),
        catalogue: snapshot.catalogue.clone(),
        // A serial number wraps by design.
        serial: u32::try_from(snapshot.index & u64::from(u32::MAX)).unwrap_or_default(),
        stale_since: match contact.connected_since {
            Some(_) => None,
            None => contact.last_contact.or(snapshot.stored_at),
        },
    }
}
