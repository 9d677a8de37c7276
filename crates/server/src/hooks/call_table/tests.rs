use bellwether_core::records::hook_answers::{HookPurpose, RolloutJudgement};
use bellwether_core::records::policy::hook::{Hook, MonitorSource};
use bellwether_core::records::rollout::TargetCounts;
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::version::Version;

use super::super::call_spec::RolloutSubject;
use super::*;

const EVERY: Span = Span::from_secs(10);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn spec(question: HookQuestion) -> HookCallSpec {
    let key = HookCallKey {
        namespace: Namespace::parse("default").unwrap(),
        entity: EntityName::parse("web").unwrap(),
        asked: question.asked(),
    };
    let versions = RolloutSubject { version: Version::parse("v2").unwrap(), from: None };
    let hook = Hook { every: EVERY, ..Hook::at("http://h".to_owned()) };
    HookCallSpec {
        key,
        rollout: RolloutNumber::new(1),
        versions,
        hook,
        source: MonitorSource::Hook,
        question,
    }
}

fn approval(turned: u64) -> HookCallSpec {
    spec(HookQuestion::Approval { turned, targets: vec![TargetName::parse("web-1").unwrap()] })
}

#[test]
fn a_repeated_question_waits_and_one_with_other_contents_does_not() {
    let (mut table, known) = (CallTable::default(), HookAnswers::default());
    assert_eq!(table.due(&approval(0), &known, at(5)), CallDue::At(at(5)));
    table.started(approval(0));
    assert_eq!(table.due(&approval(1), &known, at(6)), CallDue::InFlight);
    table.answered(&approval(0).key, false, at(100));
    assert_eq!(table.due(&approval(0), &known, at(101)), CallDue::At(at(10_100)));
    assert_eq!(table.due(&approval(1), &known, at(101)), CallDue::At(at(350)));
}

#[test]
fn trouble_is_not_asked_again_before_its_time_whatever_changes() {
    let (mut table, known) = (CallTable::default(), HookAnswers::default());
    table.started(approval(0));
    table.answered(&approval(0).key, true, at(0));
    let CallDue::At(due) = table.due(&approval(1), &known, at(1)) else { panic!("nothing is under way") };
    assert!((at(10_000)..at(11_000)).contains(&due), "{due:?}");
    let mut elsewhere = approval(0);
    elsewhere.hook.url = "http://other".to_owned();
    assert_eq!(table.due(&elsewhere, &known, at(1)), CallDue::At(at(1)), "another hook has not failed");
}

#[test]
fn answers_recorded_by_an_earlier_leader_count() {
    let table = CallTable::default();
    let judgement = RolloutJudgement { failing: 0, reason: String::new(), at: at(1_000) };
    let known =
        HookAnswers { rollout: RolloutNumber::new(1), monitor: Some(judgement), ..HookAnswers::default() };
    let watch = spec(HookQuestion::Monitor { counts: TargetCounts::default() });
    assert_eq!(table.due(&watch, &known, at(2_000)), CallDue::At(at(11_000)));
    let earlier = HookAnswers { rollout: RolloutNumber::ZERO, ..known };
    assert_eq!(table.due(&watch, &earlier, at(2_000)), CallDue::At(at(2_000)));
}

#[test]
fn figures_are_no_news_and_entities_at_rest_are_forgotten() {
    let (mut table, known) = (CallTable::default(), HookAnswers::default());
    let watch =
        |targets| spec(HookQuestion::Monitor { counts: TargetCounts { targets, ..TargetCounts::default() } });
    table.started(watch(1));
    table.keep_only(&BTreeSet::new());
    assert_eq!(table.due(&watch(1), &known, at(1)), CallDue::InFlight, "what is under way is not forgotten");
    table.answered(&watch(1).key, false, at(0));
    assert_eq!(table.due(&watch(2), &known, at(1)), CallDue::At(at(10_000)));
    table.keep_only(&BTreeSet::new());
    assert_eq!(table.due(&watch(2), &known, at(1)), CallDue::At(at(1)));
    assert_eq!(watch(1).key.asked, HookPurpose::Monitor);
}

#[test]
fn a_controller_that_hangs_leaves_room_for_the_others() {
    let mut table = CallTable::default();
    for number in 0..TO_ONE_ADDRESS {
        let mut spec = approval(0);
        spec.key.entity = EntityName::parse(&format!("web-{number}")).unwrap();
        table.started(spec);
    }
    let mut in_flight = table.in_flight();
    assert!(!in_flight.take("http://h"));
    assert!(in_flight.take("http://other"));
    table.answered(
        &HookCallKey { entity: EntityName::parse("web-0").unwrap(), ..approval(0).key },
        true,
        at(0),
    );
    assert!(table.in_flight().take("http://h"));
}
