use alloc::string::ToString;

use super::*;
use crate::records::probes::{Shard, StoreFacts, StoreMember};
use crate::words::time::Timestamp;

fn store(state: StoreState, role: ShardRole, offset: u64) -> DataStore {
    let shard = Shard {
        role,
        history: Some("h".into()),
        offset: Some(Amount { amount: offset, unit: "bytes".into() }),
        lag: None,
        upstream: None,
        streaming: None,
    };
    let facts = StoreFacts {
        software: "redis".into(),
        version: Some("7".into()),
        shards: BTreeMap::from([("0".into(), shard)]),
        ..StoreFacts::default()
    };
    DataStore { state, since: Timestamp::from_millis(0), reason: String::new(), facts }
}

fn of(stores: &[Option<DataStore>]) -> StoreSummary {
    without(stores, &[])
}

/// The same, with the agents of some that fell silent just now.
fn without(stores: &[Option<DataStore>], silent: &[usize]) -> StoreSummary {
    let names: Vec<NodeName> =
        (0..stores.len()).map(|index| format!("db-{index}").parse().unwrap()).collect();
    let each = names.iter().zip(stores).enumerate();
    summary(each.map(|(index, (name, store))| (name, store.as_ref(), !silent.contains(&index))))
}

fn up(role: ShardRole, offset: u64) -> Option<DataStore> {
    Some(store(StoreState::Up, role, offset))
}

fn lag(summary: &StoreSummary, node: &str) -> Option<u64> {
    summary.shards["0"].lags.get(&node.parse().unwrap()).map(|lag| lag.amount)
}

#[test]
fn lag_is_computed_from_the_only_primary_of_the_same_history_and_else_absent() {
    let one = of(&[up(ShardRole::Primary, 100), up(ShardRole::Replica, 90), up(ShardRole::Replica, 101)]);
    assert_eq!((lag(&one, "db-1"), lag(&one, "db-2"), one.problems().len()), (Some(10), Some(0), 0));
    let two = of(&[up(ShardRole::Primary, 100), up(ShardRole::Primary, 90), up(ShardRole::Replica, 1)]);
    assert_eq!(
        (lag(&two, "db-2"), two.problems()),
        (None, ["shard 0 has 2 primaries: db-0, db-1".to_string()].into())
    );
    let none = of(&[up(ShardRole::Replica, 100), up(ShardRole::Vacant, 90)]);
    assert_eq!(
        (lag(&none, "db-0"), none.problems()),
        (None, ["shard 0 has no primary; up without a role: db-1".to_string()].into())
    );
    let mut other = store(StoreState::Up, ShardRole::Replica, 1);
    other.facts.shards.get_mut("0").unwrap().history = Some("another".into());
    assert_eq!(lag(&of(&[up(ShardRole::Primary, 100), Some(other)]), "db-1"), None);
    let mut other = store(StoreState::Up, ShardRole::Replica, 1);
    other.facts.shards.get_mut("0").unwrap().offset = Some(Amount { amount: 1, unit: "entries".into() });
    assert_eq!(lag(&of(&[up(ShardRole::Primary, 100), Some(other)]), "db-1"), None);
    let mut own = store(StoreState::Up, ShardRole::Replica, 1);
    own.facts.shards.get_mut("0").unwrap().lag = Some(Amount { amount: 3, unit: "s".into() });
    assert_eq!(lag(&of(&[up(ShardRole::Primary, 100), Some(own)]), "db-1"), Some(3));
}

#[test]
fn what_an_agent_reported_before_it_fell_silent_makes_neither_two_primaries_nor_none() {
    let stores = [up(ShardRole::Primary, 9), up(ShardRole::Replica, 9), up(ShardRole::Replica, 9)];
    assert!(without(&stores, &[0]).problems().is_empty(), "a short interruption changes nothing");
    assert!(without(&stores, &[1, 2]).problems().is_empty());
    // Another one was promoted, and the former primary was not heard of since.
    let two = [up(ShardRole::Primary, 9), up(ShardRole::Primary, 9), up(ShardRole::Replica, 9)];
    assert_eq!(of(&two).conditions().len(), 1);
    let heard = without(&two, &[0]);
    assert_eq!((heard.problems().len(), heard.shards["0"].primaries.len()), (0, 1));
    assert!(heard.shards["0"].primaries.contains(&"db-1".parse().unwrap()));
    let kinds = |summary: StoreSummary| {
        summary.conditions().into_iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(without(&two, &[0, 1])), ["primary_unknown"], "either may be");
    // The former primary says that it is none, and who was promoted has not been heard of since.
    let none = [up(ShardRole::Replica, 9), up(ShardRole::Replica, 9)];
    assert_eq!(kinds(of(&none)), ["no_primary"]);
    assert_eq!(kinds(without(&none, &[1])), ["primary_unknown"]);
}

#[test]
fn a_replica_of_a_replica_is_named_with_what_it_replicates_from() {
    let primary = |replicas: &[&str]| {
        let mut store = store(StoreState::Up, ShardRole::Primary, 9);
        store.facts.member_id = Some("run-1".into());
        let member =
            |address: &&str| StoreMember { address: Some(address.to_string()), ..StoreMember::default() };
        store.facts.members = Some(replicas.iter().map(|of| (of.to_string(), member(of))).collect());
        Some(store)
    };
    let replica = |state, upstream: &str| {
        let mut store = store(state, ShardRole::Replica, 9);
        store.facts.shards.get_mut("0").unwrap().upstream = Some(upstream.into());
        Some(store)
    };
    let up = |upstream| replica(StoreState::Up, upstream);
    let chained = of(&[primary(&["b:1"]), up("a:1"), up("b:1")]);
    assert_eq!(chained.problems(), ["db-2 replicates from b:1, a replica of the primary db-0"]);
    let kinds: Vec<_> = chained.conditions().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [crate::records::cluster_view::ConditionKind::UpstreamNotPrimary]);
    // Each of the primary, also under another name; one that is down replicates from nothing; nobody is its own follower.
    assert!(of(&[primary(&["b:1", "c:1"]), up("a:1"), up("name-of-a:1")]).problems().is_empty());
    assert_eq!(of(&[primary(&["b:1"]), up("a:1"), replica(StoreState::Down, "b:1")]).problems(), [""; 0]);
    let mut all = primary(&["a:1", "b:1"]);
    all.as_mut().unwrap().facts.member_id = Some("a:1".into());
    assert!(of(&[all.clone(), up("a:1")]).problems().is_empty());
    all.as_mut().unwrap().facts.member_id = None;
    assert!(of(&[all, up("a:1")]).problems().is_empty(), "it may be its own address");
    // Of two primaries it is not known whose replicas they should be.
    let two = of(&[primary(&["c:1"]), primary(&["b:1"]), up("c:1")]);
    assert_eq!(two.problems()[1..], ["shard 0 has 2 primaries: db-0, db-1"]);
}

#[test]
fn a_primary_that_nobody_sees_is_the_last_one_and_a_dead_one_is_none() {
    let unseen =
        of(&[Some(store(StoreState::Unknown, ShardRole::Primary, 1)), up(ShardRole::Replica, 1), None]);
    assert_eq!((unseen.up, unseen.unknown, unseen.missing), (1, 1, 1));
    let said = unseen.problems();
    assert_eq!(said, ["no primary of shard 0 is known; it was last db-0", "no probe of this name on db-2"]);
    let mut never = store(StoreState::Down, ShardRole::Replica, 1);
    (never.facts.version, never.facts.shards) = (None, BTreeMap::new());
    let never = of(&[up(ShardRole::Primary, 1), Some(never)]);
    assert_eq!(
        (never.versions.len(), never.problems().len()),
        (1, 0),
        "it never answered: its version is not another one"
    );
    let dead = of(&[Some(store(StoreState::Down, ShardRole::Primary, 1)), up(ShardRole::Replica, 1)]);
    assert_eq!(dead.problems(), ["shard 0 has no primary"]);
}

#[test]
fn an_opinion_about_another_member_is_compared_and_not_believed() {
    let seeing = |ids: &[&str], connected: bool| {
        let mut store = store(StoreState::Up, ShardRole::Replica, 1);
        let member = StoreMember { votes: true, connected: Some(connected), ..StoreMember::default() };
        store.facts.members = Some(ids.iter().map(|id| (id.to_string(), member.clone())).collect());
        Some(store)
    };
    let agreed = of(&[up(ShardRole::Primary, 1), seeing(&["a", "b"], true), seeing(&["a", "b"], false)]);
    assert_eq!((agreed.agreement, agreed.up, agreed.down), (Agreement::Agreed, 3, 0));
    let differs = of(&[up(ShardRole::Primary, 1), seeing(&["a", "b"], true), seeing(&["a"], true)]);
    assert_eq!(differs.agreement, Agreement::Differs);
    assert_eq!(differs.problems(), ["stores differ on who is a member: db-1 unlike db-2"]);
    let most =
        of(&[up(ShardRole::Primary, 1), seeing(&["a"], true), seeing(&["b"], true), seeing(&["a"], true)]);
    assert_eq!(most.problems(), ["stores differ on who is a member: 2 stores unlike db-2"]);
    assert_eq!(of(&[up(ShardRole::Primary, 1)]).agreement, Agreement::None);
}

#[test]
fn stores_that_are_not_as_most_are_named_and_at_most_eight_of_them() {
    let of_version = |version: &str, role| {
        let mut store = store(StoreState::Up, role, 1);
        (store.facts.version, store.facts.cluster_id) = (Some(version.into()), Some(version.into()));
        Some(store)
    };
    let (primary, replica) = (ShardRole::Primary, ShardRole::Replica);
    let mixed = of(&[of_version("7", primary), of_version("6", replica), of_version("7", replica)]);
    assert_eq!(
        mixed.problems(),
        [
            "versions are mixed: redis 6 (1: db-1), redis 7 (2)",
            "stores belong to 2 clusters: 6 (1: db-1), 7 (2)"
        ]
    );
    let tied = of(&[of_version("7", primary), of_version("6", replica)]);
    assert_eq!(tied.problems()[0], "versions are mixed: redis 6 (1: db-1), redis 7 (1: db-0)");
    let many = (0..30).map(|index| of_version(if index < 10 { "6" } else { "7" }, replica));
    let many = of(&many.collect::<Vec<_>>()).problems();
    let text = "versions are mixed: redis 6 (10: db-0, db-1, db-2, db-3, db-4, db-5, db-6, db-7 and 2 more), redis 7 (20)";
    assert_eq!(many[0], text);
}
