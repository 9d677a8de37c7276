//! What is offered to others: the catalogue, folded from what nodes offer and whether they are heard from.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::Kept;
use super::super::fleet::Fleet;
use crate::catalogue::instance::{Addresses, Instance, Level};
use crate::catalogue::log::{Change, Log};
use crate::records::node::Contact;
use crate::records::offers::{Offers, Serving};
use crate::words::counter::Revision;
use crate::words::name::{InstanceName, NodeName, ServiceName};

impl Fleet {
    /// What a node offers, or whether it is heard from, or whether it is a node at all, changed.
    pub(super) fn offers_changed(
        &mut self,
        name: &NodeName,
        before: Option<&Kept<Offers>>,
        revision: Revision,
    ) {
        if self.loading {
            return;
        }
        for change in self.differences(name, before.map(|kept| &*kept.value)) {
            self.catalogue.take(&change);
            self.catalogue_log.add(revision, change);
        }
        self.waits_changed(name);
    }

    /// A service's name became known.
    pub(super) fn service_heard(&mut self, name: &ServiceName, revision: Revision) {
        if self.loading || self.catalogue.service(name).is_some() {
            return;
        }
        let change = Change::Heard(name.clone());
        self.catalogue.take(&change);
        self.catalogue_log.add(revision, change);
    }

    /// Builds the catalogue, once all records are there.
    pub(super) fn build_catalogue(&mut self) {
        let heard: Vec<Change> = self.services.keys().cloned().map(Change::Heard).collect();
        for change in &heard {
            self.catalogue.take(change);
        }
        let nodes: Vec<NodeName> = self.offers.keys().cloned().collect();
        for name in &nodes {
            for change in self.differences(name, None) {
                self.catalogue.take(&change);
            }
        }
        // A record of these never goes without another one being written: their revisions tell of every change.
        let revisions = self.nodes.values().map(|kept| kept.revision);
        let revisions = revisions.chain(self.presences.values().map(|kept| kept.revision));
        let revisions = revisions.chain(self.offers.values().map(|kept| kept.revision));
        let revisions = revisions.chain(self.services.values().map(|kept| kept.revision));
        self.catalogue_log = Log::begin(revisions.max().unwrap_or_default());
    }

    /// What is to change in the catalogue about a node that offered `before`.
    fn differences(&self, name: &NodeName, before: Option<&Offers>) -> Vec<Change> {
        let offers = self.offers.get(name).map(|kept| &*kept.value);
        let offers = offers.filter(|_| self.active_node(name).is_some());
        let mut changes = Vec::new();
        let (is, shown) = (offers.map(|offers| &offers.addresses), self.catalogue.host(name));
        if is != shown {
            changes.push(Change::Host(name.clone(), is.cloned().map(Arc::new)));
        }
        let all = [before, self.offers.get(name).map(|kept| &*kept.value)].into_iter().flatten();
        let keys: BTreeSet<&(ServiceName, InstanceName)> =
            all.flat_map(|offers| offers.instances.keys()).collect();
        for key in keys {
            let shown = self.catalogue.service(&key.0).and_then(|service| service.instance(name, &key.1));
            match (self.instance(offers, key), shown) {
                (Some(is), Some(shown)) if **shown == is => {}
                (Some(is), _) => changes.push(Change::Put(key.0.clone(), Arc::new(is))),
                (None, Some(_)) => changes.push(Change::Gone(key.0.clone(), name.clone(), key.1.clone())),
                (None, None) => {}
            }
        }
        changes
    }

    fn instance(&self, offers: Option<&Offers>, key: &(ServiceName, InstanceName)) -> Option<Instance> {
        let offers = offers?;
        let offer = offers.instances.get(key)?;
        let presence = self.presences.get(&offers.node).map(|kept| &*kept.value);
        let silent = presence.filter(|presence| match presence.contact {
            Contact::Up | Contact::Suspect => false,
            Contact::Unreachable | Contact::Never => true,
        });
        let cordon = self.nodes.get(&offers.node).and_then(|kept| kept.value.cordon.as_ref());
        let drained = cordon.filter(|cordon| cordon.drained);
        let (level, since) = match (silent, drained) {
            (Some(presence), _) => (Level::Unreachable, presence.since.max(offer.since)),
            (None, Some(cordon)) => {
                (Level::Failing { reason: cordon.line().into() }, cordon.mark.at.max(offer.since))
            }
            (None, None) => (Level::from(&offer.serving), offer.since),
        };
        Some(Instance {
            name: key.1.clone(),
            node: offers.node.clone(),
            addresses: offer.addresses.clone().unwrap_or_else(|| Addresses::clone(&offers.addresses)),
            port: offer.port,
            tags: offer.tags.clone(),
            meta: offer.meta.clone(),
            level,
            since,
        })
    }
}

impl From<&Serving> for Level {
    fn from(from: &Serving) -> Self {
        match from {
            Serving::Passing => Self::Passing,
            Serving::Warning { reason } => Self::Warning { reason: reason.clone() },
            Serving::Failing { reason } => Self::Failing { reason: reason.clone() },
        }
    }
}
