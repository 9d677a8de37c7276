//! What counts as working of a Redis, by what its members and their nodes say: without the replicas that a primary needs for writes, nothing does.

use std::collections::BTreeSet;

use super::*;
use crate::decide::ensembles::failing::{counts, failing};
use crate::decide::ensembles::health::working;
use crate::records::ensemble::RedisSettings;
use crate::records::ensemble_members::RemovalReason;
use crate::records::member::Replication;
use crate::records::registrations::{
    CheckStatus, ServiceRegistration, ServiceRegistrations, instance_of_member,
};
use crate::words::addresses::Addresses;
use crate::words::time::Span;

/// Three members of a Redis on nodes of the same numbers, of which the first is the primary and the others get its data.
struct Cache {
    site: Site,
    members: EnsembleMembers,
}

impl Cache {
    fn new(min_replicas: u32) -> Self {
        let redis = RedisSettings { port: 6379, min_replicas, tls: true, password_secrets: Vec::new() };
        let service = EnsembleService::Redis(redis);
        let mut members = EnsembleMembers::none("cache".parse().unwrap(), service, NOW);
        for number in 1..=3 {
            members.last = members.last.next();
            let phase = MemberPhase::Serving;
            let member =
                Member { node: name(number), phase, since: NOW, store_id: None, peer_url: url(number) };
            members.members.insert(members.last, member);
        }
        members.lead.primary = Some(MemberNumber::new(1));
        members.lead.history = Some("h".to_string());
        let mut cache = Self { site: Site::new(3), members };
        (1..=3).for_each(|number| cache.says(number, |_| {}));
        cache
    }

    /// A member says of itself what it would if all were well, but for this.
    fn says(&mut self, number: u64, but: impl FnOnce(&mut Replication)) {
        let is_primary = number == 1;
        let mut said = Replication {
            is_primary,
            follows: (!is_primary).then(|| url(1)),
            streams: !is_primary,
            is_whole: true,
            history: "h".to_string(),
            former: None,
            offset: None,
            replicas: if is_primary { [url(2), url(3)].to_vec() } else { Vec::new() },
            takes_over: false,
            run: number.to_string(),
            cannot_store: false,
            keys: None,
        };
        but(&mut said);
        let mut report = report(&self.members, MemberNumber::new(number), MemberState::Working);
        report.replication = Some(said);
        self.site.tell(&self.members, number, report);
    }

    /// The node of a member registers it with these tags.
    fn registers(&mut self, number: u64, tags: &[&str], serving: CheckStatus) {
        let registration = ServiceRegistration {
            addresses: None,
            port: Some(6379),
            tags: tags.iter().map(|tag| tag.parse().unwrap()).collect(),
            meta: BTreeMap::new(),
            entity: None,
            waits_for: BTreeSet::new(),
            serving,
            since: NOW,
        };
        let key = instance_of_member(&self.members.ensemble, MemberNumber::new(number)).unwrap();
        let instances = BTreeMap::from([(key, registration)]);
        let (node, addresses) = (name(number), Addresses::default());
        self.site.put(Record::Registrations(ServiceRegistrations { node, addresses, instances }));
    }

    /// The numbers of the members that clients find as the primary.
    fn found(&self) -> Vec<u64> {
        let service = self.fleet().catalogue.service(&"cache".parse().unwrap()).unwrap();
        let is_found = |number: &u64| {
            let (_, id) = instance_of_member(&self.members.ensemble, MemberNumber::new(*number)).unwrap();
            let instance = service.instance(&name(*number), &id);
            instance.is_some_and(|of| of.tags.iter().any(|tag| tag.as_str() == "primary"))
        };
        (1..=3).filter(is_found).collect()
    }

    fn fleet(&self) -> &Fleet {
        self.site.world.fleets.get(&self.site.namespace).unwrap()
    }

    fn counted(&self) -> usize {
        counts(self.fleet(), &self.members).working
    }

    /// The members that fail, each with the reason.
    fn failing(&self) -> Vec<String> {
        self.failing_at(NOW)
    }

    fn failing_at(&self, now: Timestamp) -> Vec<String> {
        let parts = failing(self.fleet(), &self.members, now);
        parts.iter().map(|part| format!("{} {}", part.node, part.reason)).collect()
    }

    /// The members whose word that they work is taken.
    fn heard(&self) -> Vec<u64> {
        let heard = |number: &u64| working(self.fleet(), &self.members, MemberNumber::new(*number)).is_some();
        (1..=4).filter(heard).collect()
    }
}

fn url(number: u64) -> String {
    format!("redis://{}:6379", name(number))
}

#[test]
fn what_works_is_what_says_so_itself_and_is_on_a_node_that_is_heard_of() {
    let mut cache = Cache::new(1);
    assert_eq!(cache.heard(), [1, 2, 3], "there is no fourth one");
    for contact in [PresenceState::Suspect, PresenceState::Unreachable] {
        cache.site.presence(2, contact);
        assert_eq!(cache.heard(), [1, 3], "{contact:?}");
    }
    cache.site.presence(2, PresenceState::Up);
    for state in [MemberState::Starting, MemberState::Failed, MemberState::Refused, MemberState::Left] {
        let report = report(&cache.members, MemberNumber::new(2), state);
        cache.site.tell(&cache.members, 2, report);
        assert_eq!(cache.heard(), [1, 3], "{state:?}");
    }
    // What its node says of a member that it had before, or of one of another ensemble of this name.
    let former = report(&cache.members, MemberNumber::new(9), MemberState::Working);
    cache.site.tell(&cache.members, 2, former);
    assert_eq!(cache.heard(), [1, 3]);
    let own = report(&cache.members, MemberNumber::new(2), MemberState::Working);
    cache.site.tell(&cache.members, 2, MemberReport { identity: "other".to_string(), ..own });
    assert_eq!(cache.heard(), [1, 3]);
    cache.says(2, |_| {});
    cache.site.put(Record::Node(Node { decommissioned: Some(by()), ..node(2, Labels::default()) }));
    assert_eq!(cache.heard(), [1, 3], "its node was decommissioned");
}

#[test]
fn a_primary_without_the_replicas_that_it_needs_takes_no_writes_and_so_nothing_works() {
    let mut cache = Cache::new(1);
    assert_eq!((cache.counted(), cache.failing()), (3, Vec::new()));
    cache.says(1, |said| said.replicas.truncate(1));
    assert_eq!(cache.counted(), 3, "one is as many as it needs");
    cache.says(1, |said| said.replicas.clear());
    assert_eq!((cache.heard(), cache.counted()), ([1, 2, 3].to_vec(), 0), "whatever each says of itself");
    assert_eq!(cache.failing(), ["db-1 takes no writes: too few replicas are connected to it"]);

    // Where none is needed, it works alone, and those that get nothing do not.
    let mut cache = Cache::new(0);
    cache.says(1, |said| said.replicas.clear());
    (2..=3).for_each(|number| cache.says(number, |said| said.streams = false));
    let failing =
        ["db-2", "db-3"].map(|node| format!("{node} is not connected to the member that it follows"));
    assert_eq!((cache.counted(), cache.failing()), (1, failing.to_vec()));
    // One that copies is about to.
    cache.says(2, |said| (said.streams, said.is_whole) = (false, false));
    assert_eq!(cache.counted(), 2);
    cache.says(1, |said| said.cannot_store = true);
    assert_eq!(cache.counted(), 0);
}

#[test]
fn while_the_primary_is_not_heard_of_its_replicas_say_whether_it_takes_writes() {
    let mut cache = Cache::new(1);
    cache.site.presence(1, PresenceState::Suspect);
    assert_eq!(cache.counted(), 2, "for a moment");
    cache.members.lead.is_held = true;
    assert_eq!(cache.counted(), 0, "nobody takes over from it");
    cache.site.presence(1, PresenceState::Unreachable);
    assert_eq!(cache.counted(), 2, "they get data from it");
    cache.says(2, |said| said.streams = false);
    assert_eq!(cache.counted(), 1);
    cache.says(3, |said| said.streams = false);
    assert_eq!(cache.counted(), 0);

    // Not enough of them; and none, where it needs none, says nothing of it.
    let mut cache = Cache::new(2);
    cache.site.presence(1, PresenceState::Unreachable);
    assert_eq!(cache.counted(), 2);
    cache.says(3, |said| said.streams = false);
    assert_eq!(cache.counted(), 0);
    let mut cache = Cache::new(0);
    cache.site.presence(1, PresenceState::Unreachable);
    (2..=3).for_each(|number| cache.says(number, |said| said.streams = false));
    assert_eq!(cache.counted(), 0);
}

#[test]
fn after_a_restore_replicas_of_a_primary_that_is_not_recorded_count() {
    let mut cache = Cache::new(1);
    (1..=3).for_each(|number| {
        cache.says(number, |said| {
            (said.is_primary, said.follows, said.streams) = (false, Some(url(4)), true);
            said.replicas.clear();
        });
    });
    assert_eq!(cache.counted(), 0, "that one is not of the ensemble");
    cache.members.contradicted.insert("n-4".parse().unwrap());
    assert_eq!(cache.counted(), 3);
    (1..=3).for_each(|number| cache.says(number, |said| (said.is_primary, said.streams) = (false, false)));
    assert_eq!(cache.counted(), 0);
}

/// Such as one whose directory is gone: it serves, and is lost with its process.
#[test]
fn a_member_that_works_and_warns_is_told_of_and_counts() {
    let mut cache = Cache::new(1);
    let mut registers = |serving: CheckStatus| {
        cache.registers(2, &[], serving);
        let counts = counts(cache.fleet(), &cache.members);
        (counts.working, counts.warning, cache.failing())
    };
    assert_eq!(registers(CheckStatus::Passing), (3, 0, Vec::new()));
    let warning = || CheckStatus::Warning { reason: "its directory is gone".into() };
    assert_eq!(registers(warning()), (3, 1, ["db-2 its directory is gone".to_string()].to_vec()));
}

/// An agent that accepts no orders, as on a full disk, goes on saying that its own is the primary.
#[test]
fn clients_find_the_recorded_primary_alone() {
    let mut cache = Cache::new(1);
    let record = |cache: &mut Cache| cache.site.put(Record::EnsembleMembers(cache.members.clone()));
    cache.registers(1, &["primary"], CheckStatus::Passing);
    assert_eq!(cache.found(), [1], "a service that somebody runs");
    record(&mut cache);
    assert_eq!(cache.found(), [1]);
    cache.members.lead.primary = Some(MemberNumber::new(2));
    record(&mut cache);
    assert!(cache.found().is_empty(), "the former one still says so");
    cache.registers(2, &["primary"], CheckStatus::Passing);
    cache.registers(1, &["primary"], CheckStatus::Warning { reason: "its disk is full".into() });
    assert_eq!(cache.found(), [2]);
    cache.members.members.remove(&MemberNumber::new(1));
    record(&mut cache);
    assert_eq!(cache.found(), [2], "removed, and not stopped");
    // After a restore it is as they say.
    cache.members.contradicted.insert("n-4".to_string());
    record(&mut cache);
    assert_eq!(cache.found(), [1, 2]);
}

#[test]
fn a_primary_on_a_node_that_was_decommissioned_does_not_count_though_replicas_get_its_data() {
    let mut cache = Cache::new(1);
    cache.site.put(Record::Node(Node { decommissioned: Some(by()), ..node(1, Labels::default()) }));
    assert_eq!((cache.heard(), cache.counted()), ([2, 3].to_vec(), 0));
    // Another one has taken over, with one replica.
    cache.members.lead.primary = Some(MemberNumber::new(2));
    cache.says(2, |said| {
        (said.is_primary, said.follows, said.streams) = (true, None, false);
        said.replicas = [url(3)].to_vec();
    });
    cache.says(3, |said| said.follows = Some(url(2)));
    assert_eq!((cache.counted(), cache.failing()), (2, Vec::new()));
}

#[test]
fn a_member_that_is_to_leave_and_does_not_is_told_of_after_a_minute_also_of_a_deleted_ensemble() {
    let mut cache = Cache::new(0);
    let number = MemberNumber::new(3);
    cache.members.members.get_mut(&number).unwrap().phase = MemberPhase::Leaving(RemovalReason::Deleted);
    let mut report = report(&cache.members, number, MemberState::Failed);
    report.reason = "ensemble cache: member 3 cannot be stopped: exit code 5".to_string();
    cache.site.tell(&cache.members, 3, report.clone());
    assert_eq!(cache.failing(), [""; 0], "it takes its time");
    let late = NOW.plus(Span::from_secs(60));
    let told = ["db-3 is to leave, and has not: it cannot be stopped: exit code 5"];
    assert_eq!(cache.failing_at(late), told);
    report.state = MemberState::Left;
    cache.site.tell(&cache.members, 3, report);
    assert_eq!(cache.failing_at(late), [""; 0]);
}
