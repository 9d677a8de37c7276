mod accepted;
mod overtaken;
mod restored;
mod working;

use std::collections::BTreeMap;

use super::*;
use crate::access::NamePattern;
use crate::decide::ensembles::requests::replace_refusal;
use crate::records::annotation::Annotation;
use crate::records::ensemble::{
    ETCD_CLIENT_PORT, ETCD_PEER_PORT, EnsembleService, EnsembleSize, EtcdSettings, FAILOVER_AFTER,
    JOIN_WITHIN,
};
use crate::records::ensemble_members::{Member, MemberPhase};
use crate::records::ensemble_restore::RestoreSource;
use crate::records::key::{Key, Record};
use crate::records::member::{KnownMember, MemberReport, MemberState, NodeMembers};
use crate::records::node::PresenceState;
use crate::records::node::{Cordon, Node, Presence};
use crate::records::report::Report;
use crate::records::status::Status;
use crate::words::counter::{EnsembleRevision, Epoch, Generation, RescanNumber, Revision};
use crate::words::feature::{Feature, Features};
use crate::words::label::{Label, Labels};
use crate::words::name::{Category, Namespace};
use crate::words::selector::Selector;
use crate::world::World;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

struct Site {
    world: World,
    namespace: Namespace,
}

impl Site {
    /// A namespace with this many nodes, `db-1` and so on, which are up and whose agents run members; in racks of two.
    fn new(nodes: u64) -> Self {
        Self::restored(nodes, Epoch::ZERO)
    }

    /// The same of an installation in this epoch.
    fn restored(nodes: u64, epoch: Epoch) -> Self {
        let world = World { epoch, ..World::default() };
        let mut site = Self { world, namespace: Namespace::parse("default").unwrap() };
        for number in 1..=nodes {
            let mut labels = Labels::default();
            labels.set(Label::new("rack", &format!("r{}", number.div_ceil(2))).unwrap()).unwrap();
            site.put(Record::Node(node(number, labels)));
            site.presence(number, PresenceState::Up);
            site.report(number, [Feature::Ensembles].into_iter().collect());
        }
        site
    }

    fn put(&mut self, record: Record) {
        self.world.put(&self.namespace, record, Revision::new(1));
    }

    fn delete(&mut self, key: &Key) {
        self.world.delete(&self.namespace, key, Revision::new(2));
    }

    fn presence(&mut self, number: u64, contact: PresenceState) {
        self.put(Record::Presence(name(number), Presence { contact, since: NOW, server: None }));
    }

    fn report(&mut self, number: u64, features: Features) {
        self.reports(number, features, BTreeMap::new());
    }

    fn reports(&mut self, number: u64, features: Features, statuses: BTreeMap<Category, Status>) {
        self.put(Record::Report(Report {
            node: name(number),
            received_at: NOW,
            agent_version: "0.1.0".to_string(),
            generation: Generation::ZERO,
            features,
            ledger: None,
            ledger_since: Epoch::ZERO,
            sequence: 0,
            entities: BTreeMap::new(),
            statuses,
            deleted: BTreeMap::new(),
        }));
    }

    /// What a node reports of the last member.
    fn known(&mut self, members: &EnsembleMembers, node: u64, state: MemberState) {
        self.tell(members, node, report(members, members.last, state));
    }

    fn tell(&mut self, members: &EnsembleMembers, node: u64, report: MemberReport) {
        let known = KnownMember { report, since: NOW };
        let members = BTreeMap::from([(members.ensemble.clone(), known)]);
        self.put(Record::NodeMembers(NodeMembers {
            node: name(node),
            sequence: 0,
            epoch: self.world.epoch,
            members,
            osds: BTreeMap::new(),
            devices: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
        }));
    }

    /// The members 1 and so on vote on the nodes of these numbers.
    fn voting(&mut self, ensemble: &Ensemble, nodes: &[u64]) {
        let mut members = EnsembleMembers::none(ensemble.name.clone(), ensemble.service.clone(), NOW);
        members.is_bootstrapped = ensemble.restore.is_some();
        members.restore.clone_from(&ensemble.restore);
        for node in nodes {
            members.last = members.last.next();
            let member = Member {
                node: name(*node),
                phase: MemberPhase::Voting,
                since: NOW,
                store_id: None,
                peer_url: String::new(),
            };
            members.members.insert(members.last, member);
            self.known(&members, *node, MemberState::Working);
        }
        self.put(Record::EnsembleMembers(members));
    }

    fn plan(&self, ensemble: &Ensemble) -> EnsemblePlan {
        plan(self.world.fleets.get(&self.namespace).unwrap(), ensemble, None, (NOW, Timestamp::EPOCH))
    }
}

/// What is reported of a member.
fn report(members: &EnsembleMembers, number: MemberNumber, state: MemberState) -> MemberReport {
    MemberReport::of(number, members.identity.clone(), state)
}

fn name(number: u64) -> NodeName {
    NodeName::parse(&format!("db-{number}")).unwrap()
}

fn node(number: u64, labels: Labels) -> Node {
    Node {
        name: name(number),
        labels,
        joined_at: NOW,
        key_fingerprint: String::new(),
        next_key_fingerprint: None,
        trust: None,
        pause: None,
        cordon: None,
        decommissioned: None,
        rescan: RescanNumber::ZERO,
        logical: None,
        services: [NamePattern::Any].to_vec(),
    }
}

fn by() -> Annotation {
    Annotation::of("ann".parse().unwrap(), NOW)
}

fn store(size: EnsembleSize) -> Ensemble {
    Ensemble {
        name: "store".parse().unwrap(),
        revision: EnsembleRevision::new(1),
        service: EnsembleService::Etcd(EtcdSettings {
            client_port: ETCD_CLIENT_PORT,
            peer_port: ETCD_PEER_PORT,
            tls: true,
        }),
        size,
        filter: Selector::all(),
        spread: Some("rack".to_string()),
        failover_after: FAILOVER_AFTER,
        join_within: JOIN_WITHIN,
        mode: EnsembleMode::Managed,
        snapshots: crate::records::ensemble_snapshots::SnapshotPolicy::default(),
        restore: None,
        adopt: None,
        labels: Labels::default(),
        annotation: by(),
    }
}

fn lines(plan: &EnsemblePlan) -> Vec<String> {
    plan.steps.iter().map(PlannedStep::line).collect()
}

#[test]
fn members_are_added_one_by_one_in_another_rack_each() {
    let plan = Site::new(6).plan(&store(EnsembleSize::Quorum));
    assert_eq!((plan.wanted, plan.steps.len(), plan.waiting.as_deref()), (3, 3, None));
    let racks: std::collections::BTreeSet<u64> = plan
        .steps
        .iter()
        .map(|step| {
            let PlannedStep::Add(_, node) = step else { panic!("{step:?}") };
            node.as_str().trim_start_matches("db-").parse::<u64>().unwrap()
        })
        .map(|node| node.div_ceil(2))
        .collect();
    assert_eq!(racks.len(), 3, "{:?}", lines(&plan));
}

#[test]
fn each_node_that_may_have_no_member_says_why() {
    let mut site = Site::new(6);
    site.report(1, Features::default());
    site.presence(2, PresenceState::Unreachable);
    site.presence(3, PresenceState::Never);
    let cordon = Some(Cordon { annotation: by(), drain: None });
    site.put(Record::Node(Node { cordon, ..node(4, Labels::default()) }));
    let other = Ensemble { name: "other".parse().unwrap(), ..store(EnsembleSize::Number(1)) };
    site.put(Record::Ensemble(other.clone()));
    site.voting(&other, &[5]);
    let plan = site.plan(&store(EnsembleSize::Number(3)));
    assert_eq!(lines(&plan), ["member 1 is added on node db-6"]);
    assert_eq!(plan.waiting.unwrap(), "2 more members are needed, and no other node may have one");
    let refusals: Vec<String> = plan.refusals.iter().map(|(node, why)| format!("{node}: {why}")).collect();
    assert_eq!(
        refusals,
        [
            "db-1: its agent runs no members: its configuration has no section [ensembles], or it is of an older release",
            "db-2: it is unreachable",
            "db-3: it has never connected",
            "db-4: it is cordoned by ann",
            "db-5: a member of ensemble other on it has port 2379",
        ]
    );
}

#[test]
fn fewer_members_leave_one_after_the_other_and_a_filter_that_matches_nothing_removes_none() {
    let mut site = Site::new(6);
    site.voting(&store(EnsembleSize::Number(3)), &[1, 2, 3]);
    let plan = site.plan(&store(EnsembleSize::Number(1)));
    assert_eq!(
        lines(&plan),
        [
            "member 2 on node db-2 is removed: there are more members than are wanted",
            "member 3 on node db-3 is removed: there are more members than are wanted",
        ]
    );
    let filter = Selector::parse("role=typo").unwrap();
    let plan = site.plan(&Ensemble { filter: filter.clone(), ..store(EnsembleSize::Quorum) });
    assert_eq!((plan.wanted, plan.steps.len(), plan.waiting), (3, 0, None));
    let plan = site.plan(&Ensemble { filter, ..store(EnsembleSize::Number(5)) });
    assert_eq!(plan.waiting.unwrap(), "2 more members are needed, and no node matches its filter");
}

#[test]
fn silent_members_are_waited_for() {
    let (mut site, ensemble) = (Site::new(4), store(EnsembleSize::Number(3)));
    site.voting(&ensemble, &[1, 2, 3]);
    site.presence(1, PresenceState::Unreachable);
    let planned = site.plan(&ensemble);
    let waiting = planned.waiting.as_deref().unwrap_or_default();
    assert_eq!(
        (planned.steps.len(), waiting),
        (0, "member 1 on db-1 does not work; it is replaced if that is still so in 10m")
    );
    // Where no other node may have one, nothing is counted down to.
    let mut full = Site::new(3);
    full.voting(&ensemble, &[1, 2, 3]);
    full.presence(1, PresenceState::Unreachable);
    assert_eq!(
        full.plan(&ensemble).waiting.unwrap(),
        "member 1 on db-1 does not work, and is not replaced: no other node may have one"
    );
    // The same is said of it once its time is over.
    let fleet = full.world.fleets.get(&full.namespace).unwrap();
    let later = Timestamp::from_millis(NOW.as_millis() + 3_600_000);
    assert_eq!(
        plan(fleet, &ensemble, None, (later, Timestamp::EPOCH)).waiting.unwrap(),
        "member 1 on db-1 does not work, and is not replaced: no other node may have one"
    );
    // A server that was away has heard nobody meanwhile.
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let later = Timestamp::from_millis(NOW.as_millis() + 300_000);
    let waiting = |listening_since| plan(fleet, &ensemble, None, (later, listening_since)).waiting.unwrap();
    assert!(
        waiting(Timestamp::EPOCH).ends_with("still so in 5m")
            && waiting(later).ends_with(
                "still so in 10m (counted anew, once the nodes had time to connect to the server that leads)"
            )
    );
    site.presence(2, PresenceState::Unreachable);
    let waiting = site.plan(&ensemble).waiting.unwrap();
    assert!(
        waiting.starts_with(
            "members 1 on db-1 and 2 on db-2 do not work, or contact is lost, so that 1 of 3 members that vote are known to work"
        ) && waiting.contains("the store has a quorum"),
        "{waiting}"
    );
    site.presence(3, PresenceState::Unreachable);
    let waiting = site.plan(&ensemble).waiting.unwrap();
    assert_eq!(
        waiting,
        "0 of 3 members that vote work, for 0s now: they may be electing a leader, and nothing is changed meanwhile"
    );
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let later = Timestamp::from_millis(NOW.as_millis() + 10_000);
    let waiting = plan(fleet, &ensemble, None, (later, Timestamp::EPOCH)).waiting.unwrap();
    assert!(
        waiting.starts_with(
            "quorum is lost: 0 of 3 members that vote work, and members 1 on db-1 and 2 on db-2 and 3 on db-3 do not"
        ),
        "{waiting}"
    );
    let unmanaged = Ensemble { mode: EnsembleMode::Unmanaged, ..ensemble };
    assert!(site.plan(&unmanaged).waiting.unwrap().starts_with("its mode is unmanaged"));
}

/// Why a member of the ensemble cannot be replaced.
fn refused(site: &Site, ensemble: &Ensemble, number: u64) -> String {
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let members = &fleet.ensemble_members.get(&ensemble.name).unwrap().value;
    replace_refusal(fleet, ensemble, members, (MemberNumber::new(number), NOW)).unwrap_or_default()
}

#[test]
fn who_can_be_replaced_is_known_before_it_is_asked() {
    let ensemble = store(EnsembleSize::Number(3));
    let mut site = Site::new(4);
    site.voting(&ensemble, &[1, 2, 3]);
    assert_eq!(refused(&site, &ensemble, 2), "");
    assert_eq!(refused(&site, &ensemble, 4), "there is no such member");
    let unmanaged = Ensemble { mode: EnsembleMode::Unmanaged, ..ensemble.clone() };
    assert!(refused(&site, &unmanaged, 2).contains("its members are left as they are"));
    site.presence(4, PresenceState::Unreachable);
    assert_eq!(
        refused(&site, &ensemble, 2),
        "it works, and no other node may have a member in its place, such as db-4: it is unreachable"
    );
    // One that does not work may have its own node again.
    site.presence(2, PresenceState::Unreachable);
    assert_eq!(refused(&site, &ensemble, 2), "");
    site.presence(3, PresenceState::Unreachable);
    assert!(refused(&site, &ensemble, 2).starts_with("1 of 3 members that vote work"));
}

#[test]
fn the_plan_of_a_replacement_says_that_the_new_member_joins_first() {
    let ensemble = store(EnsembleSize::Number(3));
    let mut site = Site::new(4);
    site.voting(&ensemble, &[1, 2, 3]);
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let mut members = fleet.ensemble_members.get(&ensemble.name).unwrap().value.as_ref().clone();
    members.requests.replace.insert(MemberNumber::new(2), by());
    site.put(Record::EnsembleMembers(members));
    assert_eq!(
        lines(&site.plan(&ensemble)),
        [
            "member 4 is added on node db-4",
            "member 2 on node db-2 is removed: somebody asked for another one in its place"
        ]
    );
    site.presence(2, PresenceState::Unreachable);
    let later = Timestamp::from_millis(NOW.as_millis() + 60_000);
    let planned =
        plan(site.world.fleets.get(&site.namespace).unwrap(), &ensemble, None, (later, Timestamp::EPOCH));
    assert_eq!(
        lines(&planned),
        [
            "member 2 on node db-2 is removed: somebody asked for another one in its place",
            "member 4 is added on node db-4"
        ]
    );
}

#[test]
fn an_ensemble_from_a_snapshot_is_founded_on_its_node_and_grows_elsewhere() {
    let mut site = Site::new(6);
    let restore = RestoreSource { node: name(5), snapshot: "old-1f-2-2a".parse().unwrap() };
    let ensemble = Ensemble { restore: Some(restore), ..store(EnsembleSize::Number(3)) };
    let plan = site.plan(&ensemble);
    let waiting = plan.waiting.unwrap();
    assert!(waiting.contains("snapshot old-1f-2-2a on node db-5: its agent cannot restore"), "{waiting}");
    site.report(5, [Feature::Ensembles, Feature::Restores].into_iter().collect());
    let plan = site.plan(&ensemble);
    assert_eq!(lines(&plan)[0], "member 1 is founded on node db-5 from snapshot old-1f-2-2a");
    assert_eq!((plan.steps.len(), plan.waiting.as_deref()), (3, None));
    assert!(matches!(&plan.steps[1], PlannedStep::Add(_, node) if *node != name(5)), "{:?}", lines(&plan));
    // Once it serves, it is as any other one.
    site.voting(&ensemble, &[5]);
    assert!(lines(&site.plan(&ensemble)).iter().all(|line| line.contains("is added on node")));
    let elsewhere = RestoreSource { node: name(9), snapshot: "old-1f-2-2a".parse().unwrap() };
    let elsewhere = Ensemble { name: "new".parse().unwrap(), restore: Some(elsewhere), ..ensemble };
    let plan = site.plan(&elsewhere);
    assert!(plan.steps.is_empty() && plan.waiting.unwrap().contains("there is no such node"));
}
