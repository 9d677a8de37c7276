//! An ensemble whose nodes have had later members than those that are recorded.

use super::*;
use crate::decide::ensembles::verdict;
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
        waiting.contains("node db-2 has had member 7, and the last one that is recorded is 3"),
        "{waiting}"
    );
    // Long after all have fallen silent, nothing is changed.
    for number in [1, 2, 3] {
        site.presence(number, PresenceState::Unreachable);
    }
    let later = Timestamp::from_millis(NOW.as_millis() + 86_400_000);
    let fleet = site.world.fleets.get(&site.namespace).unwrap();
    let verdict = verdict::decide(fleet, &ensemble.name, None, (Watch::default(), later));
    assert_eq!(verdict.changesets, []);
    // One that was recorded is none to be afraid of.
    let known = MemberReport { later: Some(MemberNumber::new(3)), ..refused };
    site.tell(&members, 2, known);
    let waiting = site.plan(&ensemble).waiting.unwrap_or_default();
    assert!(!waiting.contains("has had member"), "{waiting}");
}
