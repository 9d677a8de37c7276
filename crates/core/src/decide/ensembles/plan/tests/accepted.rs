//! What is recorded of an ensemble once a person accepts what there is, or it is known to be what is recorded.

use std::collections::BTreeSet;

use super::restored::{EPOCH, Restored, members_of, redis};
use super::*;
use crate::decide::ensembles::accepted::{accept, choice_of_primary, found, may_be_recorded, nobody_there};
use crate::decide::ensembles::restored::{Evidence, evidence, line};
use crate::records::ensemble_members::RemovalReason;
use crate::records::member::{MemberStart, MemberTask, NAMESAKE};
use crate::records::primary::Promotion;

/// The primary that is recorded is the primary of another history, and others follow it in that: they go on so, and none of them was started anew.
#[test]
fn a_primary_that_is_accepted_goes_on_with_the_history_that_it_has() {
    let mut restored = Restored::new(redis());
    restored.is(1, "h9", None);
    assert!(matches!(restored.evidence(), Evidence::Other(_)));
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    assert_eq!(members.lead.history.as_deref(), Some("h9"));
    assert!(!members.is_held(EPOCH));
}

/// Another backup may have been restored meanwhile, after which numbers were given as well.
#[test]
fn numbers_that_were_given_after_another_restore_are_not_given_again() {
    let restored = Restored::new(store(EnsembleSize::Number(3)));
    let at = |seconds: u64| {
        let began = NOW.as_millis() + seconds * 1_000;
        Epoch::new(began * Epoch::PER_MILLI)
    };
    let resumed = |epoch, highest| {
        let mut members = restored.members.clone();
        members.resume(epoch, MemberNumber::new(highest));
        members.last.get()
    };
    assert_eq!(resumed(at(0), 0), 103);
    assert_eq!(resumed(at(3_600), 0), 3_703, "as many as seconds may have been given after a restore before");
    assert_eq!(resumed(at(0), 777), 777, "one that is heard of is known");
}

/// The store says who its members are, and their nodes that they have them: nothing is lost by recording them.
#[test]
fn later_members_that_the_store_has_are_recorded_once_a_person_accepts_that() {
    let mut restored = Restored::new(store(EnsembleSize::Number(3)));
    // Member 1 is still there; 2 and 3 were replaced, on node 4 and on node 3.
    restored.lists_named(1, &[("id-1", "store-1"), ("id-5", "store-5"), ("id-6", "store-6")]);
    restored.has_unrecorded(4, 5);
    let refused = MemberReport {
        later: Some(MemberNumber::new(6)),
        ..report(&restored.members, MemberNumber::new(3), MemberState::Refused)
    };
    restored.site.tell(&restored.members, 3, refused);
    restored.is_left_alone();
    let numbers: Vec<u64> =
        found(restored.fleet(), &restored.members).iter().map(|of| of.number.get()).collect();
    assert_eq!(numbers, [5, 6]);
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    let of = |number: u64| {
        let member = members.members.get(&MemberNumber::new(number)).unwrap();
        (member.node.clone(), member.phase.clone(), member.store_id.clone().unwrap())
    };
    assert_eq!(of(5), (name(4), MemberPhase::Voting, "id-5".to_string()));
    assert_eq!(of(6), (name(3), MemberPhase::Voting, "id-6".to_string()));
    let numbers: Vec<u64> = members.members.keys().map(|number| number.get()).collect();
    assert_eq!(numbers, [1, 2, 5, 6]);
    let gone = members.members.get(&MemberNumber::new(2)).unwrap();
    assert_eq!(gone.phase, MemberPhase::Removed(RemovalReason::NotCounted), "the store does not have it");
    assert!(!members.is_held(EPOCH) && members.last > MemberNumber::new(6));
}

/// A backup that was made while one joined: it is ordered to go on with its data, and is no contradiction.
#[test]
fn one_that_was_to_join_and_has_joined_since_is_taken_for_what_it_is() {
    let mut restored = Restored::new(store(EnsembleSize::Number(3)));
    let joining = Member {
        node: name(4),
        phase: MemberPhase::Preparing,
        since: NOW,
        store_id: None,
        peer_url: String::new(),
    };
    restored.members.last = MemberNumber::new(4);
    restored.members.members.insert(MemberNumber::new(4), joining);
    restored.site.put(Record::EnsembleMembers(restored.members.clone()));
    let order = restored.fleet().contents.get(&name(4)).unwrap().members.get(&restored.ensemble.name);
    assert_eq!(order.unwrap().task, MemberTask::Run(MemberStart::Again), "it never begins anew");
    let all = [("id-1", "store-1"), ("id-2", "store-2"), ("id-3", "store-3"), ("id-4", "store-4")];
    restored.lists_named(4, &all);
    restored.lists_named(1, &all);
    assert_eq!(restored.evidence(), Evidence::Same);
    let verdict = restored.decide();
    let resumed = members_of(verdict.changesets.first().unwrap().writes.first().unwrap());
    let member = resumed.members.get(&MemberNumber::new(4)).unwrap();
    assert_eq!((&member.phase, member.store_id.as_deref()), (&MemberPhase::Voting, Some("id-4")));
}

/// The replicas of now go on following the primary that is recorded: it is not without any for a moment.
#[test]
fn replicas_that_are_not_recorded_follow_on_once_a_person_accepts_that() {
    let mut restored = Restored::new(redis());
    restored.leads(1, "h", &["rediss://10.0.0.4:6379"]);
    restored.has_unrecorded(4, 7);
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    let member = members.members.get(&MemberNumber::new(7)).unwrap();
    assert_eq!((&member.node, &member.phase), (&name(4), &MemberPhase::Serving));
    assert_eq!(member.peer_url, "rediss://10.0.0.4:6379");
    assert_eq!(members.lead.primary, Some(MemberNumber::new(1)));
    assert_eq!(members.lead.follows.get(&MemberNumber::new(7)), Some(&MemberNumber::new(1)));
    let order = members.orders().find(|(node, _)| **node == name(1)).unwrap().1;
    assert!(order.peers.contains(&MemberNumber::new(7)), "it is let in");
    // One that does not follow it may have more than it.
    restored.leads(1, "h", &[]);
    assert!(found(restored.fleet(), &restored.members).is_empty());
}

/// All are recorded, and another one leads them, also beside the one before, which came back and leads nobody.
#[test]
fn the_primary_that_the_others_follow_stays_it_whatever_is_recorded() {
    for of_former in [("", Some(2)), ("h", None)] {
        let mut restored = Restored::new(redis());
        restored.site.put(Record::EnsembleMembers(restored.members.clone()));
        restored.is(1, of_former.0, of_former.1);
        restored.is(2, "h9", None);
        restored.is(3, "", Some(2));
        let mut members = restored.members.clone();
        accept(restored.fleet(), &mut members, NOW);
        assert_eq!(members.lead.primary, Some(MemberNumber::new(2)), "{of_former:?}");
        assert_eq!(members.lead.history.as_deref(), Some("h9"));
        assert_eq!(members.lead.follows.get(&MemberNumber::new(1)), Some(&MemberNumber::new(2)));
    }
}

/// The one before was suspended and came back, and the primary has ended meanwhile: its replica has what was acknowledged since.
#[test]
fn a_primary_whose_writes_others_went_on_with_is_none_any_more() {
    let mut restored = Restored::new(redis());
    restored.site.put(Record::EnsembleMembers(restored.members.clone()));
    restored.is(1, "h", None);
    restored.went_on(3, "h9", "h", Some(2));
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    assert_eq!(members.lead.primary, Some(MemberNumber::new(2)), "the one that it followed");
    assert_eq!(members.lead.follows.get(&MemberNumber::new(1)), Some(&MemberNumber::new(2)));
    // One that went on and follows nobody known is it itself; and the one before is not it.
    restored.went_on(3, "h9", "h", None);
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    assert_eq!(members.lead.primary, Some(MemberNumber::new(3)));
    // What the recorded one went on with itself is no reason.
    let mut restored = Restored::new(redis());
    restored.site.put(Record::EnsembleMembers(restored.members.clone()));
    restored.is(1, "h", None);
    restored.went_on(3, "h0", "h00", Some(2));
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    assert_eq!(members.lead.primary, Some(MemberNumber::new(1)));
}

/// The primary that is recorded is a replica of one that is not: that one is the primary.
#[test]
fn the_primary_of_now_is_recorded_as_the_one_that_others_follow() {
    let mut restored = Restored::new(redis());
    restored.site.put(Record::EnsembleMembers(restored.members.clone()));
    restored.follows_url(1, "rediss://10.0.0.4:6379");
    restored.has_unrecorded(4, 7);
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    assert_eq!(members.lead.primary, Some(MemberNumber::new(7)));
    assert_eq!(members.lead.promotion.as_ref().unwrap().history, None, "with what it has");
    assert_eq!(members.lead.follows.get(&MemberNumber::new(1)), Some(&MemberNumber::new(7)));
    // Nobody says who it is: none of those that are not recorded is told to follow one that may be without data.
    let mut silent = Restored::new(redis());
    silent.has_unrecorded(4, 7);
    let mut members = silent.members.clone();
    accept(silent.fleet(), &mut members, NOW);
    assert!(!members.members.contains_key(&MemberNumber::new(7)));
    assert_eq!(members.lead, silent.members.lead);
}

/// The primary of now is silent, and others get data from it: it stays the primary, whatever is recorded.
#[test]
fn a_silent_primary_that_others_get_data_from_stays_it() {
    for of in [1, 2] {
        let mut restored = Restored::new(redis());
        restored.site.put(Record::EnsembleMembers(restored.members.clone()));
        restored.is(3, "", Some(of));
        assert!(choice_of_primary(restored.fleet(), &restored.members).is_empty(), "it is known");
        let mut members = restored.members.clone();
        accept(restored.fleet(), &mut members, NOW);
        assert_eq!(members.lead.primary, Some(MemberNumber::new(of)));
    }
}

/// All were started anew, so nobody knows whose data are the latest: a person names the primary, before all others take its data.
#[test]
fn where_no_member_says_who_the_primary_is_a_person_does() {
    let mut restored = Restored::new(redis());
    restored.site.put(Record::EnsembleMembers(restored.members.clone()));
    let choice = |restored: &Restored| choice_of_primary(restored.fleet(), &restored.members);
    assert!(choice(&restored).is_empty(), "none works, and there is nothing to choose");
    for number in 1..=3 {
        restored.is(number, "", None);
    }
    assert_eq!(choice(&restored).first().unwrap(), "member 1 has an unknown number of keys");
    assert_eq!(choice(&restored).len(), 3);
    let fleet = restored.fleet();
    let why = line(&restored.members, &evidence(fleet, &restored.members), &choice(&restored));
    assert!(why.contains("name the one whose data are to be kept"), "{why}");
    restored.members.lead.promotion =
        Some(Promotion { history: None, is_failover: false, named_in: Some(EPOCH) });
    assert!(choice(&restored).is_empty(), "it was named");
    restored.members.lead.promotion = None;
    restored.is(1, "h9", None);
    assert_eq!(choice(&restored).len(), 3, "of another history than is recorded, and nobody follows it");
    restored.is(1, "h", None);
    assert!(choice(&restored).is_empty(), "it is the primary by its own word");
}

/// Later orders that were noted before a restore which was told say nothing of the members after it.
#[test]
fn what_was_noted_of_orders_before_a_restore_is_no_contradiction_after_it() {
    let mut restored = Restored::new(redis());
    restored
        .members
        .contradicted
        .insert("node node-1 follows an order that is later than any that is recorded".into());
    assert!(matches!(restored.evidence(), Evidence::Unknown(_)));
    restored.members.contradicted.insert("member 2 is a primary".into());
    assert!(matches!(restored.evidence(), Evidence::Other(_)));
    // Without a restore that was told, it is the word of a node, for as long as that is one of the fleet.
    restored.members.epoch = EPOCH;
    for (node, counts) in [("db-1", true), ("db-10", false)] {
        let what = format!("node {node} follows an order that is later than any that is recorded, as where");
        restored.members.contradicted = BTreeSet::from([what]);
        assert_eq!(matches!(restored.evidence(), Evidence::Other(_)), counts, "{node}");
    }
}

/// The nodes of the recorded members have had later ones, which are recorded with the one that is named.
#[test]
fn later_members_of_recorded_nodes_follow_the_one_that_is_named() {
    let mut restored = Restored::new(redis());
    restored.has_unrecorded(4, 7);
    let number = MemberNumber::new(2);
    let refused = MemberReport {
        later: Some(MemberNumber::new(8)),
        ..report(&restored.members, number, MemberState::Refused)
    };
    restored.site.tell(&restored.members, 2, refused);
    let may_be =
        |number: u64| may_be_recorded(restored.fleet(), &restored.members, MemberNumber::new(number));
    assert_eq!([7, 8, 9].map(may_be), [true, true, false]);
    assert!(found(restored.fleet(), &restored.members).is_empty(), "nobody is named");
    restored.members.lead.primary = Some(MemberNumber::new(7));
    restored.members.lead.promotion =
        Some(Promotion { history: None, is_failover: false, named_in: Some(EPOCH) });
    let mut members = restored.members.clone();
    accept(restored.fleet(), &mut members, NOW);
    assert_eq!(members.members.keys().map(|number| number.get()).collect::<Vec<_>>(), [1, 3, 7, 8]);
    let later = members.members.get(&MemberNumber::new(8)).unwrap();
    assert_eq!((&later.node, later.peer_url.as_str()), (&name(2), "redis://db-2"));
    assert_eq!(members.lead.follows.get(&MemberNumber::new(8)), Some(&MemberNumber::new(7)));
}

/// A person has named the primary since the restore, knowing what others have: it is it, also if others follow another one, and if it is not recorded.
#[test]
fn who_was_named_by_a_person_is_the_primary_whatever_others_do() {
    let named = |number: u64, named_in: Option<Epoch>| {
        let mut restored = Restored::new(redis());
        restored.members.lead.primary = Some(MemberNumber::new(number));
        restored.members.lead.promotion = Some(Promotion { history: None, is_failover: false, named_in });
        restored.site.put(Record::EnsembleMembers(restored.members.clone()));
        restored.is(1, "h9", None);
        restored.is(2, "", Some(1));
        restored.is(3, "", None);
        restored.has_unrecorded(4, 7);
        let mut members = restored.members.clone();
        let then = restored.waiting();
        accept(restored.fleet(), &mut members, NOW);
        (members, then)
    };
    for number in [3, 7] {
        let (members, then) = named(number, Some(EPOCH));
        assert_eq!(members.lead.primary, Some(MemberNumber::new(number)), "{then}");
        assert_eq!(members.lead.promotion.as_ref().unwrap().history, None, "with what it has");
        assert_eq!(members.lead.follows.get(&MemberNumber::new(1)), Some(&MemberNumber::new(number)));
        assert!(members.members.contains_key(&MemberNumber::new(number)));
        assert!(
            then.contains(&format!("of which member {number} is the primary and all others take its data")),
            "{then}"
        );
    }
    // Before the backup that was restored, that says nothing of now.
    for named_in in [None, Some(Epoch::new(EPOCH.get() - 1))] {
        assert_eq!(named(3, named_in).0.lead.primary, Some(MemberNumber::new(1)));
    }
}

/// It was deleted and created anew since the backup: what is recorded can start nowhere.
#[test]
fn one_whose_nodes_have_a_newer_ensemble_of_its_name_does_not_go_on_and_may_be_deleted() {
    let mut restored = Restored::new(store(EnsembleSize::Number(3)));
    let members = restored.members.clone();
    let mut report = report(&members, MemberNumber::new(2), MemberState::Failed);
    report.reason = format!("is not started: its node has member 1 {NAMESAKE} in /data, which runs");
    restored.site.tell(&members, 2, report);
    let Evidence::Other(what) = restored.evidence() else { panic!("{:?}", restored.evidence()) };
    assert_eq!(what[0], format!("node db-2 has a member {NAMESAKE}"));
    let why = nobody_there(restored.fleet(), &restored.members).unwrap();
    assert!(why.ends_with(&format!("bellwether ensemble delete {}", members.ensemble)), "{why}");
    assert!(restored.waiting().ends_with(&why) && !restored.waiting().contains("ensemble resume"));
    restored.lists(1, &["id-1", "id-2", "id-3"]);
    assert!(nobody_there(restored.fleet(), &restored.members).is_none(), "one works");
}

/// All were replaced since the backup: going on with those that are recorded would lead nowhere.
#[test]
fn one_of_which_no_recorded_member_is_there_does_not_go_on_with_those() {
    let mut restored = Restored::new(store(EnsembleSize::Number(3)));
    assert!(nobody_there(restored.fleet(), &restored.members).is_none(), "they may only be silent");
    restored.has_unrecorded(4, 5);
    let why = nobody_there(restored.fleet(), &restored.members).unwrap();
    assert!(why.contains("member 5 on node") && why.contains("--adopt"), "{why}");
    assert!(restored.waiting().ends_with(&why), "{}", restored.waiting());
    restored.lists(1, &["id-1", "id-2", "id-3"]);
    assert!(nobody_there(restored.fleet(), &restored.members).is_none(), "one works");
}
