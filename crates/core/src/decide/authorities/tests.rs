use alloc::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::records::key::Record;
use crate::records::key::global::GlobalRecord;
use crate::words::counter::{RescanNumber, Revision};
use crate::words::label::Labels;
use crate::words::name::{Namespace, NodeName, SecretKeyId};

/// A step of a person, with the number of the authority that is made.
#[derive(Debug, Clone, Copy)]
enum Step {
    Prepare(u8),
    Activate,
    Retire,
    Cancel,
}

fn founding() -> FoundingAuthority {
    FoundingAuthority { fingerprint: "founding".into(), certificate: "PEM".into(), since: None }
}

fn made(number: u8) -> NewAuthority {
    let key = Ciphertext { key: SecretKeyId::parse("k").unwrap(), text: "sealed".into() };
    NewAuthority { fingerprint: format!("made-{number}"), certificate: "PEM".into(), key }
}

const fn at(millis: u64) -> (Timestamp, Epoch) {
    (Timestamp::from_millis(millis), Epoch::ZERO)
}

fn take(present: Option<&Authorities>, step: Step) -> Result<Authorities, PhaseRefusal> {
    match step {
        Step::Prepare(number) => prepare(present, &founding(), made(number), at(1)),
        Step::Activate => activate(present, at(2)),
        Step::Retire => retire(present, at(3)),
        Step::Cancel => cancel(present, at(4)),
    }
}

fn steps() -> impl Strategy<Value = alloc::vec::Vec<Step>> {
    let step = prop_oneof![
        any::<u8>().prop_map(Step::Prepare),
        Just(Step::Activate),
        Just(Step::Retire),
        Just(Step::Cancel)
    ];
    proptest::collection::vec(step, 0..30)
}

proptest! {
    #[test]
    fn whatever_is_asked_one_authority_is_active_and_none_that_signs_was_not_trusted_before(steps in steps()) {
        let mut present: Option<Authorities> = None;
        for step in steps {
            let Ok(next) = take(present.as_ref(), step) else { continue };
            let count = |phase| next.all.iter().filter(|each| each.phase == phase).count();
            prop_assert_eq!(count(AuthorityPhase::Active), 1);
            prop_assert!(count(AuthorityPhase::Next) + count(AuthorityPhase::Previous) <= 1);
            prop_assert!(next.trusted().count() <= 2);
            let version = present.as_ref().map_or(AuthoritiesVersion::ZERO, |before| before.version);
            prop_assert!(next.version > version);
            let active = next.in_phase(AuthorityPhase::Active).unwrap();
            if let Some(before) = &present {
                // Who trusts what was trusted one step ago can verify what is signed now, and the other way round.
                prop_assert!(before.trusted().any(|each| each.fingerprint == active.fingerprint));
                let signed = before.in_phase(AuthorityPhase::Active).unwrap();
                prop_assert!(next.trusted().any(|each| each.fingerprint == signed.fingerprint));
            }
            for each in &next.all {
                prop_assert!(each.key.is_none() || each.phase.is_trusted(), "a key is kept of one that is retired");
                prop_assert!(each.key.is_some() || !each.phase.is_trusted() || each.fingerprint == "founding");
            }
            let retired = present.iter().flat_map(|before| &before.all).filter(|each| !each.phase.is_trusted());
            for each in retired {
                prop_assert!(next.all.contains(each), "what is retired is never trusted again");
            }
            present = Some(next);
        }
    }
}

#[test]
fn each_step_is_refused_with_its_reason_until_the_one_before_is_done() {
    assert_eq!(take(None, Step::Activate), Err(PhaseRefusal::NoNext));
    assert_eq!(take(None, Step::Cancel), Err(PhaseRefusal::NoNext));
    assert_eq!(take(None, Step::Retire), Err(PhaseRefusal::NoPrevious));
    let prepared = take(None, Step::Prepare(1)).unwrap();
    assert_eq!(take(Some(&prepared), Step::Prepare(2)), Err(PhaseRefusal::HasNext));
    let cancelled = take(Some(&prepared), Step::Cancel).unwrap();
    assert_eq!(cancelled.in_phase(AuthorityPhase::Active).unwrap().fingerprint, "founding");
    let active = take(Some(&prepared), Step::Activate).unwrap();
    assert_eq!(active.in_phase(AuthorityPhase::Active).unwrap().fingerprint, "made-1");
    assert_eq!(take(Some(&active), Step::Prepare(2)), Err(PhaseRefusal::HasPrevious));
    let retired = take(Some(&active), Step::Retire).unwrap();
    assert_eq!(retired.trusted().count(), 1);
    assert!(take(Some(&retired), Step::Prepare(2)).is_ok());
}

#[test]
fn after_a_restore_versions_are_above_those_that_nodes_may_know() {
    let prepared = prepare(None, &founding(), made(1), (Timestamp::EPOCH, Epoch::new(1_000))).unwrap();
    assert!(prepared.version.get() > 1_000);
}

fn node(name: &str, trust: Option<NodeTrust>) -> Node {
    Node {
        name: NodeName::parse(name).unwrap(),
        labels: Labels::default(),
        joined_at: Timestamp::EPOCH,
        key_fingerprint: String::new(),
        next_key_fingerprint: None,
        trust,
        pause: None,
        cordon: None,
        decommissioned: None,
        rescan: RescanNumber::ZERO,
        logical: None,
        services: vec![crate::access::NamePattern::Any],
    }
}

#[test]
fn nodes_are_behind_until_they_trust_the_next_authority_and_until_their_certificate_is_of_it() {
    let mut world = World::default();
    let namespace = Namespace::parse("default").unwrap();
    let trust = |version, issuer: &str| {
        Some(NodeTrust { version: AuthoritiesVersion::new(version), issuer: issuer.to_string() })
    };
    let put = |world: &mut World, record| world.put(&namespace, record, Revision::new(1));
    put(&mut world, Record::Node(node("silent", None)));
    put(&mut world, Record::Node(node("trusts", trust(1, "founding"))));
    put(&mut world, Record::Node(node("renewed", trust(2, "made-1"))));
    let progress = |world: &World| super::progress(world, &founding(), Timestamp::EPOCH);
    assert_eq!(progress(&world).not_renewed, ["default/renewed"]);
    let prepared = take(None, Step::Prepare(1)).unwrap();
    world.put_global(GlobalRecord::Authorities(prepared.clone()), Revision::new(2));
    assert_eq!(progress(&world).not_trusting_next, ["default/silent"]);
    let active = take(Some(&prepared), Step::Activate).unwrap();
    world.put_global(GlobalRecord::Authorities(active), Revision::new(3));
    let behind = progress(&world);
    assert_eq!((behind.nodes, behind.not_trusting_next.len()), (3, 0));
    assert_eq!(behind.not_renewed, ["default/silent", "default/trusts"]);
}
