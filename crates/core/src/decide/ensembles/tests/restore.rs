use std::vec::Vec;

use super::model::Installation;
use crate::records::ensemble::EnsembleSize;
use crate::records::ensemble_restore::RestoreSource;

/// An ensemble that is to be founded from a snapshot on the node of this number.
fn restored(node: usize) -> Installation {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    let source = RestoreSource { node: installation.name(node), snapshot: "old-1f-1-2a".parse().unwrap() };
    installation.members.restore = Some(source);
    installation
}

#[test]
fn the_first_member_is_on_the_node_with_the_snapshot_and_alone_gets_its_data_from_it() {
    for node in 0..4 {
        let mut installation = restored(node);
        installation.pass(1);
        let of: Vec<_> = installation.members.orders().collect();
        assert_eq!(of.len(), 1);
        assert!(of.iter().all(|(name, order)| **name == installation.name(node) && order.restore.is_some()));
        installation.settle();
        assert_eq!((installation.store.working(), installation.bootstraps), (3, 1));
        assert!(installation.members.of_node(&installation.name(node)).is_some());
        assert!(installation.members.orders().all(|(_, order)| order.restore.is_none()));
    }
}

#[test]
fn without_the_node_with_the_snapshot_nobody_founds_it() {
    let mut installation = restored(2);
    let name = installation.name(2);
    installation.pass(1);
    installation.cut_node(&name, true);
    installation.pass(500);
    assert_eq!(installation.bootstraps, 0, "another one would begin without data");
    installation.cut_node(&name, false);
    installation.settle();
    assert_eq!((installation.store.working(), installation.bootstraps), (3, 1));
}
