use super::*;

#[test]
fn a_manager_has_one_host_that_is_replaced_when_it_was_unreachable_for_the_grace() {
    let mut setup = Setup::three_nodes();
    setup.cluster("db", 1, "role=db", 0);
    setup.manager("db");
    setup.settle();
    assert_eq!(setup.host("db"), None, "no node can host it");
    for name in ["db-1", "db-2"] {
        setup.offers(name, true);
    }
    setup.settle();
    let first = String::from(setup.host("db").unwrap());
    let content = |setup: &Setup, node: &str| setup.fleet().contents.get(&node.parse().unwrap()).cloned();
    let hosting = content(&setup, &first).unwrap().hosts;
    let lease = hosting.get(&"db-manager".parse().unwrap()).unwrap().lease;
    assert_eq!(lease, Span::from_secs(60));
    // A host that never begins is replaced after the same time.
    setup.now = at(1_059);
    setup.settle();
    assert_eq!(setup.host("db"), Some(first.as_str()));
    setup.presence("db-manager", PresenceState::Up);
    setup.presence(&first, PresenceState::Unreachable);
    setup.now = at(5_000);
    setup.settle();
    assert_eq!(setup.host("db"), Some(first.as_str()), "what counts is the manager's own contact");
    setup.presence("db-manager", PresenceState::Unreachable);
    setup.now = at(5_059);
    setup.settle();
    assert_eq!(setup.host("db"), Some(first.as_str()));
    setup.now = at(5_060);
    setup.settle();
    let second = String::from(setup.host("db").unwrap());
    assert_ne!(second, first);
    assert!(content(&setup, &first).unwrap().hosts.is_empty());
    assert_eq!(content(&setup, &second).unwrap().hosts.len(), 1);
    // The new host has as long to begin, though the manager was unreachable before.
    setup.offers("db-3", true);
    setup.now = at(5_119);
    setup.settle();
    assert_eq!(setup.host("db"), Some(second.as_str()));
}

#[test]
fn a_host_that_may_not_know_of_a_shorter_grace_has_the_lease_that_it_was_told() {
    let mut setup = Setup::three_nodes();
    setup.cluster("db", 1, "role=db", 0);
    setup.manager("db");
    setup.offers("db-1", true);
    setup.settle();
    setup.offers("db-2", true);
    setup.presence("db-manager", PresenceState::Up);
    let mut cluster = (*setup.fleet().clusters.get(&"db".parse().unwrap()).unwrap().value).clone();
    cluster.grace = Span::from_secs(4);
    setup.put(Record::Cluster(cluster));
    setup.presence("db-manager", PresenceState::Unreachable);
    setup.now = at(1_059);
    setup.settle();
    assert_eq!(setup.host("db"), Some("db-1"));
    setup.now = at(1_060);
    setup.settle();
    assert_eq!(setup.host("db"), Some("db-2"));
    let roles = setup.fleet().roles_of(&"db".parse().unwrap()).unwrap();
    assert_eq!(roles.lease, Span::from_secs(4), "the next host is told the shorter one");
}

/// A cluster whose manager `db-1` hosts, with a lease of 60 s, and nobody else may host.
fn hosted_by_db_1() -> Setup {
    let mut setup = Setup::three_nodes();
    setup.cluster("db", 1, "role=db", 0);
    setup.manager("db");
    setup.offers("db-1", true);
    setup.settle();
    setup.presence("db-manager", PresenceState::Up);
    assert_eq!(setup.host("db"), Some("db-1"));
    setup
}

#[test]
fn a_host_that_is_decommissioned_is_replaced_when_its_lease_is_over_and_not_before() {
    let mut setup = hosted_by_db_1();
    setup.offers("db-2", true);
    let mut cluster = (*setup.fleet().clusters.get(&"db".parse().unwrap()).unwrap().value).clone();
    cluster.grace = Span::from_secs(600);
    setup.put(Record::Cluster(cluster));
    setup.settle();
    setup.node("db-1", "db", false, true);
    assert_eq!(setup.fleet().hosts_still(&"db-1".parse().unwrap()), Some(&"db".parse().unwrap()));
    setup.settle();
    assert_eq!(setup.fleet().hosts_still(&"db-1".parse().unwrap()), None);
    assert_eq!(setup.host("db"), Some("db-1"), "the servers' last word to it is as old as its decommission");
    // What it had said before comes late: that it is there does not count.
    setup.presence("db-manager", PresenceState::Up);
    let wake = decide(setup.fleet(), setup.settled, setup.now).wake;
    assert_eq!(wake, Some(at(1_060)));
    setup.now = at(1_059);
    setup.settle();
    assert_eq!(setup.host("db"), Some("db-1"));
    setup.now = at(1_060);
    setup.settle();
    assert_eq!(setup.host("db"), Some("db-2"));
    assert!(setup.events.last().unwrap().contains("db-1 was decommissioned"), "{:?}", setup.events);
    let roles = setup.fleet().roles_of(&"db".parse().unwrap()).unwrap();
    assert_eq!((roles.lease, roles.host_until), (Span::from_secs(600), None), "the next host has its own");
}

#[test]
fn a_node_that_joins_under_the_name_of_a_decommissioned_host_is_not_taken_for_it() {
    let mut setup = hosted_by_db_1();
    let (manager, name) = ("db-manager".parse().unwrap(), "db-1".parse().unwrap());
    assert!(setup.fleet().is_hosted_by(&manager, &name));
    setup.node("db-1", "db", false, true);
    setup.settle();
    setup.node("db-1", "db", false, false);
    setup.offers("db-1", true);
    setup.presence("db-1", PresenceState::Up);
    setup.settle();
    let hosts = |setup: &Setup| setup.fleet().contents.get(&name).is_some_and(|it| !it.hosts.is_empty());
    assert!(
        !hosts(&setup) && !setup.fleet().is_hosted_by(&manager, &name),
        "the former one may run it still"
    );
    let before = setup.fleet().roles_of(&"db".parse().unwrap()).unwrap().fence;
    setup.now = at(1_060);
    setup.settle();
    assert!(hosts(&setup) && setup.fleet().is_hosted_by(&manager, &name));
    assert!(setup.fleet().roles_of(&"db".parse().unwrap()).unwrap().fence > before, "it begins anew");
}

#[test]
fn a_host_that_was_away_before_it_is_decommissioned_is_replaced_no_later_than_without() {
    let mut setup = hosted_by_db_1();
    setup.presence("db-manager", PresenceState::Unreachable);
    setup.presence("db-1", PresenceState::Unreachable);
    setup.settle();
    setup.now = at(1_040);
    setup.node("db-1", "db", false, true);
    setup.settle();
    setup.offers("db-2", true);
    setup.now = at(1_060);
    setup.settle();
    assert_eq!(setup.host("db"), Some("db-2"));
}
