//! What a sink is to do now, what becomes of an event that could not be delivered, and how far that brings the sink.
//!
//! An event is tried again with growing delays until it is delivered or given up. Then the next one follows: one that a receiver never
//! takes holds up the rest for a bounded time.

use alloc::format;
use alloc::string::{String, ToString};

use crate::records::event::{Event, EventDraft};
use crate::records::sink::{Sink, SinkTarget};
use crate::records::sink_state::{
    DeadLetter, MAX_DEAD_LETTERS, MAX_REASON_BYTES, SinkAttempt, SinkDefect, SinkRetry, SinkState, SinkStop,
};
use crate::words::counter::Sequence;
use crate::words::name::SinkName;
use crate::words::random::RandomStream;
use crate::words::time::{Span, Timestamp};

/// The delay after the first failure; each further one doubles it.
const FIRST_DELAY: Span = Span::from_secs(1);

/// Longest delay of our own choice: a receiver that is back gets the events within some six minutes.
pub const MAX_DELAY: Span = Span::from_secs(300);

/// Longest delay that a receiver may ask for: one that asks for a year would stop the sink for good.
pub const MAX_RETRY_AFTER: Span = Span::from_secs(3_600);

/// Most events that are passed over before that is recorded: a new leader reads them again.
pub const MAX_UNRECORDED: u64 = 500;

/// For how long an event has failed before its sink counts as stuck: a receiver that is restarted is back before.
pub const STUCK_AFTER: Span = Span::from_secs(60);

/// What a failure says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The receiver refused this event. After so many refusals it is given up.
    Refused,
    /// The receiver could not be reached, or says that it cannot take events now: any other event would have failed as well. It is given up
    /// when it is too old.
    Unavailable,
    /// This side could not send it: a secret or a directory is missing. It is never given up.
    Own,
    /// The receiver says that it is gone for good.
    Gone,
}

/// A failed attempt, as the caller of the receiver saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// What the failure says.
    pub kind: FailureKind,
    /// Why, in one line.
    pub reason: String,
    /// How long the receiver asks to wait.
    pub retry_after: Option<Span>,
}

/// What a sink is to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkTurn {
    /// Nothing until this time, or until something changes.
    Wait(Option<Timestamp>),
    /// Go on with the events after this one.
    After(Sequence),
    /// Send this dead letter again.
    Again(Sequence),
}

/// What a sink is to do now; `last` is the last event of the namespace.
#[must_use]
pub fn turn(sink: &Sink, state: &SinkState, last: Sequence, now: Timestamp) -> SinkTurn {
    if sink.disabled || state.stop_at(sink.revision).is_some() {
        return SinkTurn::Wait(None);
    }
    if let Some(next) = state.retry.as_ref().map(|retry| retry.next)
        && next > now
        // A time that is further ahead is one of a clock that was set back since.
        && next.since(now) <= MAX_RETRY_AFTER.plus(MAX_DELAY)
    {
        return SinkTurn::Wait(Some(next));
    }
    match state.resend.first() {
        Some(event) => SinkTurn::Again(*event),
        None if state.cursor < last => SinkTurn::After(state.cursor),
        None => SinkTurn::Wait(None),
    }
}

/// Whether an event may be for a sink at all: what is said of the sink itself is not, or its failures would feed it.
#[must_use]
pub fn may_have(sink: &SinkName, subject: &str) -> bool {
    subject.strip_prefix("sink/") != Some(sink.as_str())
}

impl SinkState {
    /// Goes on to an event that is done with.
    pub fn pass(&mut self, event: Sequence) {
        match self.resend.first() {
            Some(first) if *first == event => drop(self.resend.remove(0)),
            Some(_) | None => self.cursor = self.cursor.max(event),
        }
        self.retry.take_if(|retry| retry.event == event);
        self.earlier_attempts.remove(&event);
    }

    /// Tries the event that waits for its next attempt at once, and as if it had not failed. What it has failed so far counts if it is given up.
    pub fn retry_anew(&mut self) {
        if let Some(retry) = self.retry.take() {
            self.note_earlier(retry.event, retry.attempts);
        }
    }

    fn note_earlier(&mut self, event: Sequence, attempts: u32) {
        let earlier = self.earlier_attempts.entry(event).or_default();
        *earlier = earlier.saturating_add(attempts);
    }

    /// Goes on to an event that was delivered.
    pub fn deliver(&mut self, event: Sequence, answer: &str, now: Timestamp) {
        self.delivered = self.delivered.saturating_add(1);
        self.last_delivery = Some(now);
        self.last_attempt = Some(SinkAttempt { event, at: now, delivered: true, answer: shortened(answer) });
        self.retry = None;
        self.in_dead_letters = false;
        self.defect = None;
        self.pass(event);
    }

    /// Notes why the secrets of the sink cannot sign, or that they can; whether that is news.
    pub fn note_secrets(&mut self, sink: &Sink, unusable: Option<&str>, now: Timestamp) -> bool {
        let defect = unusable.map(|reason| {
            let reason = shortened(reason);
            let known = self.defect_at(sink.revision).filter(|known| known.reason == reason);
            let at = known.map_or(now, |known| known.at);
            SinkDefect { revision: sink.revision, at, reason }
        });
        let is_news = defect != self.defect;
        self.defect = defect;
        is_news
    }

    /// Records a failed attempt at an event: it is tried again later, or is a dead letter, or the sink stops. Answers what is to be told.
    pub fn fail(
        &mut self,
        sink: &Sink,
        event: &Event,
        failed: &FailedAttempt,
        now: Timestamp,
    ) -> Option<EventDraft> {
        let reason = shortened(&failed.reason);
        let sequence = event.sequence;
        self.last_attempt =
            Some(SinkAttempt { event: sequence, at: now, delivered: false, answer: reason.clone() });
        if failed.kind == FailureKind::Gone {
            self.retry_anew();
            self.note_earlier(sequence, 1);
            let cause = format!("{reason}; it sends nothing until it is enabled or changed");
            self.stopped = Some(SinkStop { revision: sink.revision, at: now, reason });
            return Some(told("sink.stopped", sink, cause));
        }
        let before = self.retry.take().filter(|retry| retry.event == sequence);
        let count = |of: fn(&SinkRetry) -> u32| before.as_ref().map_or(0, of);
        let attempts = count(|retry| retry.attempts).saturating_add(1);
        let refusals =
            count(|retry| retry.refusals).saturating_add(u32::from(failed.kind == FailureKind::Refused));
        let since = before.as_ref().map_or(now, |retry| retry.since);
        let is_over = match (&sink.target, failed.kind) {
            // No event is at fault when this side cannot send it.
            (SinkTarget::File(_), _) | (_, FailureKind::Own) => false,
            (SinkTarget::Webhook(webhook), _) => {
                refusals >= webhook.attempts || now.since(event.time) > webhook.max_age
            }
        };
        if is_over {
            let earlier = self.earlier_attempts.get(&sequence).copied().unwrap_or_default();
            let attempts = attempts.saturating_add(earlier);
            return self.give_up(sink, event, DeadLetter { event: sequence, at: now, attempts, reason });
        }
        let own = delay(sink.name.as_str(), sequence, attempts);
        let asked = failed.retry_after.unwrap_or(Span::ZERO).min(MAX_RETRY_AFTER);
        self.retry =
            Some(SinkRetry { event: sequence, attempts, refusals, since, next: now.plus(own.max(asked)) });
        None
    }

    fn give_up(&mut self, sink: &Sink, event: &Event, letter: DeadLetter) -> Option<EventDraft> {
        let tries = if letter.attempts == 1 { "attempt" } else { "attempts" };
        let mut said =
            told("sink.dead_lettered", sink, format!("{}, after {} {tries}", letter.reason, letter.attempts));
        said.after = Some(event.sequence.to_string());
        self.dead_letters.retain(|known| known.event != letter.event);
        self.dead_letters.push(letter);
        let surplus = self.dead_letters.len().saturating_sub(MAX_DEAD_LETTERS);
        self.dead_letters.drain(..surplus);
        self.dead_lettered = self.dead_lettered.saturating_add(1);
        // Two sinks that tell each other of their dead letters would never end.
        let is_told = !self.in_dead_letters && !event.subject.starts_with("sink/");
        self.in_dead_letters = true;
        self.pass(event.sequence);
        is_told.then_some(said)
    }

    /// Passes the events over that are not kept any more, if the next one to send is `first`. Answers what is to be told.
    pub fn skip_to(&mut self, sink: &Sink, first: Sequence) -> Option<EventDraft> {
        let next = self.cursor.next();
        if first <= next {
            return None;
        }
        let last = Sequence::new(first.get().saturating_sub(1));
        let mut said = told("sink.gap", sink, "they are not kept any more, and were not sent".to_string());
        said.after = Some(if next == last { last.to_string() } else { format!("{next}..{last}") });
        self.retry.take_if(|retry| retry.event <= last);
        self.earlier_attempts.retain(|event, _| *event > last || self.resend.contains(event));
        self.cursor = last;
        Some(said)
    }

    /// Has all dead letters sent again before the next events. Answers how many.
    pub fn resend_dead_letters(&mut self) -> usize {
        let letters = core::mem::take(&mut self.dead_letters);
        let count = letters.len();
        for letter in letters {
            self.note_earlier(letter.event, letter.attempts);
            if !self.resend.contains(&letter.event) {
                self.resend.push(letter.event);
            }
        }
        self.retry_anew();
        count
    }

    /// Has all events from this one on sent again.
    pub fn rewind(&mut self, from: Sequence) {
        self.cursor = Sequence::new(from.get().saturating_sub(1)).min(self.cursor);
        self.retry_anew();
    }
}

/// What keeps a sink from sending, in one line; `None` while nothing does.
#[must_use]
pub fn waits_for(sink: &Sink, state: &SinkState, now: Timestamp) -> Option<String> {
    if sink.disabled {
        return Some("it is disabled".to_string());
    }
    if let Some(stopped) = state.stop_at(sink.revision) {
        return Some(format!("it stopped until it is enabled or changed: {}", stopped.reason));
    }
    let Some(SinkRetry { event, attempts, since, next, .. }) = &state.retry else {
        return state.defect_at(sink.revision).map(|defect| format!("it cannot sign: {}", defect.reason));
    };
    let failure = state.last_attempt.as_ref().filter(|last| !last.delivered);
    let reason = failure.map_or("", |failure| failure.answer.as_str());
    let next = match *next > now {
        true => format!("next attempt in {}", next.since(now).brief()),
        false => "next attempt now".to_string(),
    };
    let times = if *attempts == 1 { "once".to_string() } else { format!("{attempts} times") };
    Some(format!("event {event} failed {times} within {}, {next}: {reason}", now.since(*since).brief()))
}

/// Since when a sink that nobody disabled has stopped, cannot sign, or fails with the same event for at least [`STUCK_AFTER`]; `None` while
/// it sends.
#[must_use]
pub fn stuck_since(sink: &Sink, state: &SinkState, now: Timestamp) -> Option<Timestamp> {
    if sink.disabled {
        return None;
    }
    let stopped = state.stop_at(sink.revision).map(|stopped| stopped.at);
    let failing = state.retry.as_ref().map(|retry| retry.since);
    let defect = state.defect_at(sink.revision).map(|defect| defect.at);
    stopped.or(failing.filter(|since| now.since(*since) >= STUCK_AFTER)).or(defect)
}

/// The delay after so many failures of an event: doubled each time up to a limit, and a random part of up to a quarter, so that sinks
/// that failed together do not call together again.
fn delay(sink: &str, event: Sequence, attempts: u32) -> Span {
    let doubled = FIRST_DELAY.as_millis() << attempts.saturating_sub(1).min(32);
    let base = doubled.min(MAX_DELAY.as_millis());
    let mut random = RandomStream::for_one(event.get(), sink, u64::from(attempts));
    Span::from_millis(base.saturating_add(random.below(base / 4)))
}

fn told(kind: &'static str, sink: &Sink, cause: String) -> EventDraft {
    EventDraft { kind, subject: format!("sink/{}", sink.name), before: None, after: None, cause }
}

fn shortened(reason: &str) -> String {
    let line = reason.lines().next().unwrap_or_default();
    match line.char_indices().find(|(at, letter)| at + letter.len_utf8() > MAX_REASON_BYTES - 3) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_string(),
    }
}

#[cfg(test)]
mod tests;
