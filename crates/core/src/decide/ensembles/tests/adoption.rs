use std::vec::Vec;

use proptest::prelude::*;

use super::model::foreign::ForeignAct;
use super::model::{Act, Installation};
use super::{acts, is_taken};
use crate::decide::ensembles::EnsembleStep;
use crate::decide::placement::quorum::{QuorumStep, QuorumWait};
use crate::records::ensemble::{EnsembleMode, EnsembleSize};
use crate::records::ensemble_members::MemberPhase;

/// Members of the ensemble that vote, as it is recorded.
fn voting(installation: &Installation) -> usize {
    let members = installation.members.members.values();
    members.filter(|member| member.phase == MemberPhase::Voting).count()
}

/// One of three beside a store of three.
fn settled(nodes: usize) -> Installation {
    let mut installation = Installation::adopting(nodes, 3, EnsembleSize::Number(3));
    installation.settle();
    assert_eq!((voting(&installation), installation.store.voters()), (3, 6), "{installation:?}");
    installation
}

#[test]
fn a_store_that_is_there_is_joined_by_one_after_the_other_and_never_founded_again() {
    let mut installation = settled(5);
    let foreign = installation.foreign_ids();
    assert_eq!((installation.bootstraps, foreign.len()), (0, 3));
    installation.pass(10_000);
    assert_eq!(installation.foreign_ids(), foreign, "nobody asked");
    for id in foreign {
        installation.ask_for(&id);
        installation.settle();
    }
    assert_eq!((installation.store.working(), installation.store.voters()), (3, 3));
    assert_eq!(installation.decide().members, installation.members);
}

/// Who gives the store back adds members of his own: an ensemble that did not know them could be deleted, and take the quorum away.
#[test]
fn who_is_in_the_store_is_known_also_while_the_ensemble_is_not_managed() {
    let mut installation = Installation::adopting(3, 1, EnsembleSize::Number(1));
    installation.settle();
    installation.ensemble.mode = EnsembleMode::Unmanaged;
    installation.foreign(ForeignAct::AddByHand, 0);
    installation.pass(20);
    let known: Vec<_> =
        installation.members.adoption.iter().flat_map(|of| of.foreign.keys().cloned()).collect();
    assert_eq!(known, installation.foreign_ids());
    assert_eq!(known.len(), 2);
}

#[test]
fn without_a_list_of_the_store_nobody_joins_it() {
    let mut installation = Installation::adopting(3, 1, EnsembleSize::Number(3));
    installation.foreign(ForeignAct::Stop, 0);
    installation.pass(30);
    let phases: Vec<_> = installation.members.members.values().map(|member| member.phase.as_str()).collect();
    assert_eq!((phases, installation.store.voters()), (Vec::from(["preparing"]), 1));
    installation.foreign(ForeignAct::Start, 0);
    installation.settle();
    assert_eq!((voting(&installation), installation.bootstraps), (3, 0));
}

#[test]
fn a_foreign_member_that_is_gone_keeps_others_from_joining_until_a_person_removes_it() {
    let mut installation = Installation::adopting(4, 3, EnsembleSize::Number(1));
    installation.settle();
    installation.foreign(ForeignAct::Lose, 1);
    installation.ensemble.size = EnsembleSize::Number(3);
    installation.pass(10_000);
    assert_eq!((voting(&installation), installation.store.voters()), (1, 4));
    assert_eq!(installation.decide().step, EnsembleStep::Quorum(QuorumStep::Wait(QuorumWait::Others)));
    // The person is there in settle.
    installation.settle();
    assert_eq!((voting(&installation), installation.store.voters()), (3, 5));
}

#[test]
fn one_that_is_gone_before_anybody_has_joined_is_removed_through_another_one() {
    let mut installation = Installation::adopting(4, 3, EnsembleSize::Number(3));
    installation.foreign(ForeignAct::Lose, 1);
    installation.pass(20);
    assert_eq!(installation.store.voters(), 3);
    installation.settle();
    assert_eq!((voting(&installation), installation.store.voters()), (3, 5));
}

#[test]
fn the_last_foreign_member_is_not_removed_while_it_alone_works() {
    let mut installation = Installation::adopting(3, 1, EnsembleSize::Number(1));
    installation.pass(1);
    installation.settle();
    let node = installation.members.members.values().map(|member| member.node.clone()).next().unwrap();
    installation.cut_node(&node, true);
    let id = installation.foreign_ids().remove(0);
    installation.ask_for(&id);
    installation.pass(5);
    assert_eq!(installation.store.voters(), 2);
    installation.cut_node(&node, false);
    installation.settle();
    assert_eq!((voting(&installation), installation.store.voters()), (1, 1));
}

#[test]
fn the_only_member_of_the_ensemble_that_is_lost_is_replaced_by_one_that_removes_it_first() {
    for is_cut in [true, false] {
        let mut installation = Installation::adopting(3, 3, EnsembleSize::Number(1));
        installation.settle();
        let node = installation.members.members.values().map(|member| member.node.clone()).next().unwrap();
        let host = (0..3).find(|host| installation.name(*host) == node).unwrap();
        installation.act(&Act::Wipe(host));
        installation.cut_node(&node, is_cut);
        installation.pass(300);
        installation.cut_node(&node, false);
        installation.settle();
        assert_eq!((voting(&installation), installation.store.voters()), (1, 4), "{installation:?}");
        assert!(installation.members.members.values().all(|member| member.node != node));
    }
}

fn foreign_acts() -> impl Strategy<Value = Vec<Act>> {
    let of = prop_oneof![
        3 => Just(ForeignAct::Stop),
        4 => Just(ForeignAct::Start),
        1 => Just(ForeignAct::Lose),
        1 => Just(ForeignAct::RemoveByHand),
        1 => Just(ForeignAct::AddByHand),
        3 => Just(ForeignAct::Ask),
    ];
    let of = (of, 0_usize..4, any::<prop::sample::Index>());
    (acts(), prop::collection::vec(of, 0..20)).prop_map(|(mut acts, foreign)| {
        for (act, which, at) in foreign {
            let at = at.index(acts.len() + 1);
            acts.insert(at, Act::Foreign(act, which));
        }
        acts
    })
}

proptest! {
    /// Beside members that something else runs, which come, go, die and are removed by hand: no store is founded, no foreign member is removed
    /// unless a person asked, quorum is lost by no hand of ours, and once all is well all members are there and nothing is written any more.
    #[test]
    fn histories_beside_foreign_members_keep_the_quorum_and_come_to_rest(
        nodes in 1_usize..7, foreign in 1_usize..4, acts in foreign_acts()
    ) {
        let mut installation = Installation::adopting(nodes, foreign, EnsembleSize::Number(3));
        for act in &acts {
            installation.act(act);
        }
        if installation.is_lost() {
            let is_foreign = |act: &Act| matches!(act, Act::Foreign(ForeignAct::Lose, _));
            let is_taken = |act: &Act| is_taken(act) || is_foreign(act);
            prop_assert!(acts.iter().any(is_taken), "it is lost by our own hand: {:?}", installation);
            return Ok(());
        }
        installation.mend();
        installation.settle();
        prop_assert_eq!(installation.bootstraps, 0);
        let (wanted, foreign) = (installation.wanted(), installation.foreign_ids().len());
        prop_assert_eq!(installation.store.working(), wanted + foreign, "{:?}", installation);
        prop_assert_eq!(installation.decide().members, installation.members, "at rest nothing is written");
    }
}
