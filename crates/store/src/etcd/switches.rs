//! Tells of switches between members, without repeating itself: while no member can answer, each call switches many times a second.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Shortest time between two messages.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Which switches were told.
#[derive(Debug, Default)]
pub(super) struct Switches(Mutex<SwitchCount>);

#[derive(Debug, Default)]
struct SwitchCount {
    told: Option<Instant>,
    untold: u64,
}

impl Switches {
    /// Tells of a switch at once if none was told in the last minute, and otherwise with the next one that is.
    pub(super) fn happened(&self, from: &str, to: &str) {
        let admitted = self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now());
        match admitted {
            Some(0) => tracing::info!(from, to, "asking another member of etcd"),
            Some(untold) => {
                tracing::info!(from, to, untold, "asking another member of etcd, again and again")
            }
            None => {}
        }
    }
}

impl SwitchCount {
    /// Whether a switch is told now, and how many were not since the last one that was.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < TOLD_EVERY) {
            self.untold = self.untold.saturating_add(1);
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_switches_one_a_minute_is_told_with_the_number_of_the_others() {
        let (mut count, start) = (SwitchCount::default(), Instant::now());
        assert_eq!(count.admit(start), Some(0));
        for millis in 1..=1_000 {
            assert_eq!(count.admit(start + Duration::from_millis(millis * 50)), None);
        }
        assert_eq!(count.admit(start + TOLD_EVERY), Some(1_000));
        assert_eq!(count.admit(start + TOLD_EVERY * 3), Some(0));
    }
}
