use super::*;
use bellwether_core::records::server::Leader;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::tasks::Tasks;
use bellwether_store::testing::faulty::{FaultInjection, FaultyStore};

const KEY: &str = "/bw/leader";

/// A process that tries for the key.
struct Candidate {
    held: watch::Receiver<Option<Revision>>,
    give_up: watch::Sender<Option<Revision>>,
}

impl Candidate {
    fn start(store: &Store, tasks: &Tasks) -> Self {
        let (give_up, given_up) = watch::channel(None);
        let leader = Leader { server: "cp-1".parse().unwrap(), since: Timestamp::EPOCH };
        let key = LeaseKey {
            store: store.clone(),
            key: KEY.into(),
            purpose: "leadership",
            has_own_store: false,
            record: Arc::new(move || GlobalRecord::Leader(leader.clone())),
            given_up,
            abstains: watch::channel(Abstention::default()).1,
            confirms_key: true,
        };
        let (holding, held) = watch::channel(None);
        tasks.spawn("leader", key.run(holding, tasks.token()));
        Self { held, give_up }
    }

    /// Waits until it holds the key by another revision.
    async fn another(&mut self, than: Option<Revision>) -> Option<Revision> {
        let other = self.held.wait_for(|held| held.is_some() && *held != than);
        *tokio::time::timeout(TTL, other).await.expect("it is acquired").unwrap()
    }
}

async fn delete(store: &Store) {
    let op = Op::Delete { key: KEY.into() };
    store.commit(Txn { compares: vec![], ops: vec![op] }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_deleted_while_its_lease_is_renewed_is_given_up_and_acquired_anew() {
    for faults in [
        FaultInjection::default(),
        FaultInjection { lost_deletes: 1_000_000, ..FaultInjection::default() },
        FaultInjection { repeated: 500_000, stale: 500_000, ..FaultInjection::default() },
    ] {
        let (tasks, line) = (Tasks::new(), FaultyStore::new(1));
        let store = Store::memory(&tasks);
        line.trouble(faults);
        let mut candidate = Candidate::start(&store.through(&line), &tasks);
        let first = candidate.another(None).await;
        tokio::time::sleep(RENEW_EVERY * 3).await;
        assert_eq!(*candidate.held.borrow(), first, "nothing ended it");
        delete(&store).await;
        let second = candidate.another(first).await;
        assert!(second > first, "{second:?}");
        tasks.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_holding_that_is_given_up_ends_at_once() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let mut candidate = Candidate::start(&store, &tasks);
    let first = candidate.another(None).await;
    let began = Instant::now();
    candidate.give_up.send_replace(first);
    let second = candidate.another(first).await;
    assert!(began.elapsed() < RENEW_EVERY, "{:?}", began.elapsed());
    candidate.give_up.send_replace(first);
    tokio::time::sleep(TTL).await;
    assert_eq!(*candidate.held.borrow(), second, "what is said of an earlier holding ends no later one");
    tasks.cancel();
}
