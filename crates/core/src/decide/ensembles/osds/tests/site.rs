//! A Ceph of one monitor with its nodes, as the control plane sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::decide::ensembles::verdict;
use crate::records::annotation::Annotation;
use crate::records::ensemble::{
    CephSettings, Ensemble, EnsembleMode, EnsembleService, EnsembleSize, FAILOVER_AFTER, JOIN_WITHIN,
};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase};
use crate::records::ensemble_requests::RollingRequest;
use crate::records::key::Record;
use crate::records::member::{KnownMember, MemberReport, MemberState, Membership, NodeMembers};
use crate::records::node::{Cordon, Drain, Node, Presence, PresenceState};
use crate::records::osd::{
    DeviceReport, OsdAction, OsdOrder, OsdPhase, OsdReport, OsdTask, StoreAnswer, StoreOsd,
};
use crate::records::probes::StoreMember;
use crate::records::report::Report;
use crate::rollout::environment::Watch;
use crate::words::counter::{EnsembleRevision, Epoch, Generation, MemberNumber, RescanNumber, Revision};
use crate::words::feature::Feature;
use crate::words::label::Labels;
use crate::words::name::{DeviceSerial, EnsembleName, Namespace, NodeName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::world::World;
use crate::world::fleet::Fleet;

pub(super) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Nodes, of which the first has the monitor, each with a device.
pub(super) const NODES: u64 = 4;

pub(super) fn name() -> EnsembleName {
    "disks".parse().unwrap()
}

pub(super) fn node(number: u64) -> NodeName {
    format!("n-{number}").parse().unwrap()
}

pub(super) fn disk(number: u64) -> DeviceSerial {
    format!("disk-{number}").parse().unwrap()
}

/// A store with its nodes, as the control plane sees them.
pub(super) struct Site {
    pub(super) world: World,
    pub(super) namespace: Namespace,
    pub(super) ensemble: Ensemble,
    /// The OSDs that the store has, by their ids.
    pub(super) store: BTreeMap<String, StoreOsd>,
    /// What is on devices that nobody took.
    pub(super) used: BTreeSet<u64>,
    /// Nodes whose agents say nothing new.
    pub(super) silent: BTreeSet<u64>,
    /// Whether the store says that an OSD may go.
    pub(super) safe: StoreAnswer,
    pub(super) drained: BTreeSet<u64>,
    /// Nodes that cannot make an OSD.
    pub(super) broken: BTreeSet<u64>,
    /// The ids of all that were ever made.
    pub(super) made: BTreeSet<String>,
    /// What the store says of one that is to be stopped.
    pub(super) ok_to_stop: StoreAnswer,
    /// The restarts that OSDs made, each with the number of the OSD.
    pub(super) restarts: Vec<(u64, Timestamp)>,
    /// Nodes that have another device.
    pub(super) spares: BTreeSet<u64>,
    /// Numbers that the store keeps for other OSDs.
    pub(super) destroyed: BTreeSet<u32>,
}

impl Site {
    pub(super) fn new() -> Self {
        let service = EnsembleService::Ceph(CephSettings {
            port: 3300,
            replicas: 2,
            devices: (1..=NODES).map(disk).collect(),
        });
        let ensemble = Ensemble {
            name: name(),
            revision: EnsembleRevision::new(1),
            service: service.clone(),
            size: EnsembleSize::Number(1),
            filter: Selector::all(),
            spread: None,
            failover_after: FAILOVER_AFTER,
            join_within: JOIN_WITHIN,
            mode: EnsembleMode::Managed,
            snapshots: crate::records::ensemble_snapshots::SnapshotPolicy::default(),
            restore: None,
            adopt: None,
            labels: Labels::default(),
            annotation: Annotation::of("ann".parse().unwrap(), NOW),
        };
        let mut members = EnsembleMembers::none(name(), service, NOW);
        members.last = MemberNumber::new(1);
        members.is_bootstrapped = true;
        let member = Member {
            node: node(1),
            phase: MemberPhase::Voting,
            since: NOW,
            store_id: Some("disks-1".to_string()),
            peer_url: "v2:10.0.0.1:3300".to_string(),
        };
        members.members.insert(members.last, member);
        let mut site = Self {
            world: World::default(),
            namespace: Namespace::parse("default").unwrap(),
            ensemble: ensemble.clone(),
            store: BTreeMap::new(),
            used: BTreeSet::new(),
            silent: BTreeSet::new(),
            safe: StoreAnswer::Unknown,
            drained: BTreeSet::new(),
            broken: BTreeSet::new(),
            made: BTreeSet::new(),
            ok_to_stop: StoreAnswer::Unknown,
            restarts: Vec::new(),
            spares: BTreeSet::new(),
            destroyed: BTreeSet::new(),
        };
        for number in 1..=NODES {
            site.start(number);
        }
        site.put(Record::Ensemble(ensemble));
        site.put(Record::EnsembleMembers(members));
        site
    }

    /// A node that is up, and whose agent runs members.
    pub(super) fn start(&mut self, number: u64) {
        self.put_node(number);
        self.hear(number, PresenceState::Up);
        self.put(Record::Report(Report {
            node: node(number),
            received_at: NOW,
            agent_version: "0.1.0".to_string(),
            generation: Generation::ZERO,
            features: [Feature::Ensembles].into_iter().collect(),
            ledger: None,
            ledger_since: Epoch::ZERO,
            sequence: 0,
            entities: BTreeMap::new(),
            statuses: BTreeMap::new(),
            deleted: BTreeMap::new(),
        }));
    }

    /// Whether a node is heard of.
    pub(super) fn hear(&mut self, number: u64, contact: PresenceState) {
        self.put(Record::Presence(node(number), Presence { contact, since: NOW, server: None }));
    }

    pub(super) fn put(&mut self, record: Record) {
        self.world.put(&self.namespace, record, Revision::new(1));
    }

    pub(super) fn put_node(&mut self, number: u64) {
        let by = Annotation::of("ann".parse().unwrap(), NOW);
        let drain = self.drained.contains(&number).then_some(Drain::Drained(NOW));
        let cordon = drain.map(|drain| Cordon { annotation: by, drain: Some(drain) });
        self.put(Record::Node(Node {
            name: node(number),
            labels: Labels::default(),
            joined_at: NOW,
            key_fingerprint: String::new(),
            next_key_fingerprint: None,
            trust: None,
            pause: None,
            cordon,
            decommissioned: None,
            rescan: RescanNumber::ZERO,
            logical: None,
            services: Vec::new(),
        }));
    }

    pub(super) fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&self.namespace).unwrap()
    }

    /// The node is gone for good.
    pub(super) fn decommission(&mut self, number: u64) {
        let mut node = (*self.fleet().nodes.get(&node(number)).unwrap().value).clone();
        node.decommissioned = Some(Annotation::of("ann".parse().unwrap(), NOW));
        self.put(Record::Node(node));
    }

    pub(super) fn members(&self) -> EnsembleMembers {
        (*self.fleet().ensemble_members.get(&name()).unwrap().value).clone()
    }

    /// The monitor does what it was ordered; each agent that speaks does what it was ordered, and reports.
    pub(super) fn act(&mut self) {
        let members = self.members();
        if let Some(change) = &members.osds.change {
            let osd = self.store.get_mut(&change.uuid);
            match change.action {
                OsdAction::Out | OsdAction::In => {
                    osd.into_iter().for_each(|osd| osd.is_in = change.action == OsdAction::In);
                }
                OsdAction::Purge | OsdAction::Destroy
                    if self.safe == StoreAnswer::Yes && osd.as_ref().is_some_and(|osd| !osd.is_up) =>
                {
                    self.store.remove(&change.uuid);
                    if change.action == OsdAction::Destroy {
                        self.destroyed.insert(change.store_number);
                    }
                }
                OsdAction::Purge | OsdAction::Destroy => {}
            }
        }
        for number in (1..=NODES).filter(|number| !self.silent.contains(number)).collect::<Vec<_>>() {
            self.report(number, &members);
        }
    }

    /// An OSD runs, which the store gives a number, or the one that was kept for it.
    fn run(&mut self, of: MemberNumber, order: &OsdOrder) {
        let is_free =
            |free: &u32| self.store.values().all(|osd| osd.number != *free) && !self.destroyed.contains(free);
        let taken = order.takes.filter(|number| self.destroyed.contains(number));
        let given = taken.unwrap_or_else(|| (0..).find(is_free).unwrap());
        let new = StoreOsd {
            number: given,
            is_up: true,
            is_in: taken.is_none(),
            safe: StoreAnswer::Unknown,
            ok_to_stop: StoreAnswer::Unknown,
        };
        self.made.insert(order.uuid.clone());
        if !self.store.contains_key(&order.uuid) {
            self.destroyed.remove(&given);
        }
        self.store.entry(order.uuid.clone()).or_insert(new).is_up = true;
        let restart = order.restart.map(|at| (of.get(), at));
        self.restarts.extend(restart.filter(|restart| !self.restarts.contains(restart)));
    }

    pub(super) fn report(&mut self, number: u64, members: &EnsembleMembers) {
        let mut osds = BTreeMap::new();
        let mut used_by: Vec<String> =
            self.used.iter().filter(|of| **of == number).map(|_| "ext4".into()).collect();
        for (of, order) in members.osd_orders().get(&node(number)).into_iter().flat_map(|order| &order.osds) {
            let is_taken =
                order.serial == disk(number) && !used_by.is_empty() && !self.made.contains(&order.uuid);
            let state = match order.task {
                OsdTask::Run if is_taken => MemberState::Refused,
                OsdTask::Run if self.broken.contains(&number) => MemberState::Failed,
                OsdTask::Run => {
                    self.run(*of, order);
                    MemberState::Working
                }
                OsdTask::Leave => {
                    if let Some(osd) = self.store.get_mut(&order.uuid) {
                        osd.is_up = false;
                    }
                    MemberState::Left
                }
            };
            if self.made.contains(&order.uuid) && order.serial == disk(number) {
                used_by = Vec::from(["ceph_bluestore".to_string()]);
            }
            let identity = members.identity.clone();
            let restarts = self.restarts.iter().filter(|(osd, _)| *osd == of.get());
            let restarted = restarts.map(|(_, at)| *at).max();
            let report = OsdReport {
                identity,
                state,
                reason: String::new(),
                store_number: None,
                restarted,
                since: Timestamp::EPOCH,
            };
            osds.insert(*of, report);
        }
        let device = DeviceReport { path: "/dev/sdb".to_string(), bytes: 1 << 30, used_by };
        let spare = DeviceReport { path: "/dev/sdc".to_string(), bytes: 1 << 30, used_by: Vec::new() };
        let spare = self.spares.contains(&number).then(|| (disk(number + 10), spare));
        let asked = members.osds.of_reader(MemberNumber::new(1), &members.requests).filter(|_| number == 1);
        let mut listed = self.store.clone();
        for osd in listed.values_mut() {
            let is_asked = asked.as_ref().is_some_and(|asked| asked.asks.contains(&osd.number));
            osd.safe = if is_asked { self.safe } else { StoreAnswer::Unknown };
            let is_asked = asked.as_ref().is_some_and(|asked| asked.asks_to_stop == Some(osd.number));
            osd.ok_to_stop = if is_asked { self.ok_to_stop } else { StoreAnswer::Unknown };
        }
        let member = (number == 1).then(|| (name(), monitor(members, asked.is_some().then_some(listed))));
        self.put(Record::NodeMembers(NodeMembers {
            node: node(number),
            sequence: 0,
            epoch: self.world.epoch,
            members: member.into_iter().collect(),
            osds: BTreeMap::from([(name(), osds)]),
            devices: spare.into_iter().chain([(disk(number), device)]).collect(),
            unrecorded: BTreeMap::new(),
        }));
    }

    /// One decision; whether something was written.
    pub(super) fn decide(&mut self) -> bool {
        let before = self.members();
        let verdict = verdict::decide(self.fleet(), &name(), None, (Watch::default(), NOW));
        let writes: Vec<_> = verdict.changesets.into_iter().flat_map(|changeset| changeset.writes).collect();
        let is_changed = !writes.is_empty();
        for write in writes {
            write.apply_to(&mut self.world, &self.namespace, Revision::new(1));
        }
        for (number, osd) in &self.members().osds.osds {
            let former = before.osds.osds.get(number);
            assert!(former.is_none_or(|former| former.node == osd.node && former.serial == osd.serial));
            assert!(former.is_some() || *number > before.osds.last, "numbers are not used again");
            let is_given_up = osd.phase == OsdPhase::Removed;
            assert!(!is_given_up || osd.is_unwanted, "only a person gives one up");
        }
        is_changed
    }

    pub(super) fn settle(&mut self) {
        for _ in 0..100 {
            // The monitor hears only later what others have done.
            self.act();
            self.act();
            if !self.decide() {
                assert!(!self.decide(), "a second pass writes nothing");
                return;
            }
        }
        panic!("it does not come to rest: {:?}", self.members().osds);
    }

    pub(super) fn remove(&mut self, number: u64) {
        let mut members = self.members();
        if let Some(osd) = members.osds.osds.get_mut(&MemberNumber::new(number)) {
            osd.is_unwanted = true;
        }
        self.put(Record::EnsembleMembers(members));
    }

    /// The OSD is to be replaced by one with the other device of its node.
    pub(super) fn replace(&mut self, number: u64) {
        let mut members = self.members();
        if let Some(osd) = members.osds.osds.get_mut(&MemberNumber::new(number)) {
            (osd.is_unwanted, osd.successor) = (true, Some(disk(number + 10)));
        }
        if let EnsembleService::Ceph(ceph) = &mut self.ensemble.service {
            ceph.devices.remove(&disk(number));
            ceph.devices.insert(disk(number + 10));
        }
        self.put(Record::Ensemble(self.ensemble.clone()));
        self.put(Record::EnsembleMembers(members));
    }

    /// All are to be restarted.
    pub(super) fn restart(&mut self, at: Timestamp) {
        let mut members = self.members();
        let annotation = Annotation::of("ann".parse().unwrap(), at);
        let osds = members.osds.present().map(|(number, _)| number).collect();
        members.requests.rolling = Some(RollingRequest::restart(annotation, BTreeSet::new(), osds));
        self.put(Record::EnsembleMembers(members));
    }

    pub(super) fn phases(&self) -> Vec<OsdPhase> {
        self.members().osds.osds.values().map(|osd| osd.phase).collect()
    }
}

/// What the node of the monitor reports of it.
fn monitor(members: &EnsembleMembers, osds: Option<BTreeMap<String, StoreOsd>>) -> KnownMember {
    let own = StoreMember {
        name: Some("disks-1".to_string()),
        address: Some("v2:10.0.0.1:3300".to_string()),
        votes: true,
        connected: None,
    };
    let membership = Membership {
        own_id: "disks-1".to_string(),
        is_leader: true,
        cluster_id: None,
        leader: None,
        members: BTreeMap::from([("disks-1".to_string(), own)]),
    };
    let report = MemberReport {
        peer_url: "v2:10.0.0.1:3300".to_string(),
        membership: Some(membership),
        osds,
        ..MemberReport::of(MemberNumber::new(1), members.identity.clone(), MemberState::Working)
    };
    KnownMember { report, since: NOW }
}
