//! An ensemble after a restore of the control plane: nothing is decided before it is known that its members are those that are recorded.

use std::collections::BTreeSet;

use super::*;
use crate::decide::ensembles::restored::{Evidence, evidence};
use crate::decide::ensembles::verdict;
use crate::records::ensemble::RedisSettings;
use crate::records::ensemble_adoption::{Adoption, ForeignMember};
use crate::records::key::AnyRecord;
use crate::records::member::{Membership, Replication};
use crate::records::primary::{PrimaryRecord, Promotion};
use crate::records::probes::StoreMember;
use crate::records::unrecorded::UnrecordedMember;
use crate::rollout::environment::Watch;
use crate::verdict::{Verdict, Write};
use crate::words::time::Span;

pub(super) const EPOCH: Epoch = Epoch::new(9);

/// An etcd whose members vote on three nodes, as it is recorded; all of them are silent, and long after.
pub(super) struct Restored {
    pub(super) site: Site,
    pub(super) ensemble: Ensemble,
    pub(super) members: EnsembleMembers,
}

impl Restored {
    pub(super) fn new(ensemble: Ensemble) -> Self {
        let mut site = Site::restored(4, EPOCH);
        site.put(Record::Ensemble(ensemble.clone()));
        let mut members = EnsembleMembers::none(ensemble.name.clone(), ensemble.service.clone(), NOW);
        members.is_bootstrapped = true;
        for number in 1..=3 {
            members.last = members.last.next();
            let phase =
                if ensemble.service.has_voters() { MemberPhase::Voting } else { MemberPhase::Serving };
            let member = Member {
                node: name(number),
                phase,
                since: NOW,
                store_id: Some(format!("id-{number}")),
                peer_url: format!("redis://db-{number}"),
            };
            members.members.insert(members.last, member);
        }
        members.lead = PrimaryRecord {
            primary: Some(MemberNumber::new(1)),
            history: Some("h".to_string()),
            ..PrimaryRecord::default()
        };
        site.put(Record::EnsembleMembers(members.clone()));
        Self { site, ensemble, members }
    }

    pub(super) fn fleet(&self) -> &Fleet {
        self.site.world.fleets.get(&self.site.namespace).unwrap()
    }

    pub(super) fn evidence(&self) -> Evidence {
        evidence(self.fleet(), &self.members)
    }

    pub(super) fn decide(&self) -> Verdict {
        let later = NOW.plus(Span::from_secs(86_400));
        verdict::decide(self.fleet(), &self.ensemble.name, None, (Watch::default(), later))
    }

    /// A member works, and reads that the store has these members.
    pub(super) fn lists(&mut self, number: u64, ids: &[&str]) {
        let all: Vec<_> = ids.iter().map(|id| (*id, "")).collect();
        self.lists_named(number, &all);
    }

    /// A member of a Redis works, as the primary of a history or as a replica of one of these numbers.
    pub(super) fn is(&mut self, number: u64, history: &str, follows: Option<u64>) {
        let follows = follows.filter(|of| *of > 0).map(|of| format!("redis://db-{of}"));
        self.says(number, history, (follows, &[]));
    }

    /// A member of a Redis works, as a replica of the one with this URL.
    pub(super) fn follows_url(&mut self, number: u64, url: &str) {
        self.says(number, "", (Some(url.to_string()), &[]));
    }

    /// A member of a Redis works, as the primary of the replicas with these URLs.
    pub(super) fn leads(&mut self, number: u64, history: &str, replicas: &[&str]) {
        self.says(number, history, (None, replicas));
    }

    /// A replica with a history that is the continuation of another one, and whose primary does not answer; of nobody, it is a primary.
    pub(super) fn went_on(&mut self, number: u64, history: &str, former: &str, follows: Option<u64>) {
        let follows = follows.map(|of| format!("redis://db-{of}"));
        self.says(number, history, (follows.clone(), &[]));
        let told = self.fleet().node_members.get(&name(number)).unwrap().value.as_ref().clone();
        let mut report = told.members.get(&self.ensemble.name).unwrap().report.clone();
        let said = report.replication.as_mut().unwrap();
        (said.is_primary, said.streams, said.former) = (follows.is_none(), false, Some(former.to_string()));
        let members = self.members.clone();
        self.site.tell(&members, number, report);
    }

    fn says(&mut self, number: u64, history: &str, (follows, replicas): (Option<String>, &[&str])) {
        let said = Replication {
            is_primary: !history.is_empty(),
            streams: follows.is_some(),
            follows,
            is_whole: true,
            history: history.to_string(),
            former: None,
            offset: None,
            replicas: replicas.iter().map(ToString::to_string).collect(),
            takes_over: false,
            run: number.to_string(),
            cannot_store: false,
            keys: None,
        };
        let working = report(&self.members, MemberNumber::new(number), MemberState::Working);
        let said = MemberReport { replication: Some(said), ..working };
        self.site.tell(&self.members, number, said);
    }

    /// The same, with names.
    pub(super) fn lists_named(&mut self, number: u64, all: &[(&str, &str)]) {
        let entry = |(id, name): &(&str, &str)| {
            let member = StoreMember { votes: true, name: Some(name.to_string()), ..StoreMember::default() };
            (id.to_string(), member)
        };
        let membership = Membership {
            own_id: format!("id-{number}"),
            is_leader: true,
            cluster_id: None,
            leader: None,
            members: all.iter().map(entry).collect(),
        };
        let working = report(&self.members, MemberNumber::new(number), MemberState::Working);
        self.site.tell(&self.members, number, MemberReport { membership: Some(membership), ..working });
    }

    /// A node tells of a member that it is not ordered to have.
    pub(super) fn has_unrecorded(&mut self, node: u64, number: u64) {
        let address = [10, 0, 0, u8::try_from(node).unwrap()].into();
        let identity = self.members.identity.clone();
        let member = UnrecordedMember::seen(MemberNumber::new(number), identity, true, address);
        self.site.put(Record::NodeMembers(NodeMembers {
            node: name(node),
            sequence: 0,
            epoch: self.site.world.epoch,
            members: BTreeMap::new(),
            osds: BTreeMap::new(),
            devices: BTreeMap::new(),
            unrecorded: BTreeMap::from([(self.ensemble.name.clone(), member)]),
        }));
    }

    /// What it waits for.
    pub(super) fn waiting(&self) -> String {
        let plan = plan(self.fleet(), &self.ensemble, None, (NOW, NOW));
        plan.waiting.unwrap()
    }

    pub(super) fn is_left_alone(&self) {
        let verdict = self.decide();
        for write in verdict.changesets.iter().flat_map(|changeset| &changeset.writes) {
            let kept = members_of(write);
            let of = |all: &EnsembleMembers| (all.members.clone(), all.lead.clone(), all.last, all.epoch);
            assert_eq!(of(kept), of(&self.members));
        }
        let content = self.fleet().contents.get(&name(1)).unwrap();
        let order = content.members.get(&self.ensemble.name).unwrap();
        assert_eq!((&order.change, &order.replication), (&None, &None));
    }
}

pub(super) fn members_of(write: &Write) -> &EnsembleMembers {
    let Write::Put(record) = write else { panic!("it is written") };
    let AnyRecord::Namespaced(Record::EnsembleMembers(members)) = &**record else { panic!("its members") };
    members
}

pub(super) fn redis() -> Ensemble {
    let redis = RedisSettings { port: 6379, min_replicas: 1, tls: true, password_secrets: Vec::new() };
    Ensemble { service: EnsembleService::Redis(redis), ..store(EnsembleSize::Number(3)) }
}

#[test]
fn an_etcd_goes_on_once_one_of_its_members_reads_that_the_store_has_those_that_are_recorded() {
    let mut restored = Restored::new(store(EnsembleSize::Number(3)));
    restored.is_left_alone();
    let Evidence::Unknown(what) = restored.evidence() else { panic!("nobody said anything") };
    assert_eq!(what.len(), 3, "{what:?}");
    let waiting = restored.site.plan(&restored.ensemble).waiting.unwrap();
    assert!(waiting.contains("bellwether ensemble resume store"), "{waiting}");
    // The store has one more: the records are older.
    restored.lists(2, &["id-1", "id-2", "id-3", "id-4"]);
    restored.is_left_alone();
    let Evidence::Other(what) = restored.evidence() else { panic!("the store has another one") };
    assert!(what.concat().contains("the store has member id-4"), "{what:?}");
    let waiting = restored.site.plan(&restored.ensemble).waiting.unwrap();
    let with_loss = "or go on with members 1, 2, 3: bellwether ensemble resume store --accept-data-loss";
    assert!(waiting.contains("restore a newer backup") && waiting.contains(with_loss), "{waiting}");
    // It has one less.
    restored.lists(2, &["id-2", "id-3"]);
    assert_eq!(restored.evidence(), Evidence::Other(["the store does not have member 1".to_string()].into()));
    // What was said before the restore is as old as the records.
    restored.site.world.epoch = Epoch::ZERO;
    restored.lists(2, &["id-1", "id-2", "id-3"]);
    assert!(matches!(restored.evidence(), Evidence::Unknown(what) if what.len() == 3));
    restored.is_left_alone();
    restored.site.world.epoch = EPOCH;
    restored.lists(2, &["id-1", "id-2", "id-3"]);
    let verdict = restored.decide();
    let changeset = verdict.changesets.first().unwrap();
    assert_eq!(changeset.events.first().unwrap().kind, "ensemble.resumed");
    let resumed = members_of(changeset.writes.first().unwrap());
    assert!(!resumed.is_held(EPOCH) && resumed.last >= MemberNumber::new(103), "{:?}", resumed.last);
}

#[test]
fn a_redis_whose_primary_has_changed_since_is_left_alone_and_one_that_was_started_is_for_a_person() {
    let mut restored = Restored::new(redis());
    restored.is_left_alone();
    for (number, history, follows) in [(1, "h", None), (2, "", Some(1)), (3, "", Some(1))] {
        restored.is(number, history, follows);
    }
    assert_eq!(restored.evidence(), Evidence::Same);
    assert_eq!(
        restored.decide().changesets.first().unwrap().events.first().unwrap().kind,
        "ensemble.resumed"
    );
    // Another one is the primary, and the recorded one was away and comes back with what it had.
    restored.is(1, "", None);
    restored.is(2, "h2", None);
    restored.is(3, "", Some(2));
    restored.is_left_alone();
    let Evidence::Other(what) = restored.evidence() else { panic!("another one is the primary") };
    let said = [
        "member 2 is a primary, and not a replica, as is recorded",
        "member 3 is a replica of member 2, and not of member 1, as is recorded",
    ];
    assert_eq!(what, said);
    // All were started: none of them says more than that.
    (1..=3).for_each(|number| restored.is(number, "", None));
    restored.is_left_alone();
    assert!(matches!(restored.evidence(), Evidence::Unknown(what) if what.len() == 3));
}

/// That its own later one is no member of somebody else is known by its name, or by the word of its node.
#[test]
fn a_later_member_of_a_store_that_was_adopted_is_none_of_somebody_else() {
    let mut restored = Restored::new(store(EnsembleSize::Number(3)));
    let foreign = ForeignMember {
        name: "old-1".to_string(),
        peer_url: String::new(),
        votes: true,
        answers: true,
        since: NOW,
    };
    restored.members.adoption = Some(Adoption {
        endpoints: BTreeSet::new(),
        cluster_id: Some("c".to_string()),
        foreign: BTreeMap::from([("id-8".to_string(), foreign)]),
        removals: BTreeMap::new(),
    });
    restored.site.put(Record::EnsembleMembers(restored.members.clone()));
    let all = [("id-1", "store-1"), ("id-2", "store-2"), ("id-3", "store-3"), ("id-8", "old-1")];
    let others = [("id-9", "old-2"), ("id-7", "store-side")];
    restored.lists_named(2, &[&all[..], &others].concat());
    assert_eq!(restored.evidence(), Evidence::Same, "somebody else may have added more");
    restored.lists_named(2, &[&all[..], &[("id-4", "store-4")]].concat());
    let Evidence::Other(what) = restored.evidence() else { panic!("it has another one of its own") };
    assert_eq!(what, ["the store has member id-4 (store-4), which is not recorded"]);
    restored.lists_named(2, &all);
    restored.has_unrecorded(4, 4);
    let Evidence::Other(what) = restored.evidence() else { panic!("node 4 has another one") };
    assert_eq!(what, ["node db-4 has member 4, which is not recorded"]);
    restored.is_left_alone();
}

/// A replica that was added after the backup is in no list.
#[test]
fn a_member_that_is_not_recorded_is_evidence_by_the_word_of_its_node_from_after_the_restore() {
    let mut restored = Restored::new(redis());
    for (number, history, follows) in [(1, "h", None), (2, "", Some(1)), (3, "", Some(1))] {
        restored.is(number, history, follows);
    }
    restored.site.world.epoch = Epoch::ZERO;
    restored.has_unrecorded(4, 4);
    restored.site.world.epoch = EPOCH;
    assert_eq!(restored.evidence(), Evidence::Same, "what was said before is as old as the records");
    restored.has_unrecorded(4, 4);
    assert!(matches!(restored.evidence(), Evidence::Other(what) if what.len() == 1));
    // That of another ensemble of its name says nothing of this one.
    restored.members.identity = "another".to_string();
    assert!(!matches!(restored.evidence(), Evidence::Other(_)));
}

/// A new member would stop it, and set its data aside.
#[test]
fn a_node_with_a_member_that_is_not_recorded_has_none_of_another_ensemble_of_that_name() {
    let mut restored = Restored::new(store(EnsembleSize::Number(3)));
    restored.has_unrecorded(4, 7);
    let places = candidates(restored.fleet(), &restored.ensemble);
    let refused = places.get(&name(4)).unwrap().refusal.clone().unwrap();
    assert!(refused.contains("it has member 7 of an ensemble store that is not recorded"), "{refused}");
    let index = &restored.fleet().unrecorded;
    assert_eq!(index.get(&restored.ensemble.name).unwrap(), &BTreeSet::from([name(4)]));
    // It is gone: its node tells nothing any more.
    restored.site.delete(&Key::NodeMembers(name(4)));
    assert!(restored.fleet().unrecorded.is_empty());
}

/// The primary of now was ended, and follows nobody since: that it was the primary is not forgotten.
#[test]
fn what_was_seen_since_the_restore_is_not_forgotten_when_it_is_ended() {
    let mut restored = Restored::new(redis());
    restored.is(1, "", None);
    restored.is(2, "h2", None);
    restored.is(3, "", Some(2));
    let verdict = restored.decide();
    let kept = members_of(verdict.changesets.first().unwrap().writes.first().unwrap()).clone();
    assert!(kept.contradicted.iter().any(|what| what.contains("member 2 is a primary")), "{kept:?}");
    restored.members = kept.clone();
    restored.site.put(Record::EnsembleMembers(kept));
    for number in 1..=3 {
        restored.is(number, "", None);
    }
    let Evidence::Other(what) = restored.evidence() else { panic!("it was seen") };
    let said = "it was seen since that member 2 is a primary, and not a replica, as is recorded";
    assert!(what.iter().any(|line| line == said), "{what:?}");
    restored.is_left_alone();
    // All are as is recorded, after all: as once it was named the primary.
    for (number, history, follows) in [(1, "h", None), (2, "", Some(1)), (3, "", Some(1))] {
        restored.is(number, history, follows);
    }
    assert_eq!(restored.evidence(), Evidence::Same);
    let verdict = restored.decide();
    let resumed = members_of(verdict.changesets.first().unwrap().writes.first().unwrap());
    assert!(!resumed.is_held(EPOCH) && resumed.contradicted.is_empty());
}

/// The one that is the primary is named: that it has another history is no contradiction any more.
#[test]
fn a_primary_that_a_person_has_named_has_the_history_that_it_has() {
    let mut restored = Restored::new(redis());
    restored.members.lead.promotion = Some(Promotion { history: None, is_failover: false, named_in: None });
    restored.members.lead.primary = Some(MemberNumber::new(2));
    restored.is(2, "h2", None);
    for number in [1, 3] {
        restored.is(number, "", Some(2));
    }
    assert_eq!(restored.evidence(), Evidence::Same);
}
