//! Whether the data store of a node hands over its leadership before an entity is changed, and to whom. Decides; never asks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::probes::{DataStore, ShardRole, StoreState};
use crate::words::name::ProbeName;
use crate::words::plural::plural;

/// Most entries that a follower may be behind: a store that takes thousands of writes a second is caught up within a second, and the
/// leader accepts no writes until its follower is.
pub const MAX_LAG_ENTRIES: u64 = 5_000;

/// Most names in one reason.
const NAMED: usize = 5;

/// What becomes of a replica of the former primary once another store leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaStep {
    /// It is made to follow the new primary, and to keep that.
    Follow,
    /// It follows that one already, and is made to keep that.
    Keep,
    /// Somebody else has decided what it does.
    Leave,
}

/// What is known of the entity itself before it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnHealth {
    /// Its version was validated, and its checks do not fail.
    Healthy,
    /// No version of it was validated since the last attempt began, or ever.
    Unfinished,
    /// Its process ended, or its checks or its validation fail.
    Failing,
}

/// What comes before the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandoverStep {
    /// Nothing: the change begins.
    Start,
    /// The store hands over its leadership.
    HandOver,
    /// The change does not begin, for this reason.
    Wait(String),
}

/// A member that may take over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// Its id, as the store takes it.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// How far it is behind, or why it must not take over.
    pub lag: Result<u64, String>,
}

/// What becomes of a replica after a handover: `upstream` is what it follows now, `former` what it followed before, under its own name for it.
#[must_use]
pub fn after_handover(upstream: Option<&str>, former: &str, next: &str) -> ReplicaStep {
    match upstream {
        Some(upstream) if upstream == next => ReplicaStep::Keep,
        Some(upstream) if upstream == former => ReplicaStep::Follow,
        Some(_) | None => ReplicaStep::Leave,
    }
}

/// What comes before the change of an entity, by what its data store has just answered.
///
/// A store that is down leads nothing. One of which nothing is known may be the primary, so that a healthy entity is left alone; one that is
/// not healthy may be what the change is to mend.
#[must_use]
pub fn next(probe: &ProbeName, store: &DataStore, health: OwnHealth) -> HandoverStep {
    match (store.state, health) {
        (StoreState::Down, _) | (StoreState::Unknown, OwnHealth::Unfinished | OwnHealth::Failing) => {
            HandoverStep::Start
        }
        (StoreState::Unknown, OwnHealth::Healthy) => HandoverStep::Wait(format!(
            "data store {probe} does not say whether it is the primary: {}; mend or stop it, or unset store, order and quorum in the policy",
            store.reason
        )),
        (StoreState::Up, _) if leads(store) => HandoverStep::HandOver,
        (StoreState::Up, _) => HandoverStep::Start,
    }
}

/// Whether a store is the primary of a shard.
#[must_use]
pub fn leads(store: &DataStore) -> bool {
    store.facts.shards.values().any(|shard| shard.role == ShardRole::Primary)
}

/// What comes after a handover that failed: an entity that fails already is mended all the same.
#[must_use]
pub fn after_failure(probe: &ProbeName, reason: &str, health: OwnHealth) -> HandoverStep {
    match health {
        OwnHealth::Failing => HandoverStep::Start,
        OwnHealth::Healthy | OwnHealth::Unfinished => HandoverStep::Wait(format!(
            "data store {probe} is the primary and cannot hand over: {reason}; it is tried again, or unset store, order and quorum in the policy"
        )),
    }
}

/// What comes after a store that follows could not be made to keep that role over its restart.
#[must_use]
pub fn after_failed_keeping(probe: &ProbeName, reason: &str, health: OwnHealth) -> HandoverStep {
    match health {
        OwnHealth::Failing => HandoverStep::Start,
        OwnHealth::Healthy | OwnHealth::Unfinished => HandoverStep::Wait(format!(
            "data store {probe} may start as a second primary: {reason}; it is tried again, or unset store, order and quorum in the policy"
        )),
    }
}

/// The follower that takes over: the one that is least behind, and the first of several in the order of their ids.
///
/// # Errors
/// Why there is none, with the reason of each.
pub fn choose(followers: &[Follower], max_lag: Option<u64>) -> Result<&Follower, String> {
    let fits = |lag: u64| max_lag.is_none_or(|most| lag <= most);
    let fit = followers.iter().filter_map(|follower| Some((*follower.lag.as_ref().ok()?, follower)));
    let chosen = fit.filter(|(lag, _)| fits(*lag)).min_by_key(|(lag, follower)| (*lag, &follower.id));
    if let Some((_, follower)) = chosen {
        return Ok(follower);
    }
    if followers.is_empty() {
        return Err("it has no follower".to_string());
    }
    let each = followers.iter().take(NAMED).map(|follower| match &follower.lag {
        Ok(lag) => format!("{} is {lag} behind", follower.name),
        Err(reason) => format!("{}: {reason}", follower.name),
    });
    let each: Vec<String> = each.collect();
    let more = followers.len().saturating_sub(each.len());
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Err(format!("none of {} can take over: {}{more}", plural(followers.len(), "follower"), each.join(", ")))
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::records::probes::{Shard, StoreFacts};
    use crate::words::time::Timestamp;

    const ALL: [OwnHealth; 3] = [OwnHealth::Healthy, OwnHealth::Unfinished, OwnHealth::Failing];

    fn probe() -> ProbeName {
        "db".parse().unwrap()
    }

    fn store(state: StoreState, roles: &[ShardRole]) -> DataStore {
        let shard =
            |role| Shard { role, history: None, offset: None, lag: None, upstream: None, streaming: None };
        let shards = roles.iter().enumerate().map(|(index, role)| (index.to_string(), shard(*role)));
        let facts = StoreFacts { shards: shards.collect::<BTreeMap<_, _>>(), ..StoreFacts::default() };
        DataStore { state, since: Timestamp::EPOCH, reason: "no answer within 5s".into(), facts }
    }

    fn follower(id: &str, lag: Result<u64, &str>) -> Follower {
        Follower { id: id.into(), name: format!("db-{id}"), lag: lag.map_err(Into::into) }
    }

    #[test]
    fn only_a_primary_that_is_up_hands_over() {
        for health in ALL {
            let next = |state, roles: &[ShardRole]| next(&probe(), &store(state, roles), health);
            assert_eq!(next(StoreState::Up, &[ShardRole::Primary]), HandoverStep::HandOver);
            assert_eq!(
                next(StoreState::Up, &[ShardRole::Replica, ShardRole::Primary]),
                HandoverStep::HandOver
            );
            for role in [ShardRole::Replica, ShardRole::Learner, ShardRole::Vacant] {
                assert_eq!(next(StoreState::Up, &[role]), HandoverStep::Start);
            }
            assert_eq!(next(StoreState::Up, &[]), HandoverStep::Start);
            // What it said when it was up last is not what it is now.
            assert_eq!(next(StoreState::Down, &[ShardRole::Primary]), HandoverStep::Start);
        }
    }

    #[test]
    fn a_store_that_does_not_answer_keeps_a_healthy_entity_from_its_change_and_no_other() {
        let silent = store(StoreState::Unknown, &[]);
        let HandoverStep::Wait(reason) = next(&probe(), &silent, OwnHealth::Healthy) else {
            panic!("it waits")
        };
        assert!(
            reason.starts_with("data store db does not say whether it is the primary: no answer within 5s"),
            "{reason}"
        );
        for health in [OwnHealth::Unfinished, OwnHealth::Failing] {
            assert_eq!(next(&probe(), &silent, health), HandoverStep::Start);
        }
    }

    #[test]
    fn a_handover_that_fails_is_waited_for_unless_the_entity_fails_already() {
        for health in [OwnHealth::Healthy, OwnHealth::Unfinished] {
            let HandoverStep::Wait(reason) = after_failure(&probe(), "it has no follower", health) else {
                panic!("it waits")
            };
            assert!(reason.contains("is the primary and cannot hand over: it has no follower"), "{reason}");
        }
        assert_eq!(after_failure(&probe(), "", OwnHealth::Failing), HandoverStep::Start);
        assert_eq!(after_failed_keeping(&probe(), "", OwnHealth::Failing), HandoverStep::Start);
        assert!(matches!(after_failed_keeping(&probe(), "", OwnHealth::Healthy), HandoverStep::Wait(_)));
    }

    #[test]
    fn only_who_still_follows_the_former_primary_is_made_to_follow_the_next_one() {
        let after = |upstream| after_handover(upstream, "a:1", "b:1");
        assert_eq!(after(Some("a:1")), ReplicaStep::Follow);
        assert_eq!(after(Some("b:1")), ReplicaStep::Keep);
        // A person has moved it, or made it a primary.
        assert_eq!([after(Some("c:1")), after(None)], [ReplicaStep::Leave; 2]);
    }

    #[test]
    fn the_follower_that_is_least_behind_takes_over() {
        let followers =
            [follower("3", Ok(7)), follower("1", Err("connection refused")), follower("2", Ok(7))];
        assert_eq!(choose(&followers, Some(7)).map(|chosen| &*chosen.id), Ok("2"));
        assert_eq!(
            choose(&followers, Some(6)).unwrap_err(),
            "none of 3 followers can take over: db-3 is 7 behind, db-1: connection refused, db-2 is 7 behind"
        );
        assert_eq!(choose(&followers, None).map(|chosen| &*chosen.id), Ok("2"));
        assert_eq!(choose(&[], None).unwrap_err(), "it has no follower");
        let many: Vec<Follower> = (0..7).map(|id| follower(&id.to_string(), Err("away"))).collect();
        assert!(choose(&many, None).unwrap_err().ends_with("db-4: away, and 2 more"));
    }
}
