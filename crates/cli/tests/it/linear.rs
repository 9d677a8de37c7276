//! Checks that a recorded history of one param is linearizable: that its operations, each taking effect at one moment between its
//! call and its answer, explain every answer. Searches for such an order (Wing and Gong), and remembers where it has been.

use std::collections::{BTreeSet, HashSet};

use tokio::time::Instant;

/// The value of the param; `None` if there is none.
pub(crate) type Value = Option<String>;

/// What a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Read the value.
    Read,
    /// Write a value if there is this one.
    Swap { expected: Value, new: Value },
}

/// What a client was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It read this.
    Value(Value),
    /// It was written.
    Written,
    /// Another value was there; this one, if it was said.
    Lost(Option<Value>),
    /// None: it may have taken effect at any later moment, or never.
    Unknown,
}

/// One call of a client.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) answer: Answer,
    pub(crate) called: Instant,
    pub(crate) answered: Instant,
}

impl Call {
    /// The value after this call took effect on `value`, if its answer allows that. One without an answer takes effect only if
    /// that changes something.
    fn after(&self, value: &Value) -> Option<Value> {
        match (&self.operation, &self.answer) {
            (Operation::Read, Answer::Value(read)) => (read == value).then(|| value.clone()),
            (Operation::Read, Answer::Written | Answer::Lost(_) | Answer::Unknown) => None,
            (Operation::Swap { expected, new }, Answer::Written | Answer::Unknown | Answer::Value(_)) => {
                (expected == value).then(|| new.clone())
            }
            (Operation::Swap { expected, .. }, Answer::Lost(seen)) => {
                let fits = expected != value && seen.as_ref().is_none_or(|seen| seen == value);
                fits.then(|| value.clone())
            }
        }
    }

    /// Time by which it took effect, if it did.
    fn end(&self) -> Option<Instant> {
        (self.answer != Answer::Unknown).then_some(self.answered)
    }
}

/// A part of an order: what took effect, and the value then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Prefix {
    value: Value,
    /// Calls before `next` that have not taken effect.
    open: BTreeSet<usize>,
    /// The first call that was not looked at, in the order of their beginnings.
    next: usize,
}

/// Whether the calls, beginning with `first`, are linearizable.
pub(crate) fn is_linearizable(first: Value, calls: &[Call]) -> bool {
    let mut calls: Vec<&Call> = calls.iter().collect();
    calls.sort_by_key(|call| call.called);
    let mut seen = HashSet::new();
    let mut prefixes = vec![Prefix { value: first, open: BTreeSet::new(), next: 0 }];
    while let Some(mut prefix) = prefixes.pop() {
        // Only what was called before the first of the answers could be next.
        let open_end = prefix.open.iter().filter_map(|index| calls.get(*index)?.end()).min();
        let mut first_end = open_end;
        while let Some(call) =
            calls.get(prefix.next).filter(|call| first_end.is_none_or(|end| call.called <= end))
        {
            first_end = [first_end, call.end()].into_iter().flatten().min();
            prefix.open.insert(prefix.next);
            prefix.next += 1;
        }
        if first_end.is_none() {
            return true;
        }
        if !seen.insert(prefix.clone()) {
            continue;
        }
        for index in &prefix.open {
            if let Some(value) = calls.get(*index).and_then(|call| call.after(&prefix.value)) {
                let mut open = prefix.open.clone();
                open.remove(index);
                prefixes.push(Prefix { value, open, next: prefix.next });
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn value(text: &str) -> Value {
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn swap(expected: &str, new: &str) -> Operation {
        Operation::Swap { expected: value(expected), new: value(new) }
    }

    /// Calls with the times of their call and answer.
    fn holds(calls: &[(u64, u64, Operation, Answer)]) -> bool {
        let zero = Instant::now();
        let at = |time: u64| zero + Duration::from_secs(time);
        let calls = calls.iter().cloned().map(|(called, answered, operation, answer)| Call {
            operation,
            answer,
            called: at(called),
            answered: at(answered),
        });
        is_linearizable(None, &calls.collect::<Vec<_>>())
    }

    #[test]
    fn one_of_two_who_race_wins_and_both_do_not() {
        let race = |second| holds(&[(0, 5, swap("", "a"), Answer::Written), (0, 5, swap("", "b"), second)]);
        assert!(race(Answer::Lost(Some(value("a")))) && race(Answer::Lost(None)));
        assert!(!race(Answer::Written) && !race(Answer::Lost(Some(value("c")))));
    }

    #[test]
    fn a_read_is_not_stale_and_sees_nothing_that_was_refused() {
        let read = |called, seen: &str| {
            holds(&[
                (0, 2, swap("", "a"), Answer::Written),
                (3, 5, swap("a", "b"), Answer::Written),
                (called, 9, Operation::Read, Answer::Value(value(seen))),
            ])
        };
        assert!(read(4, "a") && read(4, "b") && read(6, "b"));
        assert!(!read(6, "a") && !read(4, "") && !read(4, "c"));
    }

    #[test]
    fn what_was_not_answered_may_take_effect_late_or_never_but_not_twice() {
        let unknown = |reads: [&str; 3]| {
            let mut calls = vec![(0, 1, swap("", "a"), Answer::Unknown)];
            for (index, seen) in (2_u64..).zip(reads) {
                calls.push((index * 10, index * 10 + 1, Operation::Read, Answer::Value(value(seen))));
            }
            holds(&calls)
        };
        assert!(unknown(["", "", ""]) && unknown(["", "a", "a"]) && unknown(["a", "a", "a"]));
        assert!(!unknown(["a", "", ""]) && !unknown(["", "a", ""]));
    }
}
