use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::instance::InstanceState;
use super::*;
use crate::words::time::Timestamp;

fn addresses(last: &[u8]) -> Addresses {
    let list = last.iter().map(|last| IpAddr::from([10, 0, 0, *last])).collect();
    Addresses(BTreeMap::from([("eth0".parse().unwrap(), list)]))
}

fn instance(node: u8, name: u8, level: InstanceState) -> Instance {
    Instance {
        name: alloc::format!("i{name}").parse().unwrap(),
        node: alloc::format!("n{node}").parse().unwrap(),
        addresses: addresses(&[node]),
        port: Some(80),
        tags: BTreeSet::new(),
        meta: BTreeMap::new(),
        level,
        since: Timestamp::EPOCH,
    }
}

#[test]
fn a_service_that_is_no_longer_registered_stays_known() {
    let (mut catalogue, web) = (Catalogue::default(), "web".parse().unwrap());
    assert!(catalogue.service(&web).is_none());
    catalogue.put(&web, instance(1, 1, InstanceState::Passing));
    catalogue.remove(&web, &"n1".parse().unwrap(), &"i1".parse().unwrap());
    let service = catalogue.service(&web).unwrap();
    assert_eq!((service.addressable(), service.functional()), (0, 0));
}

#[test]
fn a_digest_changes_with_who_serves_and_where_and_with_nothing_else() {
    let (mut catalogue, web): (_, ServiceName) = (Catalogue::default(), "web".parse().unwrap());
    let digest = |catalogue: &Catalogue| catalogue.digest([&web].into_iter());
    let mut seen = vec![digest(&catalogue)];
    catalogue.put(&web, instance(1, 1, InstanceState::Failing { reason: "new".into() }));
    assert_eq!(digest(&catalogue), seen[0], "nobody serves yet");
    catalogue.put(&web, instance(1, 1, InstanceState::Passing));
    seen.push(digest(&catalogue));
    catalogue.put(&web, instance(1, 1, InstanceState::Warning { reason: "slow".into() }));
    assert_eq!(digest(&catalogue), seen[1], "it serves all the same");
    catalogue.put(&"db".parse().unwrap(), instance(1, 1, InstanceState::Passing));
    assert_eq!(digest(&catalogue), seen[1], "another service");
    catalogue.put(&web, Instance { port: Some(81), ..instance(1, 1, InstanceState::Passing) });
    seen.push(digest(&catalogue));
    catalogue.put(&web, instance(2, 1, InstanceState::Passing));
    seen.push(digest(&catalogue));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[test]
fn an_address_names_every_node_that_has_it() {
    let mut catalogue = Catalogue::default();
    let owners = |catalogue: &Catalogue, last: u8| -> Vec<String> {
        catalogue.owners(IpAddr::from([10, 0, 0, last])).map(ToString::to_string).collect()
    };
    let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
    catalogue.set_host(&a, Some(addresses(&[1, 9])));
    catalogue.set_host(&b, Some(addresses(&[2, 9])));
    assert_eq!(
        (owners(&catalogue, 1), owners(&catalogue, 9)),
        (vec!["a".into()], vec!["a".into(), "b".into()])
    );
    catalogue.set_host(&a, Some(addresses(&[3])));
    assert_eq!((owners(&catalogue, 1), owners(&catalogue, 9)), (vec![], vec!["b".into()]));
    catalogue.set_host(&b, None);
    assert_eq!((owners(&catalogue, 2), owners(&catalogue, 9)), (vec![], vec![]));
    assert_eq!(catalogue.hosts().count(), 1);
}

fn level() -> impl Strategy<Value = InstanceState> {
    prop_oneof![
        Just(InstanceState::Passing),
        Just(InstanceState::Warning { reason: "slow".into() }),
        Just(InstanceState::Failing { reason: "down".into() }),
        Just(InstanceState::Unreachable),
    ]
}

proptest! {
    #[test]
    fn counts_are_those_of_the_instances_that_are_there(
        steps in proptest::collection::vec((0..4_u8, 0..3_u8, proptest::option::of(level())), 0..60),
    ) {
        let (mut catalogue, web) = (Catalogue::default(), "web".parse().unwrap());
        catalogue.hear_of(&web);
        for (node, name, level) in steps {
            match level {
                Some(level) => catalogue.put(&web, instance(node, name, level)),
                None => {
                    let Instance { node, name, .. } = instance(node, name, InstanceState::Passing);
                    catalogue.remove(&web, &node, &name);
                }
            }
            let service = catalogue.service(&web).unwrap();
            let all: Vec<&Instance> = service.instances().collect();
            prop_assert_eq!(service.addressable(), all.len());
            prop_assert_eq!(service.functional(), all.iter().filter(|one| one.level.serves()).count());
            for node in 0..4_u8 {
                let here = all.iter().any(|one| one.node.as_str() == alloc::format!("n{node}"));
                prop_assert_eq!(catalogue.registrations(IpAddr::from([10, 0, 0, node])).count(), usize::from(here));
            }
        }
    }
}
