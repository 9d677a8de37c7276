//! The calls of all hooks: owns their pace. A repeated question waits for the interval, a changed question is asked at once,
//! and a hook has at most one call in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use bellwether_core::records::hook_answers::HookAnswers;
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::time::{Span, Timestamp};

use super::call_spec::{HookCallKey, HookCallSpec};

/// Most calls in flight to one address: a controller that hangs leaves room for others.
const TO_ONE_ADDRESS: usize = 16;

/// Shortest interval between two calls of one hook for one entity.
const FLOOR: Span = Span::from_millis(250);

/// The last call of each hook.
#[derive(Debug, Default)]
pub(super) struct CallTable(BTreeMap<HookCallKey, CallEntry>);

#[derive(Debug)]
struct CallEntry {
    spec: HookCallSpec,
    state: CallState,
}

#[derive(Debug, Clone, Copy)]
enum CallState {
    /// In flight.
    InFlight,
    /// Answered at this time.
    Answer(Timestamp),
    /// Failed; not called again until this time.
    Failed { until: Timestamp },
}

/// Number of calls in flight, by address.
#[derive(Debug, Default)]
pub(super) struct CallsInFlight(BTreeMap<String, usize>);

impl CallsInFlight {
    /// Takes one place for a call to this address; false if none is left.
    pub(super) fn take(&mut self, url: &str) -> bool {
        let count = self.0.entry(url.to_owned()).or_default();
        *count += 1;
        *count <= TO_ONE_ADDRESS
    }
}

/// When a call is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallDue {
    /// From this time on.
    At(Timestamp),
    /// After the call in flight.
    InFlight,
}

impl CallTable {
    /// When this question is due, given the recorded answers.
    pub(super) fn due(&self, spec: &HookCallSpec, known: &HookAnswers, now: Timestamp) -> CallDue {
        let every = spec.hook.every;
        let Some(line) = self.0.get(&spec.key) else {
            let heard = (known.rollout == spec.rollout).then(|| heard(known, &spec.question));
            return CallDue::At(heard.flatten().map_or(now, |at| at.plus(every)));
        };
        let last = &line.spec;
        let same = last.rollout == spec.rollout && last.hook == spec.hook && last.source == spec.source;
        match line.state {
            CallState::InFlight => CallDue::InFlight,
            CallState::Answer(at) if same && !differs(&last.question, &spec.question) => {
                CallDue::At(at.plus(every))
            }
            CallState::Failed { until } if same => CallDue::At(until),
            CallState::Answer(at) => CallDue::At(at.plus(FLOOR)),
            CallState::Failed { .. } => CallDue::At(now),
        }
    }

    /// Counts the calls in flight.
    pub(super) fn in_flight(&self) -> CallsInFlight {
        let mut in_flight = CallsInFlight::default();
        for line in self.0.values().filter(|line| matches!(line.state, CallState::InFlight)) {
            in_flight.take(&line.spec.hook.url);
        }
        in_flight
    }

    /// Records that a call started.
    pub(super) fn started(&mut self, spec: HookCallSpec) {
        self.0.insert(spec.key.clone(), CallEntry { spec, state: CallState::InFlight });
    }

    /// Records that a call ended.
    pub(super) fn answered(&mut self, key: &HookCallKey, failed: bool, now: Timestamp) {
        let Some(line) = self.0.get_mut(key) else { return };
        line.state = if failed {
            let every = line.spec.hook.every;
            CallState::Failed { until: now.plus(every).plus(jitter(key, every, now)) }
        } else {
            CallState::Answer(now)
        };
    }

    /// Forgets entities without pending questions, unless a call is in flight.
    pub(super) fn keep_only(&mut self, live: &BTreeSet<(Namespace, EntityName)>) {
        self.0.retain(|key, line| {
            matches!(line.state, CallState::InFlight)
                || live.contains(&(key.namespace.clone(), key.entity.clone()))
        });
    }
}

/// When this question was answered, as recorded, possibly by an earlier leader.
fn heard(known: &HookAnswers, question: &HookQuestion) -> Option<Timestamp> {
    match question {
        HookQuestion::Selection { turned, .. } => {
            known.selection.as_ref().filter(|answer| answer.turned == *turned).map(|answer| answer.at)
        }
        HookQuestion::Approval { turned, targets } => {
            let answer = known.approval.as_ref();
            let same = answer.filter(|answer| answer.turned == *turned && answer.targets == *targets);
            same.map(|answer| answer.at)
        }
        HookQuestion::Monitor { .. } => known.monitor.as_ref().map(|judgement| judgement.at),
        HookQuestion::Monitoring { .. } | HookQuestion::Removal { .. } => None,
    }
}

/// Whether the question differs in a way that requires an early call: changed counts do not, and neither do targets that
/// are no longer included.
fn differs(last: &HookQuestion, question: &HookQuestion) -> bool {
    match (last, question) {
        (HookQuestion::Monitor { .. }, HookQuestion::Monitor { .. }) => false,
        (HookQuestion::Monitoring { targets: before }, HookQuestion::Monitoring { targets }) => {
            let before: BTreeSet<_> = before.iter().map(|(name, number)| (name, *number)).collect();
            targets.iter().any(|(name, number)| !before.contains(&(name, *number)))
        }
        (HookQuestion::Removal { targets: before }, HookQuestion::Removal { targets }) => {
            let before: BTreeSet<_> = before.iter().collect();
            targets.iter().any(|name| !before.contains(name))
        }
        (last, question) => last != question,
    }
}

/// Up to a tenth of the interval, different for each hook and time: hooks that failed together are not called together
/// again.
fn jitter(key: &HookCallKey, every: Span, now: Timestamp) -> Span {
    let mut hasher = DefaultHasher::new();
    (key.namespace.as_str(), key.entity.as_str(), key.asked.as_str(), now.as_millis()).hash(&mut hasher);
    Span::from_millis(hasher.finish() % (every.as_millis() / 10).max(1))
}

#[cfg(test)]
mod tests;
