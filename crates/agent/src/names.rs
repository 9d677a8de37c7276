//! DNS on this machine: answered from its copy of the catalogue, also while no server can be reached.

use std::sync::Arc;

use bellwether_core::answer::zone::Zone;
use bellwether_dns::setting::Names;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::catalogue::Picture;
use crate::link::contact::Contact;

/// Answers until the level stops. A port that cannot be had is no reason not to run what is to run here.
pub(crate) async fn serve(
    names: Names,
    mut picture: watch::Receiver<Arc<Picture>>,
    mut contact: watch::Receiver<Contact>,
    level: Tasks,
) {
    let token = level.token();
    let zone = watch::Sender::new(Arc::new(zone(&names, &mut picture, &mut contact)));
    match bellwether_dns::serve::serve(names.config.clone(), zone.subscribe(), &level).await {
        Ok(serving) => tracing::info!(addresses = ?serving.addresses(), "answering DNS"),
        Err(error) => return tracing::error!("could not {error}"),
    }
    loop {
        // All only wait; the values are looked at below.
        let open = tokio::select! {
            () = token.cancelled() => return,
            changed = picture.changed() => changed.is_ok(),
            changed = contact.changed() => changed.is_ok(),
        };
        if !open {
            return;
        }
        zone.send_replace(Arc::new(self::zone(&names, &mut picture, &mut contact)));
    }
}

fn zone(
    names: &Names,
    picture: &mut watch::Receiver<Arc<Picture>>,
    contact: &mut watch::Receiver<Contact>,
) -> Zone {
    let (picture, contact) = (picture.borrow_and_update().clone(), contact.borrow_and_update().clone());
    Zone {
        origin: names.origin.clone(),
        catalogue: picture.catalogue.clone(),
        // A serial number wraps by design.
        serial: u32::try_from(picture.index & u64::from(u32::MAX)).unwrap_or_default(),
        stale_since: match contact.connected_since {
            Some(_) => None,
            None => contact.last_contact,
        },
    }
}
