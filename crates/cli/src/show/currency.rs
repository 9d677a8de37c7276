//! Says on stderr that an answer may be out of date, or that the store takes no changes: once for a command, and again at
//! intervals while it goes on. Owns what the present command was told.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_api::client::Notice;
use bellwether_core::words::time::Span;
use tokio::time::Instant;

use super::tell;

/// Interval at which a command that goes on says it again.
const AGAIN_AFTER: Duration = Duration::from_secs(15);

/// What the present command was told last.
static LAST: Mutex<AnswerState> =
    Mutex::new(AnswerState { said: None, is_stale: false, is_unrecorded: false });

/// What a command was told of the answers that it shows.
#[derive(Debug)]
struct AnswerState {
    /// What it said to a person, and when; none after it said that it is over, or nothing yet.
    said: Option<(Notice, Instant)>,
    /// Whether its last answer may be out of date.
    is_stale: bool,
    /// Whether the store took no changes then, so that presences were not recorded.
    is_unrecorded: bool,
}

/// Takes note of an answer, with its notice if it has one.
pub(crate) fn answered(notice: Option<Notice>) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(line) = last.take(notice, Instant::now()) {
        tell(&line);
    }
}

/// Whether the last answer may be out of date: what it says is how things were.
pub(crate) fn is_stale() -> bool {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).is_stale
}

/// Whether nodes may have come or gone since what the last answer says of them.
pub(crate) fn is_presence_old() -> bool {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last.is_stale || last.is_unrecorded
}

impl AnswerState {
    /// What to say after an answer.
    fn take(&mut self, notice: Option<Notice>, now: Instant) -> Option<String> {
        self.is_stale = notice.as_ref().is_some_and(|notice| notice.age.is_some());
        self.is_unrecorded = notice.as_ref().is_some_and(|notice| notice.unrecorded.is_some());
        let before = self.said.take();
        let was_stale = before.as_ref().is_some_and(|(before, _)| before.age.is_some());
        if let Some((before, _)) = before.as_ref().filter(|_| was_stale && !self.is_stale) {
            let line = format!("bellwether: {}", over(before, notice.as_ref()));
            self.said = notice.map(|notice| (notice, now));
            return Some(line);
        }
        match (before, notice) {
            (None, None) => None,
            (Some((before, _)), None) => Some(format!("bellwether: {}", over(&before, None))),
            (Some((before, at)), Some(_))
                if was_stale == self.is_stale && now.saturating_duration_since(at) < AGAIN_AFTER =>
            {
                self.said = Some((before, at));
                None
            }
            (_, Some(notice)) => {
                let line = format!("bellwether: warning: {}", warning(&notice));
                self.said = Some((notice, now));
                Some(line)
            }
        }
    }
}

fn warning(notice: &Notice) -> String {
    let trouble = notice.trouble.as_deref();
    let span = |age: Duration| Span::from_millis(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let Some(age) = notice.age.map(span) else {
        let unrecorded = notice.unrecorded.map(span).map(|since| {
            format!("; for {} this server could not record whether nodes are up", since.brief())
        });
        return format!("{}{}", trouble.unwrap_or_default(), unrecorded.unwrap_or_default());
    };
    let because = trouble.map_or(String::new(), |trouble| format!(" ({trouble})"));
    format!(
        "server {} has had no answer from its store for {}; what is shown is as of then{because}",
        notice.server,
        age.brief()
    )
}

/// What to say once an answer is up to date, or changes are accepted again.
fn over(before: &Notice, now: Option<&Notice>) -> String {
    let trouble = now.and_then(|now| now.trouble.as_deref());
    let still = trouble.map_or(String::new(), |trouble| format!(" ({trouble})"));
    match before.age {
        Some(_) => {
            format!("server {} reaches its store again; what is shown is up to date{still}", before.server)
        }
        None => "changes are accepted again".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stale(seconds: u64) -> Option<Notice> {
        let age = Some(Duration::from_secs(seconds));
        Some(Notice { server: "cp-1".to_owned(), age, trouble: None, unrecorded: None })
    }

    #[test]
    fn a_stale_answer_is_told_once_then_at_intervals_and_its_end_is_told_too() {
        let mut state = AnswerState { said: None, is_stale: false, is_unrecorded: false };
        let start = Instant::now();
        assert_eq!(state.take(None, start), None);
        let said = state.take(stale(42), start).unwrap();
        let wanted = "bellwether: warning: server cp-1 has had no answer from its store for 42s; what is shown is as of then";
        assert_eq!(said, wanted);
        assert!(state.is_stale);
        assert_eq!(state.take(stale(43), start + Duration::from_secs(1)), None);
        let again = state.take(stale(57), start + AGAIN_AFTER).unwrap();
        assert!(again.contains("for 57s"), "{again}");
        let over = state.take(None, start + AGAIN_AFTER).unwrap();
        assert!(over.contains("reaches its store again") && !state.is_stale, "{over}");
        assert_eq!(state.take(None, start + AGAIN_AFTER), None);
    }

    #[test]
    fn a_store_that_takes_no_changes_is_told_though_the_answer_is_current() {
        let mut state = AnswerState { said: None, is_stale: false, is_unrecorded: false };
        let trouble = Some("the store is read-only: etcd has no space".to_owned());
        let notice = Notice { server: "cp-1".to_owned(), age: None, trouble, unrecorded: None };
        let said = state.take(Some(notice.clone()), Instant::now()).unwrap();
        assert_eq!(said, "bellwether: warning: the store is read-only: etcd has no space");
        assert!(!state.is_stale);
        // That it may be out of date as well is news.
        let both = Notice { age: Some(Duration::from_secs(9)), ..notice };
        let said = state.take(Some(both.clone()), Instant::now()).unwrap();
        assert!(said.ends_with("as of then (the store is read-only: etcd has no space)"), "{said}");
        // What is shown is up to date before the store takes changes.
        let notice = Notice { age: None, ..both };
        let over = state.take(Some(notice.clone()), Instant::now()).unwrap();
        assert!(
            over.ends_with("what is shown is up to date (the store is read-only: etcd has no space)"),
            "{over}"
        );
        assert_eq!(state.take(Some(notice), Instant::now()), None);
        let over = state.take(None, Instant::now()).unwrap();
        assert_eq!(over, "bellwether: changes are accepted again");
        assert_eq!(state.take(None, Instant::now()), None);
    }

    #[test]
    fn while_the_store_takes_no_changes_no_presence_is_a_fact() {
        let mut state = AnswerState { said: None, is_stale: false, is_unrecorded: false };
        let trouble = Some("the store is read-only: it is full".to_owned());
        let unrecorded = Some(Duration::from_secs(90));
        let notice = Notice { server: "cp-1".to_owned(), age: None, trouble, unrecorded };
        let said = state.take(Some(notice), Instant::now()).unwrap();
        let wanted = "bellwether: warning: the store is read-only: it is full; for 1m 30s this server could not record whether nodes are up";
        assert_eq!(said, wanted);
        assert!(state.is_unrecorded && !state.is_stale);
        state.take(None, Instant::now());
        assert!(!state.is_unrecorded);
    }
}
