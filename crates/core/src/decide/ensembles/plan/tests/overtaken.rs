//! An ensemble whose nodes have had later members than those that are recorded.

use std::collections::BTreeSet;

use super::restored::members_of;
use super::*;
use crate::decide::ensembles::accepted::accept;
use crate::decide::ensembles::verdict;
use crate::records::member::Membership;
use crate::records::probes::StoreMember;
use crate::rollout::environment::Watch;

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
