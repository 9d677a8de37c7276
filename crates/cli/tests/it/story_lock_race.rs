//! Many who want one lock on three servers and a real etcd of three members, while servers are killed, cut off and the leader changes:
//! no two hold it at once, and whoever has it later has a larger fencing number.

use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::v1::slot::{AcquireSlot, ReleaseSlot};
use bellwether_core::words::random::RandomStream;
use tokio::time::Instant;

use crate::bed::Bed;
use crate::story_race::{CALL, disturb, no_agents};

/// The lease of each hold.
const LEASE: Duration = Duration::from_secs(3);

/// A lock that was held.
#[derive(Debug, Clone, Copy)]
struct Holding {
    fence: u64,
    /// It was asked for.
    called: Instant,
    /// It was granted, as the holder learnt.
    granted: Instant,
    /// Until when the holder took itself for one: it released the lock, or its lease, counted from when it asked, was over.
    until: Instant,
}

/// What is wrong with a history of holds of one lock; `None` if nothing is.
fn contradiction(holds: &[Holding]) -> Option<String> {
    let mut sorted = holds.to_vec();
    sorted.sort_by_key(|hold| hold.fence);
    let pairs = sorted
        .iter()
        .enumerate()
        .flat_map(|(at, first)| sorted.iter().skip(at + 1).map(move |second| (first, second)));
    for (first, second) in pairs {
        if first.fence == second.fence {
            return Some(format!("two holds have the fencing number {}", first.fence));
        }
        if second.granted < first.called {
            return Some(format!("{} was granted before {} was asked for", second.fence, first.fence));
        }
        if second.granted < first.until {
            return Some(format!("{} was granted while {} was held", second.fence, first.fence));
        }
    }
    None
}

/// A client that takes the lock, holds it for a while, and releases it.
async fn locks(clients: Vec<Client>, number: u64, until: Instant) -> Vec<Holding> {
    let mut chance = RandomStream::for_one(11, "lock race", number);
    let mut holds = Vec::new();
    for turn in 0_u64.. {
        if Instant::now() >= until {
            break;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(100))).await;
        let one = |chance: &mut RandomStream| {
            clients.get(usize::try_from(chance.below(clients.len() as u64)).unwrap()).unwrap()
        };
        let holder = format!("{number}-{turn}");
        let acquire = AcquireSlot {
            holder: holder.clone(),
            lease: Some(format!("{}s", LEASE.as_secs())),
            capacity: Some(1),
            ..AcquireSlot::default()
        };
        let (called, asked) = (Instant::now(), one(&mut chance));
        let answer = tokio::time::timeout(CALL, asked.acquire_slot("default", "race", &acquire)).await;
        let Ok(Ok(grant)) = answer else { continue };
        let granted = Instant::now();
        tokio::time::sleep(Duration::from_millis(chance.below(200))).await;
        let until = Instant::now().min(called + LEASE);
        holds.push(Holding { fence: grant.fence, called, granted, until });
        let back = ReleaseSlot { holder, fence: grant.fence };
        let released = tokio::time::timeout(CALL, one(&mut chance).release_slot("default", "race", &back));
        // One that did not arrive is over with its lease.
        let _unknown = released.await;
    }
    holds
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_has_one_holder_at_a_time_while_servers_die_and_members_are_cut_off() {
    let mut bed = Bed::start(no_agents()).await;
    let until = Instant::now() + Duration::from_secs(25);
    let clients = bed.clients.clone();
    let locking = (0..6).map(|number| locks(clients.clone(), number, until));
    let (histories, ()) = tokio::join!(futures_util::future::join_all(locking), disturb(&mut bed));
    let holds: Vec<Holding> = histories.into_iter().flatten().collect();
    assert!(holds.len() > 20, "hardly a race: {} holds", holds.len());
    assert_eq!(contradiction(&holds), None);
}

#[test]
fn a_history_with_two_holders_or_a_number_that_does_not_grow_is_refused() {
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    let hold = |fence, called, granted, until| Holding {
        fence,
        called: at(called),
        granted: at(granted),
        until: at(until),
    };
    let first = hold(1, 0, 10, 100);
    assert_eq!(contradiction(&[first, hold(2, 50, 110, 200)]), None);
    for (wrong, says) in [
        (hold(2, 50, 90, 200), "while 1 was held"),
        (hold(1, 150, 160, 200), "the fencing number 1"),
        (hold(0, 150, 160, 200), "before 0 was asked for"),
    ] {
        let found = contradiction(&[first, wrong]).unwrap();
        assert!(found.contains(says), "{found}");
    }
}
