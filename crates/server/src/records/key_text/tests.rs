use super::*;

#[test]
fn every_key_reads_back_as_itself() {
    let ns = Namespace::parse("default").unwrap();
    let (node, entity) = (NodeName::parse("web-1").unwrap(), EntityName::parse("web").unwrap());
    let keys = [
        Key::Node(node.clone()),
        Key::NodeParams(node.clone()),
        Key::Facts(node.clone()),
        Key::Probes(node.clone()),
        Key::NodeMembers(node.clone()),
        Key::Presence(node.clone()),
        Key::Report(node.clone()),
        Key::Expected(node.clone()),
        Key::Order(node.clone()),
        Key::Registrations(node.clone()),
        Key::Service("web".parse().unwrap()),
        Key::WaitCycles,
        Key::Log(node, "configure".parse().unwrap(), entity.clone()),
        Key::Entity(entity.clone()),
        Key::Progress(entity.clone()),
        Key::Rollout(entity.clone(), RolloutNumber::new(7)),
        Key::Target(entity.clone(), TargetName::parse("rack/web-1").unwrap()),
        Key::ExternalTarget(entity.clone(), TargetName::parse("rack/web-1").unwrap()),
        Key::Controllers(entity),
        Key::Profile("web".parse().unwrap()),
        Key::ProfileRevision("web".parse().unwrap(), ProfileRevisionNumber::new(7)),
        Key::HookAnswers("web".parse().unwrap()),
        Key::Freeze("holidays".parse().unwrap()),
        Key::Definition(DefinitionId::Task("install".parse().unwrap())),
        Key::Definition(DefinitionId::Stage("install".parse().unwrap())),
        Key::Definition(DefinitionId::Workflow("install".parse().unwrap())),
        Key::Run("install-7".parse().unwrap()),
        Key::Cluster("db".parse().unwrap()),
        Key::ClusterRoles("db".parse().unwrap()),
        Key::ClusterView("db".parse().unwrap()),
        Key::ClusterDiscovery("db".parse().unwrap()),
        Key::Ensemble("store".parse().unwrap()),
        Key::EnsembleMembers("store".parse().unwrap()),
        Key::Jobs("install-7".parse().unwrap(), "web-1".parse().unwrap()),
        Key::TaskList("install-7".parse().unwrap(), "web-1".parse().unwrap()),
        Key::NotRunnable("web-1".parse().unwrap()),
        Key::Schedule("nightly".parse().unwrap()),
        Key::Reaction("nightly".parse().unwrap()),
        Key::Sink("audit".parse().unwrap()),
        Key::SinkState("audit".parse().unwrap()),
        Key::Filter("old".parse().unwrap()),
        Key::Param("cluster/leader-count".parse().unwrap()),
        Key::Pause("disks".parse().unwrap()),
        Key::Secret("db/password".parse().unwrap()),
        Key::Slot("reboot".parse().unwrap()),
        Key::Event(Sequence::new(42)),
    ];
    for key in keys {
        assert_eq!(read(&of(&ns, &key)), Some(KeyLocation::Namespaced(ns.clone(), key)));
    }
    assert_eq!(read(&sequence(&ns)), Some(KeyLocation::Aside));
    assert_eq!(read(b"/somebody/else"), None);
}

#[test]
fn every_key_of_the_installation_reads_back_as_itself() {
    let global = [
        GlobalKey::Freeze("holidays".parse().unwrap()),
        GlobalKey::Server("cp-1".parse().unwrap()),
        GlobalKey::Leader,
        GlobalKey::Token("abc".to_owned()),
        GlobalKey::JoinToken("abc".to_owned()),
        GlobalKey::Role("deployer".parse().unwrap()),
        GlobalKey::Authorities,
    ];
    for key in global {
        assert_eq!(read(&super::global(&key)), Some(KeyLocation::Global(key)));
    }
}

#[test]
fn stretches_hold_every_key_once_whatever_namespaces_are_known() {
    let [known, default, unknown] = ["a", "default", "z"].map(|name| Namespace::parse(name).unwrap());
    let ranges = ranges([&known].into_iter());
    let node = Key::Node("web-1".parse().unwrap());
    let keys = [of(&known, &node), of(&default, &node), of(&unknown, &node), META.into()];
    let all = Range::prefix(ROOT);
    for key in keys.into_iter().chain([all.start, sequence(&unknown), server(&"s".parse().unwrap())]) {
        assert_eq!(ranges.iter().filter(|range| range.contains(&key)).count(), 1, "{key:?}");
    }
    let ends = ranges.iter().map(|range| &range.end);
    assert!(ends.zip(ranges.iter().skip(1)).all(|(end, next)| *end == next.start), "nothing between");
    assert!(ranges.iter().all(|range| !range.is_empty()), "in the order of keys");
    assert!(ranges.contains(&events(&known)) && ranges.contains(&events(&default)));
}

#[test]
fn events_are_kept_in_the_order_of_their_numbers() {
    let ns = Namespace::parse("default").unwrap();
    let range = events_after(&ns, Sequence::new(9));
    let ten = of(&ns, &Key::Event(Sequence::new(10)));
    assert!(ten >= range.start && ten < range.end);
    assert!(of(&ns, &Key::Event(Sequence::new(9))) < range.start);
}
