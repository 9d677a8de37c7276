use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::sink::{SinkFile, Webhook};
use crate::words::counter::SinkRevision;
use crate::words::filter::Filter;
use crate::words::label::Labels;

fn at(second: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(1_000_000 + second))
}

fn sink(attempts: u32) -> Sink {
    let webhook = Webhook {
        url: "https://receiver.example".into(),
        secrets: Vec::new(),
        headers: BTreeMap::new(),
        timeout: Span::from_secs(1),
        attempts,
        max_age: Span::from_secs(86_400),
    };
    Sink {
        name: "audit".parse().unwrap(),
        revision: SinkRevision::new(1),
        target: SinkTarget::Webhook(webhook),
        filter: Filter::all(),
        disabled: false,
        labels: Labels::default(),
        annotation: Annotation::of("kim".parse().unwrap(), at(0)),
    }
}

fn event(number: u64, subject: &str) -> Event {
    Event {
        sequence: Sequence::new(number),
        time: at(0),
        actor: "kim".parse().unwrap(),
        kind: "node.joined".into(),
        subject: subject.into(),
        before: None,
        after: None,
        cause: String::new(),
        caused_by: None,
    }
}

fn state(cursor: u64) -> SinkState {
    SinkState::new("audit".parse().unwrap(), Sequence::new(cursor))
}

fn failed(kind: FailureKind) -> FailedAttempt {
    FailedAttempt { kind, reason: "status 500".into(), retry_after: None }
}

#[test]
fn the_delays_grow_to_a_limit_and_what_the_receiver_asks_for_counts_to_a_limit() {
    let (sink, event, mut state) = (sink(1_000), event(1, "node/a"), state(0));
    let mut before = Span::ZERO;
    for attempt in 1..40 {
        assert_eq!(state.fail(&sink, &event, &failed(FailureKind::Refused), at(0)), None);
        let retry = state.retry.clone().unwrap();
        let delay = retry.next.since(at(0));
        assert_eq!(retry.attempts, attempt);
        assert!(delay >= before || delay >= MAX_DELAY, "{attempt}: {delay}");
        assert!(delay <= Span::from_millis(MAX_DELAY.as_millis() * 5 / 4), "{attempt}: {delay}");
        before = delay;
    }
    let asks = |asked| FailedAttempt { retry_after: Some(asked), ..failed(FailureKind::Unavailable) };
    state.fail(&sink, &event, &asks(Span::from_secs(1_000)), at(0));
    assert_eq!(state.retry.clone().unwrap().next, at(1_000));
    state.fail(&sink, &event, &asks(Span::from_secs(100_000_000)), at(0));
    assert_eq!(state.retry.clone().unwrap().next, at(0).plus(MAX_RETRY_AFTER));
    assert_eq!(turn(&sink, &state, Sequence::new(1), at(10)), SinkTurn::Wait(Some(at(3_600))));
    // A time far ahead is one of a clock that was set back.
    state.retry.as_mut().unwrap().next = at(1_000_000);
    assert_eq!(turn(&sink, &state, Sequence::new(1), at(0)), SinkTurn::After(Sequence::ZERO));
}

#[test]
fn an_event_that_is_refused_too_often_is_a_dead_letter_and_the_next_one_follows() {
    let (sink, mut state) = (sink(3), state(0));
    let first = event(1, "node/a");
    assert_eq!(state.fail(&sink, &first, &failed(FailureKind::Refused), at(0)), None);
    assert_eq!(state.fail(&sink, &first, &failed(FailureKind::Unavailable), at(10)), None);
    assert_eq!(state.fail(&sink, &first, &failed(FailureKind::Refused), at(20)), None);
    let said = state.fail(&sink, &first, &failed(FailureKind::Refused), at(30)).unwrap();
    assert_eq!((said.kind, said.after.as_deref()), ("sink.dead_lettered", Some("1")));
    assert_eq!(said.cause, "status 500, after 4 attempts");
    assert_eq!(turn(&sink, &state, Sequence::new(2), at(30)), SinkTurn::After(Sequence::new(1)));
    // Of those that follow at once, nothing is told, until one is delivered.
    for number in 2..=3 {
        let next = event(number, "node/a");
        let told: Vec<_> =
            (0..3).filter_map(|_| state.fail(&sink, &next, &failed(FailureKind::Refused), at(40))).collect();
        assert_eq!(told, []);
    }
    state.deliver(Sequence::new(4), "status 200", at(50));
    let next = event(5, "node/a");
    let told = (0..3).filter_map(|_| state.fail(&sink, &next, &failed(FailureKind::Refused), at(60)));
    assert_eq!(told.count(), 1);
    assert_eq!(state.dead_letters.iter().map(|letter| letter.event.get()).collect::<Vec<_>>(), [1, 2, 3, 5]);

    // They are sent again before the next ones, in order.
    assert_eq!(state.resend_dead_letters(), 4);
    let mut sent = Vec::new();
    while let SinkTurn::Again(event) = turn(&sink, &state, Sequence::new(6), at(70)) {
        sent.push(event.get());
        state.deliver(event, "status 200", at(70));
    }
    assert_eq!((sent.as_slice(), state.cursor), (&[1, 2, 3, 5][..], Sequence::new(5)));
    assert_eq!(state.dead_letters, []);
}

#[test]
fn a_dead_letter_counts_all_attempts_at_its_event_whatever_was_changed_in_between() {
    let (sink, mut state) = (sink(2), state(0));
    let first = event(1, "node/a");
    let fails = |state: &mut SinkState, event: &Event, kind| state.fail(&sink, event, &failed(kind), at(0));
    assert_eq!(fails(&mut state, &first, FailureKind::Refused), None);
    // As when the sink is changed or enabled: it has as many attempts as a new one.
    state.retry_anew();
    assert_eq!(turn(&sink, &state, Sequence::new(1), at(0)), SinkTurn::After(Sequence::ZERO));
    assert_eq!(fails(&mut state, &first, FailureKind::Refused), None);
    assert_eq!(state.retry.clone().unwrap().attempts, 1);
    assert_eq!(fails(&mut state, &first, FailureKind::Gone).unwrap().kind, "sink.stopped");
    state.stopped = None;
    assert_eq!(fails(&mut state, &first, FailureKind::Refused), None);
    let said = fails(&mut state, &first, FailureKind::Refused).unwrap();
    assert_eq!(said.cause, "status 500, after 5 attempts");
    assert_eq!((state.dead_letters[0].attempts, state.earlier_attempts.len()), (5, 0));

    // As when dead letters are sent again, while another event waits for its next attempt.
    let second = event(2, "node/b");
    assert_eq!(fails(&mut state, &second, FailureKind::Unavailable), None);
    assert_eq!(state.resend_dead_letters(), 1);
    assert_eq!(fails(&mut state, &first, FailureKind::Refused), None);
    fails(&mut state, &first, FailureKind::Refused);
    assert_eq!(state.dead_letters[0].attempts, 7);
    for _ in 0..2 {
        fails(&mut state, &second, FailureKind::Refused);
    }
    assert_eq!(state.dead_letters[1].attempts, 3);
    // One that is delivered leaves nothing behind, nor do those that are not kept any more.
    state.resend_dead_letters();
    state.deliver(Sequence::new(1), "status 200", at(0));
    state.deliver(Sequence::new(2), "status 200", at(0));
    fails(&mut state, &event(3, "node/a"), FailureKind::Refused);
    state.rewind(Sequence::new(3));
    state.skip_to(&sink, Sequence::new(9));
    assert_eq!(state.earlier_attempts, BTreeMap::new());
}

#[test]
fn a_receiver_that_is_away_holds_the_events_until_they_are_too_old() {
    let (sink, mut state) = (sink(2), state(0));
    for second in 0..100 {
        assert_eq!(
            state.fail(&sink, &event(1, "node/a"), &failed(FailureKind::Unavailable), at(second)),
            None
        );
    }
    let late = at(86_401);
    let said = state.fail(&sink, &event(1, "node/a"), &failed(FailureKind::Unavailable), late).unwrap();
    assert_eq!(said.kind, "sink.dead_lettered");
    // What this side cannot send is never given up.
    assert_eq!(state.fail(&sink, &event(2, "node/a"), &failed(FailureKind::Own), late), None);
    let file = SinkFile { path: "events.jsonl".into(), max_bytes: 1, keep: 1 };
    let file = Sink { target: SinkTarget::File(file), ..sink };
    assert_eq!(state.fail(&file, &event(2, "node/a"), &failed(FailureKind::Refused), late), None);
}

#[test]
fn a_receiver_that_is_gone_stops_the_sink_until_it_is_changed() {
    let (sink, mut state) = (sink(3), state(0));
    let said = state.fail(&sink, &event(1, "node/a"), &failed(FailureKind::Gone), at(0)).unwrap();
    assert_eq!(said.kind, "sink.stopped");
    assert_eq!(turn(&sink, &state, Sequence::new(9), at(0)), SinkTurn::Wait(None));
    assert!(waits_for(&sink, &state, at(0)).unwrap().contains("status 500"));
    let changed = Sink { revision: SinkRevision::new(2), ..sink };
    assert_eq!(turn(&changed, &state, Sequence::new(9), at(0)), SinkTurn::After(Sequence::ZERO));
    let disabled = Sink { disabled: true, ..changed };
    assert_eq!(turn(&disabled, &state, Sequence::new(9), at(0)), SinkTurn::Wait(None));
}

#[test]
fn events_that_are_not_kept_any_more_are_a_gap_and_one_may_go_back() {
    let (sink, mut state) = (sink(3), state(4));
    state.fail(&sink, &event(5, "node/a"), &failed(FailureKind::Refused), at(0));
    assert_eq!(state.skip_to(&sink, Sequence::new(5)), None);
    let said = state.skip_to(&sink, Sequence::new(8)).unwrap();
    assert_eq!((said.kind, said.after.as_deref()), ("sink.gap", Some("5..7")));
    assert_eq!((state.cursor, &state.retry), (Sequence::new(7), &None));
    assert_eq!(state.skip_to(&sink, Sequence::new(8)), None);
    state.rewind(Sequence::new(3));
    assert_eq!(state.cursor, Sequence::new(2));
    state.rewind(Sequence::new(30));
    assert_eq!(state.cursor, Sequence::new(2), "nothing is skipped by it");
}

#[test]
fn what_is_said_of_a_sink_is_not_for_it_and_of_events_about_sinks_no_dead_letter_is_told() {
    let (sink, mut state) = (sink(1), state(0));
    assert!(!may_have(&sink.name, "sink/audit"));
    assert!(may_have(&sink.name, "sink/audit-2") && may_have(&sink.name, "node/audit"));
    let of_other = event(1, "sink/other");
    assert_eq!(state.fail(&sink, &of_other, &failed(FailureKind::Refused), at(0)), None);
    assert_eq!(state.dead_letters.len(), 1);
}

#[test]
fn a_long_answer_is_one_short_line() {
    let mut state = state(0);
    state.deliver(Sequence::new(1), &format!("{}\nmore", "ä".repeat(2_000)), at(0));
    let answer = state.last_attempt.unwrap().answer;
    assert!(answer.len() <= MAX_REASON_BYTES && answer.ends_with('…') && !answer.contains('\n'));
}

fn outcome() -> impl Strategy<Value = Option<FailureKind>> {
    prop_oneof![
        4 => Just(None),
        3 => Just(Some(FailureKind::Refused)),
        2 => Just(Some(FailureKind::Unavailable)),
        1 => Just(Some(FailureKind::Own)),
    ]
}

proptest! {
    /// However attempts end, and wherever the sender dies and begins again at what is recorded: events are sent in order, each is delivered
    /// or a dead letter, and none twice without a death.
    #[test]
    fn every_event_is_delivered_in_order_or_is_a_dead_letter(
        outcomes in prop::collection::vec((outcome(), prop::bool::weighted(0.1)), 1..300),
        attempts in 1..4_u32,
    ) {
        let (sink, last) = (sink(attempts), Sequence::new(12));
        let mut recorded = state(0);
        let (mut state, mut now) = (recorded.clone(), at(0));
        let (mut delivered, mut lost): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut outcomes = outcomes.into_iter().chain(core::iter::repeat((None, false)));
        loop {
            match turn(&sink, &state, last, now) {
                SinkTurn::Wait(Some(next)) => {
                    prop_assert!(next > now);
                    now = next;
                }
                SinkTurn::Wait(None) => break,
                SinkTurn::Again(_) => prop_assert!(false, "nobody asked for it"),
                SinkTurn::After(after) => {
                    let next = event(after.get() + 1, "node/a");
                    let (outcome, dies) = outcomes.next().unwrap();
                    match outcome {
                        None => {
                            state.deliver(next.sequence, "status 200", now);
                            delivered.push(next.sequence.get());
                        }
                        Some(kind) => {
                            state.fail(&sink, &next, &failed(kind), now);
                            if state.cursor == next.sequence {
                                lost.push(next.sequence.get());
                                // With its event, at once.
                                recorded = state.clone();
                            }
                        }
                    }
                    if dies {
                        state = recorded.clone();
                    } else if now.as_millis() % 3 == 0 {
                        recorded = state.clone();
                    }
                    prop_assert!(state.dead_letters.len() <= MAX_DEAD_LETTERS);
                }
            }
        }
        for number in 1..=last.get() {
            prop_assert!(delivered.contains(&number) || lost.contains(&number), "{number}");
        }
        let mut newest = 0;
        for number in delivered {
            // After a death it goes back to one that was delivered before, and to no later one.
            prop_assert!(number <= newest || (newest + 1..number).all(|missed| lost.contains(&missed)));
            newest = newest.max(number);
        }
        prop_assert_eq!(state.cursor, last);
    }
}

#[test]
fn a_sink_is_stuck_once_it_stopped_or_an_event_failed_for_a_minute() {
    let (sink, first, mut state) = (sink(1_000), event(1, "node/a"), state(0));
    assert_eq!(stuck_since(&sink, &state, at(0)), None);
    state.fail(&sink, &first, &failed(FailureKind::Own), at(10));
    assert_eq!(stuck_since(&sink, &state, at(69)), None);
    state.fail(&sink, &first, &failed(FailureKind::Own), at(40));
    assert_eq!(stuck_since(&sink, &state, at(70)), Some(at(10)));
    state.deliver(first.sequence, "200", at(71));
    assert_eq!(stuck_since(&sink, &state, at(200)), None);
    state.fail(&sink, &event(2, "node/a"), &failed(FailureKind::Gone), at(80));
    assert_eq!(stuck_since(&sink, &state, at(80)), Some(at(80)));
    // What a person does is no trouble.
    let disabled = Sink { disabled: true, ..sink.clone() };
    let changed = Sink { revision: SinkRevision::new(2), ..sink };
    assert_eq!((stuck_since(&disabled, &state, at(80)), stuck_since(&changed, &state, at(80))), (None, None));
}

#[test]
fn a_sink_whose_secrets_cannot_sign_says_so_until_they_can_or_it_is_changed() {
    let (sink, first, mut state) = (sink(1_000), event(1, "node/a"), state(0));
    assert!(state.note_secrets(&sink, Some("secret key: it is empty"), at(10)));
    assert!(!state.note_secrets(&sink, Some("secret key: it is empty"), at(70)), "nothing new to record");
    assert_eq!(waits_for(&sink, &state, at(70)).unwrap(), "it cannot sign: secret key: it is empty");
    assert_eq!(stuck_since(&sink, &state, at(70)), Some(at(10)), "since it was found");
    let changed = Sink { revision: SinkRevision::new(2), ..sink.clone() };
    assert_eq!((waits_for(&changed, &state, at(70)), stuck_since(&changed, &state, at(70))), (None, None));
    state.fail(&sink, &first, &failed(FailureKind::Own), at(80));
    assert!(waits_for(&sink, &state, at(80)).unwrap().starts_with("event 1 failed once"), "that says more");
    state.deliver(first.sequence, "200", at(90));
    assert_eq!((waits_for(&sink, &state, at(90)), state.defect.clone()), (None, None));
    state.note_secrets(&sink, Some("secret key: it is empty"), at(100));
    assert!(state.note_secrets(&sink, None, at(110)) && !state.note_secrets(&sink, None, at(120)));
    assert_eq!(stuck_since(&sink, &state, at(120)), None);
}
