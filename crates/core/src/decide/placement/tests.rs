use std::string::ToString;
use std::vec::Vec;

use super::*;

fn place(domain: &str) -> CandidateNode {
    CandidateNode { domain: Some(domain.to_string()), matches: true, ..CandidateNode::default() }
}

fn places(all: &[(&str, &str)]) -> CandidateNodes {
    all.iter().map(|(name, domain)| (name.parse().unwrap(), place(domain))).collect()
}

#[test]
fn a_quorum_grows_with_its_nodes_and_never_shrinks_by_itself() {
    let wanted = |nodes, members| EnsembleSize::Quorum.wanted(nodes, members);
    let sizes = [1, 2, 3, 20, 21, 100, 101].map(|nodes| wanted(nodes, 0));
    assert_eq!(sizes, [1, 1, 3, 3, 5, 5, 7]);
    assert_eq!(wanted(2, 5), 5, "nodes that are gone take no member away");
    assert_eq!(EnsembleSize::Number(1).wanted(9, 5), 1, "a person does");
}

#[test]
fn members_are_spread_over_domains_and_stay_off_nodes_that_may_have_none() {
    let mut places = places(&[("n-1", "a"), ("n-2", "a"), ("n-3", "b"), ("n-4", "c")]);
    let mut chosen: Vec<NodeName> = Vec::new();
    for _ in 0..4 {
        let numbers = (1..).map(MemberNumber::new);
        let placed: Placed<'_> = numbers.zip(&chosen).collect();
        let next = next_node("db", &places, &placed).unwrap().clone();
        chosen.push(next);
    }
    let domain = |node: &NodeName| places[node].domain.clone().unwrap();
    let mut first: Vec<_> = chosen[..3].iter().map(domain).collect();
    first.sort();
    assert_eq!(first, ["a", "b", "c"], "{chosen:?}");
    let none = Placed::new();
    for name in chosen {
        assert!(next_node("db", &places, &none).is_some());
        places.get_mut(&name).unwrap().refusal = Some("it is unreachable".to_string());
    }
    assert_eq!(next_node("db", &places, &none), None);
}

#[test]
fn the_one_that_takes_the_place_of_a_member_that_is_to_leave_may_have_its_domain() {
    for ensemble in ["db", "store", "cache", "web"] {
        let mut places =
            places(&[("n-1", "a"), ("n-2", "b"), ("n-3", "c"), ("n-4", "a"), ("n-5", "b"), ("n-6", "c")]);
        let names: Vec<NodeName> = places.keys().take(3).cloned().collect();
        let placed: Placed<'_> = (1..).map(MemberNumber::new).zip(&names).collect();
        places.get_mut(&names[1]).unwrap().is_drained = true;
        assert_eq!(next_node(ensemble, &places, &placed).unwrap().as_str(), "n-5", "{ensemble}");
    }
}

#[test]
fn ensembles_do_not_prefer_the_same_node() {
    let places = places(&[("n-1", "a"), ("n-2", "a"), ("n-3", "a"), ("n-4", "a")]);
    let first = |number: u32| next_node(&std::format!("db-{number}"), &places, &Placed::new()).cloned();
    let different: std::collections::BTreeSet<_> = (0..64).map(first).collect();
    assert_eq!(different.len(), 4);
}

#[test]
fn who_leaves_is_drained_first_then_from_the_fullest_domain_then_the_newest() {
    let mut places = places(&[("n-1", "a"), ("n-2", "a"), ("n-3", "b"), ("n-4", "b")]);
    let names: Vec<NodeName> = places.keys().cloned().collect();
    let placed: Placed<'_> = (1..).map(MemberNumber::new).zip(&names).collect();
    assert_eq!(surplus(&places, &placed), Some(MemberNumber::new(4)));
    let three: Placed<'_> = placed.iter().take(3).map(|(number, node)| (*number, *node)).collect();
    assert_eq!(surplus(&places, &three), Some(MemberNumber::new(2)));
    places.get_mut(&names[0]).unwrap().is_drained = true;
    assert_eq!(surplus(&places, &placed), Some(MemberNumber::new(1)));
    assert_eq!(surplus(&places, &Placed::new()), None);
}
