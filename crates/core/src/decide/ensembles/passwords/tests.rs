use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::access::NamePattern;
use crate::decide::ensembles::verdict::decide;
use crate::records::annotation::Annotation;
use crate::records::ensemble::{EnsembleMode, EnsembleService, EnsembleSize, RedisSettings};
use crate::records::ensemble_members::Member;
use crate::records::ensemble_snapshots::SnapshotPolicy;
use crate::records::key::{AnyRecord, Key, Record};
use crate::records::member::MemberState;
use crate::records::secret::SecretSource;
use crate::rollout::environment::Watch;
use crate::verdict::Write;
use crate::words::counter::{EnsembleRevision, Revision, SecretRevision};
use crate::words::label::Labels;
use crate::words::name::{Namespace, SecretName};
use crate::words::selector::Selector;
use crate::words::time::{Span, Timestamp};
use crate::world::World;

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

fn annotation(second: u64) -> Annotation {
    Annotation::of("ann".parse().unwrap(), at(second))
}

/// An ensemble with a member, and secrets.
struct Site {
    world: World,
    namespace: Namespace,
    ensemble: Ensemble,
}

impl Site {
    fn new() -> Self {
        let redis = RedisSettings { port: 6379, min_replicas: 0, tls: true, password_secrets: Vec::new() };
        let ensemble = Ensemble {
            name: "cache".parse().unwrap(),
            revision: EnsembleRevision::new(1),
            service: EnsembleService::Redis(redis),
            size: EnsembleSize::Number(1),
            filter: Selector::all(),
            spread: None,
            snapshots: SnapshotPolicy::default(),
            restore: None,
            adopt: None,
            failover_after: Span::from_secs(30),
            join_within: Span::from_secs(60),
            mode: EnsembleMode::Managed,
            labels: Labels::default(),
            annotation: annotation(1),
        };
        let mut members = EnsembleMembers::none(ensemble.name.clone(), ensemble.service.clone(), at(1));
        members.last = members.last.next();
        let member = Member {
            node: "n-1".parse().unwrap(),
            phase: MemberPhase::Serving,
            since: at(1),
            store_id: None,
            peer_url: "redis://n-1".to_string(),
        };
        members.members.insert(members.last, member);
        let namespace = Namespace::parse("default").unwrap();
        let mut site = Self { world: World::default(), namespace, ensemble };
        site.names(&[]);
        site.put(Record::EnsembleMembers(members));
        site
    }

    fn put(&mut self, record: Record) {
        let revision = self.world.revision.next();
        self.world.put(&self.namespace, record, revision);
        self.world.revision = revision;
    }

    fn secret(&mut self, name: &str, revision: u64, second: u64) {
        let (provider, reference) = ("vault".parse().unwrap(), "a".to_string());
        self.put(Record::Secret(Secret {
            name: name.parse().unwrap(),
            revision: SecretRevision::new(revision),
            source: SecretSource::Provided { provider, reference },
            readers: [NamePattern::Any].into(),
            description: String::new(),
            annotation: annotation(second),
        }));
    }

    /// The ensemble names these secrets.
    fn names(&mut self, secrets: &[&str]) {
        let secrets: Vec<SecretName> = secrets.iter().map(|name| name.parse().unwrap()).collect();
        if let EnsembleService::Redis(redis) = &mut self.ensemble.service {
            redis.password_secrets = secrets;
        }
        let ensemble = self.ensemble.clone();
        self.put(Record::Ensemble(ensemble));
    }

    fn fleet(&self) -> &Fleet {
        &self.world.fleets[&self.namespace]
    }

    fn touched(&self) -> Option<Revision> {
        self.fleet().touched_ensembles.get(&self.ensemble.name)
    }

    /// The passwords in the order of the member, once all is decided.
    fn ordered(&mut self) -> Vec<(String, String)> {
        for _ in 0..10 {
            let verdict = decide(self.fleet(), &self.ensemble.name, None, (Watch::default(), at(100)));
            let writes: Vec<_> = verdict.changesets.into_iter().flat_map(|of| of.writes).collect();
            if writes.is_empty() {
                break;
            }
            for write in writes {
                let Write::Put(record) = write else { panic!("a deletion") };
                let AnyRecord::Namespaced(record) = *record else { panic!("a global record") };
                self.put(record);
            }
        }
        let members = &self.fleet().ensemble_members[&self.ensemble.name].value;
        let (_, order) = members.orders().next().unwrap();
        order.passwords.iter().map(|(name, version)| (name.to_string(), version.clone())).collect()
    }
}

#[test]
fn a_new_value_of_a_secret_is_ordered_and_one_that_is_gone_opens_nothing() {
    let mut site = Site::new();
    assert!(site.ordered().is_empty());
    site.secret("redis", 1, 10);
    site.names(&["redis"]);
    let first = site.ordered();
    assert_eq!(first.len(), 1);
    let touched = site.touched();
    site.secret("other", 1, 11);
    assert_eq!((site.touched(), site.ordered()), (touched, first.clone()), "it is not named");
    site.secret("redis", 2, 12);
    assert!(site.touched() > touched);
    let second = site.ordered();
    assert_ne!(first, second);
    // A secret of the same name that is made anew has another value, whatever its revision.
    let deleted = Key::Secret("redis".parse().unwrap());
    let (namespace, revision) = (site.namespace.clone(), site.world.revision.next());
    site.world.delete(&namespace, &deleted, revision);
    assert_eq!(site.ordered(), second, "nobody is let in without a password");
    site.secret("redis", 2, 20);
    assert_ne!(site.ordered(), second);
    site.secret("next", 1, 30);
    site.names(&["redis", "next"]);
    assert_eq!(site.ordered().len(), 2);
    site.names(&[]);
    assert!(site.ordered().is_empty());
}

#[test]
fn who_does_not_take_the_present_value_is_named() {
    let mut site = Site::new();
    site.secret("redis", 1, 10);
    site.names(&["redis"]);
    site.ordered();
    let members = site.fleet().ensemble_members[&site.ensemble.name].value.clone();
    let told = |passwords: Option<PasswordVersions>, is_held: bool| {
        let report = MemberReport {
            passwords,
            ..MemberReport::of(members.last, members.identity.clone(), MemberState::Working)
        };
        lines(&members, is_held, |_| Some(&report)).concat()
    };
    let said = |passwords| told(passwords, false);
    let all = "all members take the present value of secret redis as the password of clients";
    assert_eq!(said(Some(members.passwords.clone())), all);
    assert!(said(Some(BTreeMap::new())).contains("yet: 1 left"));
    let held = told(Some(BTreeMap::new()), true);
    assert!(held.starts_with("members 1 keep the passwords of clients that they have"), "{held}");
    assert!(said(None).starts_with("whether members 1 take"));
    let open = EnsembleMembers { passwords: BTreeMap::new(), ..(*members).clone() };
    assert!(lines(&open, false, |_| None).is_empty());
}
