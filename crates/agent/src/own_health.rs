//! The catalogue as this node answers from it: an instance of its own that fails here is failing at once, whether or not a
//! server can be told.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::catalogue::instance::{Instance, InstanceState};
use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::words::name::NodeName;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::catalogue::CatalogueSnapshot;
use crate::service::{InstanceKey, PublishedInstance};

/// The instances of this node, by service and instance name.
pub(crate) type OwnInstances = BTreeMap<InstanceKey, PublishedInstance>;

/// Keeps the catalogue to answer from up to date until the agent stops.
pub(crate) fn follow(
    node: NodeName,
    mut snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    mut own: watch::Receiver<OwnInstances>,
    tasks: &Tasks,
) -> watch::Receiver<Arc<CatalogueSnapshot>> {
    let first = merged(&node, &snapshot.borrow_and_update(), &own.borrow_and_update());
    let (sender, answered) = watch::channel(first);
    let token = tasks.token();
    tasks.spawn("own health", async move {
        loop {
            // All arms only wait; the values are read below.
            let is_open = tokio::select! {
                () = token.cancelled() => return,
                changed = snapshot.changed() => changed.is_ok(),
                changed = own.changed() => changed.is_ok(),
            };
            if !is_open {
                return;
            }
            let next = merged(&node, &snapshot.borrow_and_update(), &own.borrow_and_update());
            sender.send_if_modified(|now| {
                let is_new = !Arc::ptr_eq(now, &next) && !is_same(now, &next);
                *now = next;
                is_new
            });
        }
    });
    answered
}

fn is_same(one: &CatalogueSnapshot, other: &CatalogueSnapshot) -> bool {
    one.index == other.index && one.stored_at == other.stored_at && one.catalogue == other.catalogue
}

/// The catalogue with the failures of this node's own instances. A check that passes here changes nothing: the servers know
/// other reasons to fail an instance, such as a drain.
fn merged(node: &NodeName, snapshot: &Arc<CatalogueSnapshot>, own: &OwnInstances) -> Arc<CatalogueSnapshot> {
    let failing = own.iter().filter_map(|((service, name), shown)| {
        let CheckStatus::Failing { reason } = &shown.serving else { return None };
        let known = snapshot.catalogue.service(service)?.instance(node, name)?;
        (shown.has_results && known.level.serves()).then(|| {
            let level = InstanceState::Failing { reason: reason.clone() };
            (service, Instance { level, ..Instance::clone(known) })
        })
    });
    let failing: Vec<_> = failing.collect();
    if failing.is_empty() {
        return snapshot.clone();
    }
    let mut merged = CatalogueSnapshot::clone(snapshot);
    for (service, instance) in failing {
        merged.catalogue.put(service, instance);
    }
    Arc::new(merged)
}
