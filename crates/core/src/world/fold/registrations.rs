//! The catalogue, folded from service registrations and the presence of their nodes.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::fleet::Fleet;
use crate::catalogue::instance::{Instance, InstanceState};
use crate::catalogue::log::{CatalogueChange, CatalogueLog};
use crate::records::node::{Drain, PresenceState};
use crate::records::registrations::{CheckStatus, ServiceRegistrations};
use crate::records::versioned::Versioned;
use crate::words::addresses::Addresses;
use crate::words::counter::{MemberNumber, Revision};
use crate::words::name::{EnsembleName, InstanceName, NodeName, ServiceName, Tag};

/// The tag of the member that takes writes.
const PRIMARY: &str = "primary";

impl Fleet {
    /// The registrations or presence of a node changed, or it was added or removed.
    pub(super) fn offers_changed(
        &mut self,
        name: &NodeName,
        before: Option<&Versioned<ServiceRegistrations>>,
        revision: Revision,
    ) {
        if self.loading {
            return;
        }
        for change in self.differences(name, before.map(|kept| &*kept.value)) {
            self.catalogue_changed(change, revision);
        }
        self.waits_changed(name);
    }

    /// A service became known by name.
    pub(super) fn service_heard(&mut self, name: &ServiceName, revision: Revision) {
        if self.loading || self.catalogue.service(name).is_some() {
            return;
        }
        self.catalogue_changed(CatalogueChange::ServiceKnown(name.clone()), revision);
    }

    fn catalogue_changed(&mut self, change: CatalogueChange, revision: Revision) {
        self.catalogue.take(&change);
        if let Some(service) = change.service() {
            self.service_changed(service, revision);
        }
        self.catalogue_log.add(revision, change);
    }

    /// A service is not known by name any more, unless it has instances.
    pub(super) fn service_forgotten(&mut self, name: &ServiceName, revision: Revision) {
        if self.loading {
            return;
        }
        self.catalogue_changed(CatalogueChange::ServiceForgotten(name.clone()), revision);
    }

    /// Builds the catalogue, once all records are present.
    pub(super) fn build_catalogue(&mut self) {
        let heard: Vec<CatalogueChange> =
            self.services.keys().cloned().map(CatalogueChange::ServiceKnown).collect();
        for change in &heard {
            self.catalogue.take(change);
        }
        let nodes: Vec<NodeName> = self.registrations.keys().cloned().collect();
        for name in &nodes {
            for change in self.differences(name, None) {
                self.catalogue.take(&change);
            }
        }
        // None of these records is deleted without another one being written, if only the event of a forgotten
        // service: their revisions reflect every change.
        let revisions = self.nodes.values().map(|kept| kept.revision);
        let revisions = revisions.chain(self.presences.values().map(|kept| kept.revision));
        let revisions = revisions.chain(self.registrations.values().map(|kept| kept.revision));
        let revisions = revisions.chain(self.services.values().map(|kept| kept.revision));
        let revisions = revisions.chain(self.ensemble_members.values().map(|kept| kept.revision));
        let revisions = revisions.chain([self.service_forgotten_at]);
        self.catalogue_log = CatalogueLog::begin(revisions.max().unwrap_or_default());
    }

    /// The changes of the catalogue for a node whose registrations were `before`.
    fn differences(&self, name: &NodeName, before: Option<&ServiceRegistrations>) -> Vec<CatalogueChange> {
        let registrations = self.registrations.get(name).map(|kept| &*kept.value);
        let registrations = registrations.filter(|_| self.active_node(name).is_some());
        let mut changes = Vec::new();
        let (is, shown) =
            (registrations.map(|registrations| &registrations.addresses), self.catalogue.host(name));
        if is != shown {
            changes.push(CatalogueChange::Host(name.clone(), is.cloned().map(Arc::new)));
        }
        let all = [before, self.registrations.get(name).map(|kept| &*kept.value)].into_iter().flatten();
        let keys: BTreeSet<&(ServiceName, InstanceName)> =
            all.flat_map(|registrations| registrations.instances.keys()).collect();
        for key in keys {
            let shown = self.catalogue.service(&key.0).and_then(|service| service.instance(name, &key.1));
            match (self.instance(registrations, key), shown) {
                (Some(is), Some(shown)) if **shown == is => {}
                (Some(is), _) => changes.push(CatalogueChange::Put(key.0.clone(), Arc::new(is))),
                (None, Some(_)) => {
                    changes.push(CatalogueChange::Removed(key.0.clone(), name.clone(), key.1.clone()))
                }
                (None, None) => {}
            }
        }
        changes
    }

    fn instance(
        &self,
        registrations: Option<&ServiceRegistrations>,
        key: &(ServiceName, InstanceName),
    ) -> Option<Instance> {
        let registrations = registrations?;
        let registration = registrations.instances.get(key)?;
        let node = self.nodes.get(&registrations.node).filter(|kept| kept.value.may_register(&key.0))?;
        let presence = self.presences.get(&registrations.node).map(|kept| &*kept.value);
        let silent = presence.filter(|presence| match presence.contact {
            PresenceState::Up | PresenceState::Suspect => false,
            PresenceState::Unreachable | PresenceState::Never => true,
        });
        let cordon = node.value.cordon.as_ref();
        let drained = cordon.and_then(|cordon| match cordon.drain {
            Some(Drain::Drained(at)) => Some((cordon, at)),
            Some(Drain::Waiting(_)) | None => None,
        });
        let (level, since) = match (silent, drained) {
            (Some(presence), _) => (InstanceState::Unreachable, presence.since.max(registration.since)),
            (None, Some((cordon, at))) => {
                (InstanceState::Failing { reason: cordon.line().into() }, at.max(registration.since))
            }
            (None, None) => (InstanceState::from(&registration.serving), registration.since),
        };
        Some(Instance {
            name: key.1.clone(),
            node: registrations.node.clone(),
            addresses: registration
                .addresses
                .clone()
                .unwrap_or_else(|| Addresses::clone(&registrations.addresses)),
            port: registration.port,
            tags: self.tags(&registrations.node, key, &registration.tags),
            meta: registration.meta.clone(),
            level,
            since,
        })
    }
}

impl Fleet {
    /// What clients select an instance by. Of the members of an ensemble with a primary only the one that is recorded as it is found as it: an
    /// agent that accepts no orders goes on saying that its own is. After a restore they know better.
    fn tags(
        &self,
        node: &NodeName,
        (service, instance): &(ServiceName, InstanceName),
        said: &BTreeSet<Tag>,
    ) -> BTreeSet<Tag> {
        let mut tags = said.clone();
        if !tags.iter().any(|tag| tag.as_str() == PRIMARY) {
            return tags;
        }
        let members =
            service.as_str().parse().ok().and_then(|name| self.ensemble_members.get::<EnsembleName>(&name));
        let members = members.map(|kept| &*kept.value).filter(|members| !members.is_held(self.epoch));
        let Some((members, primary)) = members.and_then(|members| Some((members, members.lead.primary?)))
        else {
            return tags;
        };
        let number =
            instance.as_str().strip_prefix(&format!("{service}-")).and_then(|rest| rest.parse().ok());
        let Some(number) = number.map(MemberNumber::new) else { return tags };
        let is_recorded = members.members.get(&primary).is_some_and(|member| member.node == *node);
        if number != primary || !is_recorded {
            tags.retain(|tag| tag.as_str() != PRIMARY);
        }
        tags
    }
}

impl From<&CheckStatus> for InstanceState {
    fn from(from: &CheckStatus) -> Self {
        match from {
            CheckStatus::Passing => Self::Passing,
            CheckStatus::Warning { reason } => Self::Warning { reason: reason.clone() },
            CheckStatus::Failing { reason } => Self::Failing { reason: reason.clone() },
        }
    }
}
