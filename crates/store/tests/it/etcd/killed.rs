//! The leader of etcd is killed under load: what was acknowledged stays, nothing is made twice, watches have no gap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{next, put, soon, text, value};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{CommitOutcome, Compare, Condition, Range, Revision, Store, StoreError, Txn};

use crate::whole::state;

const WRITERS: u64 = 4;

/// What the writers and the test tell each other.
#[derive(Debug, Default)]
struct Load {
    acknowledged: AtomicU64,
    is_over: AtomicBool,
}

impl Load {
    async fn more_than(&self, count: u64) {
        let enough = async {
            while self.acknowledged.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(enough).await;
    }
}

/// The next number of a writer: its counter goes up by one, and a log has one more key.
fn step(writer: u64, number: u64) -> Txn {
    let (counter, log) = (format!("count/{writer}"), format!("log/{writer}/{number:06}"));
    let before = match number {
        1 => Compare::Absent { key: counter.clone().into() },
        _ => Compare::Value { key: counter.clone().into(), value: (number - 1).to_string().into() },
    };
    let ops = vec![put(&counter, &number.to_string()), put(&log, "1")];
    Txn { compares: vec![before, Compare::Absent { key: log.into() }], ops }
}

/// Counts up until told to stop, and gives the number and revision of each acknowledged commit. A commit of unknown
/// outcome is looked after, as the contract says; it may also be made later, and then a compare fails.
async fn count_up(store: Store, writer: u64, load: Arc<Load>) -> Vec<(u64, Revision)> {
    let (mut number, mut committed) = (1, Vec::new());
    while !load.is_over.load(Ordering::SeqCst) {
        match store.commit(step(writer, number)).await {
            Ok(CommitOutcome::Committed(revision)) => {
                committed.push((number, revision));
                load.acknowledged.fetch_add(1, Ordering::SeqCst);
                number += 1;
            }
            Ok(CommitOutcome::Conflict { .. }) => {
                let found = soon(count_of(&store, writer)).await;
                assert_eq!(found, number, "only a commit of unknown outcome was made unseen");
                number += 1;
            }
            Err(StoreError::Unknown { .. } | StoreError::Unreachable { .. }) => {}
            Err(error) => panic!("cannot {error}"),
        }
    }
    committed
}

async fn count_of(store: &Store, writer: u64) -> u64 {
    loop {
        match store.get(format!("count/{writer}").into()).await {
            Ok(entry) => return entry.map_or(0, |entry| text(&entry.value).parse().unwrap()),
            Err(StoreError::Unreachable { .. }) => {}
            Err(error) => panic!("cannot {error}"),
        }
    }
}

/// Follows both tables, and gives each commit's puts.
async fn follow(
    store: Store,
    until: Revision,
    from: bellwether_store::Watch,
) -> BTreeMap<Revision, Vec<String>> {
    let (mut watch, mut seen) = (from, BTreeMap::new());
    let mut last = Revision(0);
    while last < until {
        let batch = next(&mut watch).await.unwrap();
        assert!(batch.revision > last, "revisions ascend, and none is told twice");
        last = batch.revision;
        let puts = batch.changes.iter().map(|change| text(&change.key)).collect();
        seen.insert(batch.revision, puts);
    }
    drop(store);
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_the_leader_loses_no_acknowledged_commit_makes_none_twice_and_leaves_no_gap() {
    let (tasks, mut etcd) = (Tasks::new(), TestEtcd::three().await);
    let store = etcd.store(&tasks).await;
    let watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    let load = Arc::<Load>::default();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tasks.spawn("writer", count_up(store.clone(), writer, load.clone())))
        .collect();
    for round in 1..=2 {
        load.more_than(round * 300).await;
        let leader = etcd.leader().await;
        etcd.kill(leader);
        load.more_than(round * 300 + 200).await;
        etcd.restart(leader);
    }
    load.is_over.store(true, Ordering::SeqCst);
    let mut committed = Vec::new();
    for writer in writers {
        committed.push(soon(writer).await.unwrap().unwrap());
    }
    let (revision, present) = state(&store, None).await.unwrap();
    let last = present.values().map(|entry| entry.modified).max().unwrap();
    assert!(last <= revision);
    let seen = soon(follow(store.clone(), last, watch)).await;
    for (writer, committed) in (0..).zip(&committed) {
        let count: u64 = value(&store, &format!("count/{writer}")).await.unwrap().parse().unwrap();
        let log = present.keys().filter(|key| key.starts_with(format!("log/{writer}/").as_bytes())).count();
        assert_eq!(u64::try_from(log).unwrap(), count, "as many keys in the log as were counted");
        let own = format!("log/{writer}/");
        let logged = seen.values().flatten().filter(|key| key.starts_with(&own));
        let expected: Vec<_> = (1..=count).map(|number| format!("{own}{number:06}")).collect();
        assert!(logged.eq(&expected), "the watch told each commit once, in order");
        for (number, revision) in committed {
            assert!(seen[revision].contains(&format!("{own}{number:06}")), "an acknowledged commit is there");
        }
    }
    store.close().await;
}

/// Puts keys until one is said not to be made, as the member that is left comes to know that nobody leads; gives it.
async fn refused(store: &Store) -> String {
    for number in 0.. {
        let key = format!("refused/{number}");
        match store.commit(Txn { compares: vec![], ops: vec![put(&key, "1")] }).await {
            Err(StoreError::Unreachable { .. }) => return key,
            Err(StoreError::Unknown { .. }) => {}
            answer => panic!("{answer:?}"),
        }
    }
    unreachable!("the numbers do not end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_without_a_majority_is_unreachable_until_it_has_one_again() {
    let (tasks, mut etcd) = (Tasks::new(), TestEtcd::three().await);
    let settings = bellwether_store::EtcdSettings { deadline: Duration::from_secs(1), ..etcd.settings() };
    let store = Store::etcd(settings, &tasks).await.unwrap();
    let mut health = store.health();
    let lease = store.grant(Duration::from_secs(600)).await.unwrap();
    etcd.kill(0);
    etcd.kill(1);
    let is_lost =
        |health: &bellwether_store::Health| matches!(health.condition, Condition::Unreachable { .. });
    soon(health.wait_for(is_lost)).await.unwrap();
    let refused = soon(refused(&store)).await;
    let read = store.get("a".into()).await;
    assert!(matches!(read, Err(StoreError::Unreachable { .. })), "{read:?}");
    let renewal = store.keep_alive(lease).await;
    assert!(matches!(renewal, Err(StoreError::Unreachable { .. })), "{renewal:?}");
    etcd.kill(2);
    // What is sent on a connection that has just ended may have arrived: a read finds out that it has.
    assert!(matches!(store.get("a".into()).await, Err(StoreError::Unreachable { .. })));
    let commit = store.commit(Txn { compares: vec![], ops: vec![put("b", "1")] }).await;
    assert!(matches!(commit, Err(StoreError::Unreachable { .. })), "nothing is there to make it: {commit:?}");
    for member in 0..3 {
        etcd.restart(member);
    }
    soon(health.wait_for(|health| health.condition == Condition::Writable)).await.unwrap();
    let again =
        async { while store.commit(Txn { compares: vec![], ops: vec![put("c", "1")] }).await.is_err() {} };
    soon(again).await;
    for key in [refused.as_str(), "b"] {
        assert_eq!(value(&store, key).await, None, "what was said not to be made was not");
    }
    store.keep_alive(lease).await.unwrap();
    store.close().await;
}
