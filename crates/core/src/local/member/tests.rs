mod histories;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::records::ensemble::{CephSettings, EnsembleService, EtcdSettings};
use crate::records::ensemble_restore::RestoreSource;
use crate::records::ensemble_snapshots::SnapshotOrder;

fn ensemble() -> EnsembleName {
    "db".parse().unwrap()
}

fn key(number: u64) -> MemberKey {
    MemberKey { identity: "db-1".into(), number: MemberNumber::new(number) }
}

fn order(number: u64, task: MemberTask) -> MemberOrder {
    let service = EnsembleService::Etcd(EtcdSettings { client_port: 2379, peer_port: 2380, tls: true });
    MemberOrder {
        number: MemberNumber::new(number),
        identity: "db-1".into(),
        service,
        task,
        restore: None,
        adoption: None,
        change: None,
        replication: None,
        passwords: BTreeMap::new(),
        tells_position: false,
        peers: BTreeSet::new(),
        snapshots: SnapshotOrder::default(),
        restart: None,
        defragmentation: None,
        osds: None,
    }
}

fn join(numbers: &[u64]) -> MemberStart {
    MemberStart::Join(numbers.iter().map(|n| (MemberNumber::new(*n), format!("http://n-{n}:2380"))).collect())
}

/// What a node with a member has, to be changed one by one.
struct Node {
    order: MemberOrder,
    noted: Option<NotedMember>,
    directory: MemberDirectory,
    process: MemberProcess,
    standing: Standing,
    lack: Option<String>,
    is_restart_due: bool,
}

impl Node {
    /// Member 3 with this task and these data, noted and not running.
    fn with(task: MemberTask, data: MemberData) -> Self {
        Self {
            order: order(3, task),
            noted: Some(NotedMember { key: key(3), has_left: false }),
            directory: MemberDirectory::Claimed(key(3), data),
            process: MemberProcess::Stopped,
            standing: Standing::NotAsked,
            lack: None,
            is_restart_due: false,
        }
    }

    fn plan(&self) -> MemberStep {
        self.sight(&ensemble()).plan()
    }

    fn sight<'a>(&'a self, ensemble: &'a EnsembleName) -> MemberSight<'a> {
        MemberSight {
            ensemble,
            order: &self.order,
            noted: self.noted.as_ref(),
            directory: self.directory.clone(),
            process: self.process.clone(),
            is_restart_due: self.is_restart_due,
            standing: self.standing,
            lack: self.lack.clone(),
            place: "/var/lib/store",
        }
    }

    fn reason(&self, state: MemberState) -> String {
        let step = self.plan();
        let MemberStep::Rest(found, reason) = step else { panic!("{step:?} is not {state:?}") };
        assert_eq!(found, state, "{reason}");
        reason
    }
}

fn source() -> RestoreSource {
    RestoreSource { node: "n-3".parse().unwrap(), snapshot: "db-1-1-1".parse().unwrap() }
}

fn ended(code: Option<i32>, is_due: bool) -> MemberProcess {
    MemberProcess::Ended { code, summary: "exit code 1".into(), is_due }
}

#[test]
fn a_member_is_prepared_noted_and_started_once_without_data() {
    let mut node = Node::with(MemberTask::Prepare, MemberData::Unused);
    assert_eq!(node.reason(MemberState::Prepared), "");
    node.noted = None;
    assert_eq!(node.plan(), MemberStep::Prepare);
    node.directory = MemberDirectory::Absent;
    assert_eq!(node.plan(), MemberStep::Prepare);
    let mut node = Node::with(MemberTask::Run(MemberStart::First), MemberData::Unused);
    assert_eq!(node.plan(), MemberStep::Start(StartWith::New));
    node.lack = Some("port 2379, which is in use".into());
    assert_eq!(
        node.reason(MemberState::Failed),
        "ensemble db: member 3 waits for port 2379, which is in use"
    );
    let node = Node::with(MemberTask::Run(join(&[1, 3])), MemberData::Unused);
    assert!(matches!(node.plan(), MemberStep::Start(StartWith::Existing(members)) if members.len() == 2));
    let node = Node::with(MemberTask::Run(join(&[1, 2])), MemberData::Unused);
    assert!(node.reason(MemberState::Refused).contains("not among the members"));
    let node = Node::with(MemberTask::Run(MemberStart::Again), MemberData::Unused);
    assert!(node.reason(MemberState::Failed).contains("was never started here"));
}

#[test]
fn a_member_whose_data_are_gone_is_not_started_whatever_the_order_says() {
    for start in [MemberStart::First, join(&[1, 3]), MemberStart::Again] {
        let mut node = Node::with(MemberTask::Run(start.clone()), MemberData::Lost);
        assert!(node.reason(MemberState::Failed).contains("its data are gone"), "{start:?}");
        node.directory = MemberDirectory::Absent;
        assert!(node.reason(MemberState::Failed).contains("its data are gone"), "{start:?}");
    }
}

#[test]
fn one_whose_data_were_removed_while_it_runs_goes_on_and_says_so_and_is_not_restarted() {
    let missed = |node: &Node| node.sight(&ensemble()).runs_without_data();
    let mut node = Node::with(MemberTask::Run(MemberStart::Again), MemberData::Present);
    node.is_restart_due = true;
    for directory in [MemberDirectory::Absent, MemberDirectory::Claimed(key(3), MemberData::Lost)] {
        node.process = MemberProcess::Running(key(3));
        node.directory = directory;
        assert_eq!(node.plan(), MemberStep::Serve, "it would not be started again");
        let said = missed(&node).unwrap();
        assert!(
            said.contains("gone from /var/lib/store") && said.ends_with("ensemble replace db 3"),
            "{said}"
        );
        node.process = MemberProcess::Stopped;
        assert_eq!(missed(&node), None, "that it is not started says it");
    }
    node.process = MemberProcess::Running(key(3));
    for data in [MemberData::Present, MemberData::Unused] {
        node.directory = MemberDirectory::Claimed(key(3), data);
        assert_eq!(missed(&node), None);
    }
}

#[test]
fn the_first_member_of_a_restored_ensemble_gets_its_data_once_before_it_is_started() {
    let mut node = Node::with(MemberTask::Prepare, MemberData::Unused);
    node.order.restore = Some(source());
    assert_eq!(node.reason(MemberState::Prepared), "");
    node.lack = Some("a whole snapshot".into());
    assert!(node.reason(MemberState::Refused).contains("waits for a whole snapshot"));
    node.order.task = MemberTask::Run(MemberStart::First);
    assert!(node.reason(MemberState::Failed).contains("waits for a whole snapshot"));
    node.lack = None;
    assert_eq!(node.plan(), MemberStep::Restore);
    // What was restored, and what it has written since, stays.
    node.directory = MemberDirectory::Claimed(key(3), MemberData::Present);
    assert_eq!(node.plan(), MemberStep::Ask);
    node.standing = Standing::Alone;
    assert_eq!(node.plan(), MemberStep::Start(StartWith::Data));
    node.directory = MemberDirectory::Claimed(key(3), MemberData::Lost);
    assert!(node.reason(MemberState::Failed).contains("its data are gone"));
}

#[test]
fn a_member_with_data_is_started_with_them_once_the_others_were_asked() {
    for start in [MemberStart::First, join(&[1, 3]), MemberStart::Again] {
        let mut node = Node::with(MemberTask::Run(start), MemberData::Present);
        assert_eq!(node.plan(), MemberStep::Ask);
        for standing in [Standing::Listed, Standing::Unknown, Standing::Alone] {
            node.standing = standing;
            assert_eq!(node.plan(), MemberStep::Start(StartWith::Data));
            node.process = ended(None, true);
            assert_eq!(node.plan(), MemberStep::Start(StartWith::Data));
            node.process = ended(Some(1), false);
            assert!(node.reason(MemberState::Failed).contains("waits to be started again: exit code 1"));
            node.process = MemberProcess::Stopped;
        }
        node.standing = Standing::NotListed;
        assert!(node.reason(MemberState::Failed).contains("does not count it any more"));
        // It ends with 0 once it learns that it was removed.
        (node.standing, node.process) = (Standing::Unknown, ended(Some(0), true));
        assert!(node.reason(MemberState::Failed).contains("waits for another member"));
        node.standing = Standing::Listed;
        assert_eq!(node.plan(), MemberStep::Start(StartWith::Data));
    }
}

#[test]
fn a_member_that_joins_by_itself_is_started_before_anybody_counts_it_and_after_any_end() {
    let mut node = Node::with(MemberTask::Run(join(&[1, 3])), MemberData::Present);
    node.order.service =
        EnsembleService::Ceph(CephSettings { port: 3300, replicas: 3, devices: BTreeSet::new() });
    node.standing = Standing::NotListed;
    assert_eq!(node.plan(), MemberStep::Start(StartWith::Data));
    node.order.task = MemberTask::Run(MemberStart::Again);
    assert!(node.reason(MemberState::Failed).contains("the store does not count it any more"));
    // It was told to end, as all others may have been: then none of them can say anything.
    node.process = ended(Some(0), true);
    node.standing = Standing::NotAsked;
    assert_eq!(node.plan(), MemberStep::Ask);
    node.standing = Standing::Unknown;
    assert_eq!(node.plan(), MemberStep::Start(StartWith::Data));
}

#[test]
fn what_is_of_another_member_is_stopped_and_set_aside() {
    let mut node = Node::with(MemberTask::Prepare, MemberData::Unused);
    (node.directory, node.noted) = (MemberDirectory::Claimed(key(2), MemberData::Present), None);
    node.process = MemberProcess::Running(key(2));
    assert_eq!(node.plan(), MemberStep::Stop);
    node.process = MemberProcess::Stopped;
    assert_eq!(node.plan(), MemberStep::SetAside);
    node.directory = MemberDirectory::Unclaimed;
    assert_eq!(node.plan(), MemberStep::SetAside);
    let mut other = key(3);
    other.identity = "db-2".into();
    node.directory = MemberDirectory::Claimed(other, MemberData::Present);
    assert_eq!(node.plan(), MemberStep::SetAside);
}

#[test]
fn a_member_of_another_ensemble_of_the_same_name_that_runs_or_has_data_is_left_alone() {
    let newer = MemberKey { identity: "db-2".into(), number: MemberNumber::new(1) };
    let of = |task: MemberTask, runs: bool| {
        let mut node = Node::with(task, MemberData::Present);
        node.noted = Some(NotedMember { key: newer.clone(), has_left: false });
        node.directory = MemberDirectory::Claimed(newer.clone(), MemberData::Present);
        if runs {
            node.process = MemberProcess::Running(newer.clone());
        }
        node
    };
    for runs in [true, false] {
        let said = of(MemberTask::Run(MemberStart::Again), runs).reason(MemberState::Failed);
        assert!(said.contains("its node has member 1 of another ensemble of this name"), "{said}");
        assert_eq!(
            of(MemberTask::Leave, runs).reason(MemberState::Left),
            "",
            "it is not this one's to leave"
        );
    }
    for start in [MemberStart::First, join(&[1, 3])] {
        assert!(of(MemberTask::Run(start), true).reason(MemberState::Failed).contains("which runs"));
    }
    assert!(of(MemberTask::Prepare, true).reason(MemberState::Refused).contains("which runs"));
    assert_eq!(of(MemberTask::Prepare, false).plan(), MemberStep::SetAside, "nobody uses it");
}

#[test]
fn a_member_leaves_once_it_is_stopped_and_its_directory_is_set_aside() {
    let mut node = Node::with(MemberTask::Leave, MemberData::Present);
    node.process = MemberProcess::Running(key(3));
    assert_eq!(node.plan(), MemberStep::Stop);
    node.process = ended(Some(0), false);
    assert_eq!(node.plan(), MemberStep::SetAside);
    node.directory = MemberDirectory::Absent;
    assert_eq!(node.plan(), MemberStep::NoteLeft);
    node.noted = Some(NotedMember { key: key(3), has_left: true });
    assert_eq!(node.reason(MemberState::Left), "");
    node.order.task = MemberTask::Run(MemberStart::First);
    assert!(node.reason(MemberState::Refused).contains("it has left this node"));
    node.order = order(2, MemberTask::Prepare);
    assert!(node.reason(MemberState::Refused).contains("has had member 3 since"));
    node.order = order(4, MemberTask::Prepare);
    assert_eq!(node.plan(), MemberStep::Prepare);
}

#[test]
fn a_restart_stops_what_runs_asks_the_others_and_starts_it_with_its_data() {
    let mut node = Node::with(MemberTask::Run(MemberStart::Again), MemberData::Present);
    node.process = MemberProcess::Running(key(3));
    assert_eq!(node.plan(), MemberStep::Serve);
    node.is_restart_due = true;
    assert_eq!(node.plan(), MemberStep::Stop);
    node.process = MemberProcess::Stopped;
    assert_eq!(node.plan(), MemberStep::Ask);
    node.standing = Standing::Listed;
    assert_eq!(node.plan(), MemberStep::Start(StartWith::Data));
    // What runs goes on while it could not be started again.
    node.process = MemberProcess::Running(key(3));
    node.lack = Some("etcd, which is not installed".into());
    assert_eq!(node.plan(), MemberStep::Serve);
}
