//! What follows from an outage of several members, and what does not.

use std::vec::Vec;

use super::model::Installation;
use crate::records::ensemble::EnsembleSize;
use crate::words::name::NodeName;

/// Three voters on these nodes, of which the last two are not heard of for long: the first cannot serve.
fn without_two() -> (Installation, Vec<NodeName>) {
    let mut installation = Installation::new(5, EnsembleSize::Number(3));
    installation.settle();
    let nodes: Vec<_> = installation.members.members.values().map(|member| member.node.clone()).collect();
    nodes.iter().skip(1).for_each(|node| installation.cut_node(node, true));
    installation.pass(200);
    (installation, nodes)
}

#[test]
fn one_that_is_back_later_than_the_quorum_gets_its_time_from_then_on() {
    let (mut installation, nodes) = without_two();
    let before = installation.members.members.clone();
    installation.cut_node(&nodes[1], false);
    installation.pass(20);
    assert_eq!(installation.members.members, before, "the third may be back, too");
    installation.pass(100);
    assert!(
        !installation
            .members
            .members
            .values()
            .any(|member| member.node == nodes[2] && member.phase.as_str() == "voting")
    );
}

#[test]
fn what_was_reported_before_an_outage_is_no_sign_that_a_quorum_worked_meanwhile() {
    let (mut installation, nodes) = without_two();
    let before = installation.members.members.clone();
    // Two agents are heard of again, and have not said yet what their members do now; the third member ran alone, and could not serve.
    nodes.iter().skip(1).for_each(|node| installation.cut_node(node, false));
    installation.control();
    assert_eq!(installation.members.members, before);
    installation.pass(100);
    assert_eq!(installation.members.members, before);
}
