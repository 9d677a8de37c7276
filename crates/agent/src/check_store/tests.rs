use bellwether_core::local::health::{CheckVerdict, StoredHistory};
use bellwether_core::local::ttl::TtlUpdate;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::time::{Span, Timestamp};

use super::shape::{Moment, read, text};
use super::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn owner() -> CheckOwner {
    CheckOwner::Service(("web".parse().unwrap(), "web-1".parse().unwrap()))
}

fn stored() -> StoredChecks {
    let check = |verdict, against| StoredCheck {
        probe: 7,
        history: StoredHistory { verdict, warning: None, against },
    };
    let checks = [
        ("port", check(CheckVerdict::Passing(at(9_000)), 1)),
        ("disk", check(CheckVerdict::Failing(at(9_500), "full".into()), 0)),
        ("new", check(CheckVerdict::Unknown, 1)),
    ];
    StoredChecks {
        version: None,
        healthy_since: Some(at(8_000)),
        soak: Some((AssignmentNumber::new(7), Span::from_secs(30))),
        soak_failure: Some((AssignmentNumber::new(7), "check health is failing".to_owned())),
        checks: checks.map(|(name, check)| (name.parse().unwrap(), check)).into(),
        ttl_updates: [("ttl".parse().unwrap(), (at(9_900), TtlUpdate::Warning, "slow".into()))].into(),
    }
}

#[test]
fn stored_states_keep_their_ages_whatever_the_wall_clock_does() {
    let before = Moment { now: at(10_000), since_boot: Span::from_secs(100) };
    let written = text(&owner(), &stored(), "boot-1", before).unwrap();
    // 2 s later by the time since boot; the wall clock was set back by 5 s meanwhile.
    let after = Moment { now: at(7_000), since_boot: Span::from_secs(102) };
    let (_, found) = read(&written, "boot-1", after).unwrap().unwrap();
    assert_eq!(after.now.since(found.healthy_since.unwrap()), Span::from_secs(4));
    let (said, state, note) = &found.ttl_updates[&"ttl".parse().unwrap()];
    assert_eq!(after.now.since(*said), Span::from_millis(2_100));
    assert_eq!((state, note.as_str()), (&TtlUpdate::Warning, "slow"));
    let same = Moment { now: at(10_000), since_boot: Span::from_secs(100) };
    assert_eq!(read(&written, "boot-1", same), Ok(Some((owner(), stored()))));
    let failed = StoredChecks { soak_failure: stored().soak_failure, ..StoredChecks::default() };
    assert_eq!(read(&written, "boot-2", same), Ok(Some((owner(), failed))), "it failed, whatever came then");
    let without = text(&owner(), &StoredChecks { soak_failure: None, ..stored() }, "boot-1", before).unwrap();
    assert_eq!(read(&without, "boot-2", same), Ok(None), "nothing else is believed after a reboot");
    assert!(read("", "boot-1", same).is_err() && read("{}", "boot-1", same).is_err());
}

#[tokio::test]
async fn what_is_stored_is_there_after_a_restart_and_what_is_forgotten_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, web) = (Clock::system(), owner());
    let now = clock.now();
    let soak = Some((AssignmentNumber::new(7), Span::from_secs(30)));
    let stored = StoredChecks { healthy_since: Some(now), soak, ..StoredChecks::default() };
    let entity = CheckOwner::Entity("web".parse().unwrap());
    let life = async |put: Option<&StoredChecks>, clean: bool| {
        let tasks = Tasks::new();
        let store = CheckStore::open(dir.path(), &clock, &tasks);
        let found = store.get(&web);
        match put {
            Some(put) => {
                store.put(&web, put.clone());
                store.put(&entity, put.clone());
            }
            None => store.retain(|owner| *owner == entity),
        }
        tasks.cancel();
        tasks.stop(std::time::Duration::from_secs(60)).await.unwrap();
        if clean {
            store.close();
        }
        found
    };
    assert_eq!(*life(Some(&stored), true).await, StoredChecks::default());
    assert!(life(Some(&stored), false).await.healthy_since.is_some(), "an orderly end was recorded");
    let found = life(None, true).await;
    assert_eq!(
        (found.healthy_since, found.soak),
        (None, soak),
        "it is not known how long the agent was away, but what was observed was observed"
    );
    assert_eq!(*life(None, true).await, StoredChecks::default());
    assert_eq!(std::fs::read_dir(dir.path().join("ledger/checks")).unwrap().count(), 2, "entity and end");
}
