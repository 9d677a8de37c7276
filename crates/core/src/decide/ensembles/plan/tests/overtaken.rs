//! An ensemble whose nodes have had later members than those that are recorded.

use std::collections::BTreeSet;

use super::restored::{Restored, members_of};
use super::*;
use crate::decide::ensembles::accepted::accept;
use crate::decide::ensembles::{set_back, verdict};
use crate::records::member::Membership;
use crate::records::order::{Order, OrderContent};
use crate::records::probes::StoreMember;
use crate::records::report::SET_BACK;
use crate::records::status::{ORDERS, Status, StatusState};
use crate::rollout::environment::Watch;
use crate::words::counter::Term;
use crate::words::time::Span;

impl Site {
    /// The agent of a node accepts no orders.
    fn refuses(&mut self, number: u64, reason: &str) {
        let status = Status {
            state: StatusState::Failed,
            silent: false,
            since: NOW,
            reason: reason.to_string(),
            attempt: 0,
            log: None,
            lifetime: None,
            update: 0,
        };
        let statuses = BTreeMap::from([(Category::parse(ORDERS).unwrap(), status)]);
        self.reports(number, [Feature::Ensembles].into_iter().collect(), statuses);
    }
}

#[test]
fn what_is_older_than_its_members_is_left_as_it_is() {
    let (mut site, ensemble) = (Site::new(4), store(EnsembleSize::Number(3)));
    site.voting(&ensemble, &[1, 2, 3]);
    site.put(Record::Ensemble(ensemble.clone()));
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let members = (*fleet.ensemble_members.get(&ensemble.name).unwrap().value).clone();
    let refused = MemberReport {
        later: Some(MemberNumber::new(7)),
        ..report(&members, MemberNumber::new(2), MemberState::Refused)
    };
    site.tell(&members, 2, refused.clone());
    let waiting = site.plan(&ensemble).waiting.unwrap();
    assert!(
        waiting.contains("node db-2 has had member 7, which is not recorded: restore a newer backup"),
        "{waiting}"
    );
    // Long after all have fallen silent, nothing is changed.
    for number in [1, 2, 3] {
        site.presence(number, PresenceState::Unreachable);
    }
    let later = Timestamp::from_millis(NOW.as_millis() + 86_400_000);
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let verdict = verdict::decide(fleet, &ensemble.name, None, (Watch::default(), later));
    let write = verdict.changesets.first().unwrap().writes.first().unwrap();
    let kept = members_of(write).clone();
    let seen = BTreeSet::from(["node db-2 has had member 7, which is not recorded".to_string()]);
    assert_eq!(kept, EnsembleMembers { contradicted: seen, ..members.clone() }, "nothing else is changed");
    assert!(kept.is_held(Epoch::ZERO));
    site.put(Record::EnsembleMembers(kept.clone()));
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let verdict = verdict::decide(fleet, &ensemble.name, None, (Watch::default(), later));
    assert_eq!(verdict.changesets, [], "it is written once");
    // Also once nobody says so any more.
    site.tell(&members, 2, report(&members, MemberNumber::new(2), MemberState::Failed));
    let waiting = site.plan(&ensemble).waiting.unwrap();
    assert!(waiting.contains("it was seen since that node db-2 has had member 7"), "{waiting}");
    let mut accepted = kept;
    accept(site.world.fleets.get(&site.namespace).unwrap(), &mut accepted, NOW);
    assert!(!accepted.is_held(Epoch::ZERO) && accepted.last >= MemberNumber::new(103));
    site.put(Record::EnsembleMembers(members.clone()));
    // One that was recorded is none to be afraid of.
    let known = MemberReport { later: Some(MemberNumber::new(3)), ..refused };
    site.tell(&members, 2, known);
    let waiting = site.plan(&ensemble).waiting.unwrap_or_default();
    assert!(!waiting.contains("has had member"), "{waiting}");
}

/// A server that was started on older data without a word of that: its nodes accept none of its orders.
#[test]
fn members_of_nodes_that_follow_orders_of_a_later_term_are_left_as_they_are() {
    let (mut site, ensemble) = (Site::new(4), store(EnsembleSize::Number(3)));
    site.voting(&ensemble, &[1, 2, 3]);
    site.put(Record::Ensemble(ensemble.clone()));
    site.presence(2, PresenceState::Unreachable);
    let later = Timestamp::from_millis(NOW.as_millis() + 86_400_000);
    let decide = |site: &Site| {
        let fleet = site.world.fleets.get(&site.namespace).unwrap();
        verdict::decide(fleet, &ensemble.name, None, (Watch::default(), later)).changesets
    };
    assert_ne!(decide(&site), [], "one is replaced");
    let refusal = format!("cannot {SET_BACK}2: the stored order has term 7");
    site.refuses(3, &refusal);
    assert_eq!(decide(&site), []);
    let waiting = site.plan(&ensemble).waiting.unwrap();
    assert!(
        waiting
            .starts_with("no member is changed while node db-3 accepts no orders: cannot accept an order of"),
        "{waiting}"
    );
    // Another reason is that of the node alone, and one that is not heard of says nothing of now.
    site.refuses(3, "no step of web begins");
    assert_ne!(decide(&site), []);
    site.refuses(2, &refusal);
    assert_ne!(decide(&site), []);
}

/// The same if the server has led so often since that its term is the later one: its nodes say that they follow later orders.
#[test]
fn members_of_nodes_that_follow_later_orders_than_are_recorded_are_left_as_they_are_until_all_are_heard_of() {
    let (mut site, ensemble) = (Site::new(4), store(EnsembleSize::Number(3)));
    site.voting(&ensemble, &[1, 2, 3]);
    site.put(Record::Ensemble(ensemble.clone()));
    let order = Order {
        generation: Generation::new(5),
        term: Term::new(1),
        epoch: Epoch::ZERO,
        content: OrderContent::default(),
    };
    site.put(Record::Order(name(2), order.clone()));
    let noted = |site: &Site, generation| {
        let fleet = site.world.fleets.get(&site.namespace).unwrap();
        set_back::noted(fleet, (&name(2), Generation::new(generation)), None)
    };
    assert_eq!(noted(&site, 5), None);
    let later = noted(&site, 6).unwrap();
    assert_eq!(later.guards, [Key::Order(name(2)).into()]);
    let [write] = later.changeset.writes.as_slice() else { panic!("{later:?}") };
    site.put(Record::EnsembleMembers(members_of(write).clone()));
    assert_eq!(noted(&site, 6), None, "once");
    let mut told = Restored::new(ensemble.clone());
    told.site.put(Record::Order(name(2), order));
    let later = set_back::noted(told.fleet(), (&name(2), Generation::new(6)), None);
    assert_eq!(
        later, None,
        "a restore that was told holds it as well, and nothing is known of its members by that"
    );
    let waiting = site.plan(&ensemble).waiting.unwrap();
    assert!(waiting.contains("none is added, removed"), "{waiting}");
    site.presence(2, PresenceState::Unreachable);
    let decide = |site: &Site, since| {
        let fleet = site.world.fleets.get(&site.namespace).unwrap();
        let watch = Watch { since, ..Watch::default() };
        verdict::decide(fleet, &ensemble.name, None, (watch, NOW))
    };
    let soon = NOW.plus(Span::from_secs(10));
    let unheard = decide(&site, soon);
    assert_eq!((unheard.changesets, unheard.wake), (Vec::new(), Some(soon)));
    site.presence(2, PresenceState::Up);
    let heard = decide(&site, NOW);
    let resumed = heard.changesets.first().unwrap();
    assert_eq!(resumed.events.first().map(|event| event.kind), Some("ensemble.resumed"));
    assert_eq!(members_of(resumed.writes.first().unwrap()).contradicted, BTreeSet::new());
}

/// The node that has it may not be known any more; the store is.
#[test]
fn a_store_with_a_later_member_than_any_that_was_recorded_is_left_as_it_is() {
    let (mut site, ensemble) = (Site::new(4), store(EnsembleSize::Number(3)));
    site.voting(&ensemble, &[1, 2, 3]);
    site.put(Record::Ensemble(ensemble.clone()));
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let members = (*fleet.ensemble_members.get(&ensemble.name).unwrap().value).clone();
    let listing = |name: &str| {
        let entry = StoreMember { votes: true, name: Some(name.to_string()), ..StoreMember::default() };
        let membership = Membership {
            own_id: "id-1".to_string(),
            is_leader: true,
            cluster_id: None,
            leader: None,
            members: BTreeMap::from([("id-9".to_string(), entry)]),
        };
        let working = report(&members, MemberNumber::new(1), MemberState::Working);
        MemberReport { membership: Some(membership), ..working }
    };
    let waits = |site: &Site| site.plan(&ensemble).waiting.unwrap_or_default();
    for name in ["store-3", "store-x", "other-9"] {
        site.tell(&members, 1, listing(name));
        assert!(!waits(&site).contains("may be older"), "{name}: {}", waits(&site));
    }
    site.tell(&members, 1, listing("store-4"));
    let waiting = waits(&site);
    assert!(waiting.contains("may be older") && waiting.contains("id-9 (store-4)"), "{waiting}");
}
