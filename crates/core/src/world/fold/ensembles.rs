//! Folds ensembles and their members: what their nodes are to do for them, and when each is to be decided on.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::kept;
use crate::records::ensemble::{Ensemble, EnsembleService};
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::member::{MemberOrder, NodeMembers};
use crate::records::osd::OsdsOrder;
use crate::records::secret::Secret;
use crate::words::counter::Revision;
use crate::words::name::{DeviceSerial, EnsembleName, NodeName, SecretName, ServiceName};
use crate::world::fleet::Fleet;

impl Fleet {
    pub(super) fn put_ensemble(&mut self, ensemble: Ensemble, revision: Revision) {
        self.touched_ensembles.touch(&ensemble.name, revision);
        self.ensembles.insert_mut(ensemble.name.clone(), kept(ensemble, revision));
    }

    pub(super) fn put_secret(&mut self, secret: Secret, revision: Revision) {
        self.touch_secret(&secret.name, revision);
        self.secrets.insert_mut(secret.name.clone(), kept(secret, revision));
    }

    pub(super) fn delete_secret(&mut self, name: &SecretName, revision: Revision) {
        self.touch_secret(name, revision);
        self.secrets.remove_mut(name);
    }

    /// A secret changed: the ensembles that name it are decided on.
    fn touch_secret(&mut self, secret: &SecretName, revision: Revision) {
        let names = |of: &Ensemble| of.service.password_secrets().contains(secret);
        let ensembles = self.ensembles.values().filter(|kept| names(&kept.value));
        for name in ensembles.map(|kept| kept.value.name.clone()).collect::<Vec<_>>() {
            self.touched_ensembles.touch(&name, revision);
        }
    }

    pub(super) fn delete_ensemble(&mut self, name: &EnsembleName, revision: Revision) {
        self.ensembles.remove_mut(name);
        self.settle_ensemble(name, revision);
    }

    pub(super) fn put_ensemble_members(&mut self, members: EnsembleMembers, revision: Revision) {
        let name = members.ensemble.clone();
        let before = self.ensemble_members.get(&name).map(|kept| kept.value.clone());
        let owned = |(node, order): (&NodeName, MemberOrder)| (node.clone(), order);
        let (wanted, osds): (Vec<_>, _) = match members.is_held(self.epoch) {
            true => (members.held_orders().map(owned).collect(), members.held_osd_orders()),
            false => (members.orders().map(owned).collect(), members.osd_orders()),
        };
        if before.as_deref().map(Occupied::of) != Some(Occupied::of(&members)) {
            self.candidates_changed = self.candidates_changed.max(revision);
        }
        self.ensemble_members.insert_mut(name.clone(), kept(members, revision));
        let has = |node: &NodeName| wanted.iter().any(|(of, _)| of == node);
        let gone = before.iter().flat_map(|before| before.members.values()).map(|member| &member.node);
        let gone: Vec<NodeName> = gone.filter(|node| !has(node)).cloned().collect();
        for node in gone {
            self.order_member(&node, &name, None);
        }
        for (node, order) in wanted {
            self.order_member(&node, &name, Some(order));
        }
        self.order_osds(&name, before.as_deref(), &osds);
        self.primary_changed(&name, before.as_deref(), revision);
        self.settle_ensemble(&name, revision);
    }

    /// Another member may be the primary: which one clients find as it is in the catalogue.
    fn primary_changed(&mut self, name: &EnsembleName, before: Option<&EnsembleMembers>, revision: Revision) {
        let of = |members: &EnsembleMembers| (members.lead.primary, members.is_held(self.epoch));
        let after = self.ensemble_members.get(name).map(|kept| kept.value.clone());
        if before.map(of) == after.as_deref().map(of) {
            return;
        }
        // Also those whose members are not recorded, and that say that they have one.
        let service = name.as_str().parse::<ServiceName>().ok();
        let service = service.and_then(|service| self.catalogue.service(&service));
        let instances = service.into_iter().flat_map(|service| service.instances());
        let nodes: BTreeSet<NodeName> = instances.map(|instance| instance.node.clone()).collect();
        for node in nodes {
            self.offers_changed(&node, None, revision);
        }
    }

    pub(super) fn delete_ensemble_members(&mut self, name: &EnsembleName, revision: Revision) {
        let before = self.ensemble_members.get(name).map(|kept| kept.value.clone());
        self.ensemble_members.remove_mut(name);
        if before.is_some() {
            self.candidates_changed = self.candidates_changed.max(revision);
        }
        for member in before.iter().flat_map(|before| before.members.values()) {
            self.order_member(&member.node, name, None);
        }
        self.order_osds(name, before.as_deref(), &BTreeMap::new());
        self.primary_changed(name, before.as_deref(), revision);
        self.settle_ensemble(name, revision);
    }

    pub(super) fn put_node_members(&mut self, members: NodeMembers, revision: Revision) {
        let name = members.node.clone();
        let offered = self.node_members.get(&name).map(|kept| &kept.value.devices);
        let offers_others = offered.map_or_else(|| !members.devices.is_empty(), |of| *of != members.devices);
        let has_others = self.index_unrecorded(&name, Some(&members));
        self.node_members.insert_mut(name.clone(), kept(members, revision));
        if offers_others || has_others {
            self.candidates_changed = self.candidates_changed.max(revision);
        }
        self.touch_members_of(&name, revision);
    }

    pub(super) fn delete_node_members(&mut self, name: &NodeName, revision: Revision) {
        self.touch_members_of(name, revision);
        if self.index_unrecorded(name, None) {
            self.candidates_changed = self.candidates_changed.max(revision);
        }
        self.node_members.remove_mut(name);
    }

    /// Something changed that says whether a node may have members, and what is heard of those that it has.
    pub(super) fn candidate_changed(&mut self, node: &NodeName, revision: Revision) {
        self.candidates_changed = self.candidates_changed.max(revision);
        self.touch_members_of(node, revision);
    }

    /// The ensembles that have a member on a node, or of which it reports one, are to be decided on.
    fn touch_members_of(&mut self, node: &NodeName, revision: Revision) {
        let ordered = self
            .contents
            .get(node)
            .into_iter()
            .flat_map(|content| content.members.keys().chain(content.osds.keys()));
        let reported = self
            .node_members
            .get(node)
            .map(|kept| &kept.value)
            .into_iter()
            .flat_map(|told| told.members.keys().chain(told.osds.keys()).chain(told.unrecorded.keys()));
        let ensembles: BTreeSet<EnsembleName> = ordered.chain(reported).cloned().collect();
        for ensemble in ensembles {
            self.settle_ensemble(&ensemble, revision);
        }
    }

    /// An ensemble is to be decided on, unless nothing is left of it.
    fn settle_ensemble(&mut self, name: &EnsembleName, revision: Revision) {
        if self.ensembles.contains_key(name) || self.ensemble_members.contains_key(name) {
            self.touched_ensembles.touch(name, revision);
        } else {
            self.touched_ensembles.forget(name);
        }
    }

    /// Puts what nodes are to do for their OSDs of an ensemble into their orders, and removes it where there are none any more.
    fn order_osds(
        &mut self,
        ensemble: &EnsembleName,
        before: Option<&EnsembleMembers>,
        wanted: &BTreeMap<NodeName, OsdsOrder>,
    ) {
        let former = before.into_iter().flat_map(|before| before.osds.osds.values()).map(|osd| &osd.node);
        let nodes: BTreeSet<NodeName> = former.chain(wanted.keys()).cloned().collect();
        for node in nodes {
            let mut content = self.contents.get(&node).cloned().unwrap_or_default();
            match wanted.get(&node) {
                Some(order) => content.osds.insert(ensemble.clone(), order.clone()),
                None => content.osds.remove(ensemble),
            };
            self.set_content(&node, content);
        }
    }

    /// Puts what a node is to do for its member of an ensemble into its order, or removes it.
    fn order_member(&mut self, node: &NodeName, ensemble: &EnsembleName, order: Option<MemberOrder>) {
        let mut content = self.contents.get(node).cloned().unwrap_or_default();
        match order {
            Some(order) => content.members.insert(ensemble.clone(), order),
            None => content.members.remove(ensemble),
        };
        self.set_content(node, content);
    }
}

/// What an ensemble has that others cannot have.
#[derive(PartialEq, Eq)]
struct Occupied<'a> {
    /// On each of its nodes, its ports and units.
    service: &'a EnsembleService,
    nodes: BTreeSet<&'a NodeName>,
    devices: BTreeSet<(&'a NodeName, &'a DeviceSerial)>,
}

impl<'a> Occupied<'a> {
    fn of(members: &'a EnsembleMembers) -> Self {
        let devices = members.osds.present().map(|(_, osd)| (&osd.node, &osd.serial));
        Self {
            service: &members.service,
            nodes: members.members.values().map(|member| &member.node).collect(),
            devices: devices.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::annotation::Annotation;
    use crate::records::ensemble::{
        ETCD_CLIENT_PORT, ETCD_PEER_PORT, EnsembleMode, EnsembleSize, EtcdSettings, FAILOVER_AFTER,
        JOIN_WITHIN,
    };
    use crate::records::ensemble_members::{Member, MemberPhase};
    use crate::records::key::{AnyKey, Key, Record};
    use crate::records::report::Report;
    use crate::records::status::{ORDERS, Status, StatusState};
    use crate::words::counter::{EnsembleRevision, Epoch, Generation, MemberNumber};
    use crate::words::feature::Features;
    use crate::words::label::Labels;
    use crate::words::name::Namespace;
    use crate::words::selector::Selector;
    use crate::words::time::Timestamp;
    use crate::world::World;

    fn store(name: EnsembleName) -> Ensemble {
        Ensemble {
            name,
            revision: EnsembleRevision::new(1),
            service: EnsembleService::Etcd(EtcdSettings {
                client_port: ETCD_CLIENT_PORT,
                peer_port: ETCD_PEER_PORT,
                tls: true,
            }),
            size: EnsembleSize::Quorum,
            filter: Selector::all(),
            spread: None,
            failover_after: FAILOVER_AFTER,
            join_within: JOIN_WITHIN,
            mode: EnsembleMode::Managed,
            snapshots: crate::records::ensemble_snapshots::SnapshotPolicy::default(),
            restore: None,
            adopt: None,
            labels: Labels::default(),
            annotation: Annotation::of("ann".parse().unwrap(), Timestamp::EPOCH),
        }
    }

    #[test]
    fn an_ensemble_and_its_members_are_in_the_world_until_they_are_deleted() {
        let (mut world, namespace) = (World::default(), Namespace::parse("shop").unwrap());
        let name = EnsembleName::parse("store").unwrap();
        let members = EnsembleMembers::none(name.clone(), store(name.clone()).service, Timestamp::EPOCH);
        let keys = [Key::Ensemble(name.clone()), Key::EnsembleMembers(name.clone())].map(AnyKey::from);
        world.put(&namespace, Record::Ensemble(store(name)), Revision::new(3));
        world.put(&namespace, Record::EnsembleMembers(members), Revision::new(4));
        assert_eq!(keys.clone().map(|key| world.revision(&namespace, &key).get()), [3, 4]);
        let fleet = world.fleets.get(&namespace).unwrap();
        assert_eq!((fleet.records(), fleet.contents_left().ensembles), (2, 1));
        assert_eq!(fleet.remains(9).len(), 1, "the ensemble keeps the namespace, its members do not");
        for key in &keys {
            let AnyKey::Namespaced(key) = key else { panic!("it is of the namespace") };
            world.delete(&namespace, key, Revision::new(5));
        }
        assert!(!world.has_namespace(&namespace));
    }

    /// Another ensemble may wait for the node, for its port there.
    #[test]
    fn a_member_that_comes_to_a_node_or_leaves_it_is_news_for_other_ensembles() {
        let mut fleet = Fleet::default();
        let name = EnsembleName::parse("store").unwrap();
        let mut members = EnsembleMembers::none(name.clone(), store(name.clone()).service, Timestamp::EPOCH);
        let mut news = |members: &EnsembleMembers, revision| {
            fleet.put_ensemble_members(members.clone(), Revision::new(revision));
            fleet.candidates_changed == Revision::new(revision)
        };
        assert!(news(&members, 1));
        let member = |phase| Member {
            node: "n-1".parse().unwrap(),
            phase,
            since: Timestamp::EPOCH,
            store_id: None,
            peer_url: alloc::string::String::new(),
        };
        let number = MemberNumber::new(1);
        members.members.insert(number, member(MemberPhase::Preparing));
        assert!(news(&members, 2), "it comes");
        members.members.insert(number, member(MemberPhase::Serving));
        assert!(!news(&members, 3), "others cannot have the node before or after");
        members.members.remove(&number);
        assert!(news(&members, 4), "it left");
        fleet.delete_ensemble_members(&name, Revision::new(5));
        assert_eq!(fleet.candidates_changed, Revision::new(5));
    }

    /// A primary whose node accepts none may be left by its replicas, and no other member is added there.
    #[test]
    fn that_a_node_does_not_accept_its_orders_is_news_for_the_ensembles_that_it_has() {
        let mut fleet = Fleet::default();
        let (name, node) = (EnsembleName::parse("store").unwrap(), "n-1".parse::<NodeName>().unwrap());
        let mut members = EnsembleMembers::none(name.clone(), store(name.clone()).service, Timestamp::EPOCH);
        let member = Member {
            node: node.clone(),
            phase: MemberPhase::Serving,
            since: Timestamp::EPOCH,
            store_id: None,
            peer_url: alloc::string::String::new(),
        };
        members.members.insert(MemberNumber::new(1), member);
        fleet.put_ensemble_members(members, Revision::new(1));
        let mut news = |refusal: Option<&str>, revision| {
            let status = |reason: &str| Status::new(StatusState::Failed, Timestamp::EPOCH, reason.into());
            let statuses =
                refusal.map(|reason| (ORDERS.parse().unwrap(), status(reason))).into_iter().collect();
            let report = Report {
                node: node.clone(),
                received_at: Timestamp::EPOCH,
                agent_version: "1".into(),
                generation: Generation::ZERO,
                features: Features::default(),
                ledger: None,
                ledger_since: Epoch::ZERO,
                sequence: 0,
                entities: BTreeMap::new(),
                statuses,
                deleted: BTreeMap::new(),
            };
            fleet.put_report(report, Revision::new(revision));
            let [touched, candidates] =
                [fleet.touched_ensembles.get(&name).unwrap(), fleet.candidates_changed];
            [touched, candidates].map(|changed| changed == Revision::new(revision))
        };
        assert_eq!(news(None, 2), [false, false]);
        assert_eq!(news(Some("cannot write: No space left on device"), 3), [true, true]);
        assert_eq!(news(Some("cannot write: No space left on device"), 4), [false, false]);
        assert_eq!(news(Some("cannot accept an order of term 3"), 5), [true, true], "it is of later records");
        assert_eq!(news(None, 6), [true, true]);
    }
}
