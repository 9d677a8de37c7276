//! Where the registrations of this node are recorded, shared by who sends them and who hears that others were recorded since.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_core::words::time::{Span, Timestamp};

/// Within this time, others are recorded a second time only if somebody else goes on registering: a restore of the control plane does it once.
const AGAIN_WITHIN: Span = Span::from_secs(600);

/// Where the registrations are recorded.
#[derive(Debug, Default)]
pub(super) struct RegisteredAt(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    /// The revision; `None` while registrations are sent, or before.
    revision: Option<u64>,
    /// When others were recorded last.
    overwritten: Option<Timestamp>,
    /// Whether its own were recorded since then: before, it is the same time that is seen again, as while a store takes no changes.
    is_answered: bool,
}

impl RegisteredAt {
    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registrations are sent: where these are recorded is not known yet.
    pub(super) fn sending(&self) {
        self.recorded().revision = None;
    }

    pub(super) fn arrived(&self, revision: u64) {
        let mut recorded = self.recorded();
        (recorded.revision, recorded.is_answered) = (Some(revision), true);
    }

    pub(super) fn revision(&self) -> Option<u64> {
        self.recorded().revision
    }

    /// Hears that somebody else was recorded after this revision, which a request named; whether that happens again and again.
    pub(super) fn overwritten(&self, named: Option<u64>, now: Timestamp) -> bool {
        let mut recorded = self.recorded();
        // What was sent since then may be what was seen.
        if recorded.revision != named {
            return false;
        }
        let is_answered = std::mem::take(&mut recorded.is_answered);
        let before = recorded.overwritten.replace(now);
        is_answered && before.is_some_and(|before| now.since(before) < AGAIN_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_else_is_seen_the_second_time_and_own_registrations_never_are() {
        let at = RegisteredAt::default();
        let second = |seconds: u64| Timestamp::EPOCH.plus(Span::from_secs(seconds));
        at.arrived(7);
        assert!(!at.overwritten(Some(7), second(0)), "as after a restore");
        at.sending();
        assert!(!at.overwritten(Some(7), second(1)), "its own are on their way");
        at.arrived(9);
        assert!(!at.overwritten(Some(7), second(2)), "they have arrived since");
        assert!(!at.overwritten(Some(9), second(700)), "another restore");
        assert!(
            !at.overwritten(Some(9), second(701)),
            "it is the same time, as its own were not recorded since"
        );
        at.arrived(11);
        assert!(at.overwritten(Some(11), second(900)));
    }
}
