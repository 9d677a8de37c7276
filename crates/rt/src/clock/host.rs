//! The clocks of a simulated machine: they follow the runtime's time, at a speed of their own, and can be set and stand still.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bellwether_core::words::time::{Span, Timestamp};

/// The clocks of a simulated machine. Clones are the same machine's.
#[derive(Debug, Clone)]
pub struct HostClock(Arc<HostClockState>);

#[derive(Debug)]
struct HostClockState {
    at_start: Timestamp,
    started: tokio::time::Instant,
    /// By how many parts in a million it goes faster.
    drift_ppm: i64,
    /// By how much its wall clock was set, in milliseconds.
    set_ms: AtomicI64,
    /// How long it stood still, in milliseconds.
    stood_ms: AtomicU64,
}

impl HostClock {
    /// Clocks that read `at` now and go faster by so many parts in a million.
    #[must_use]
    pub fn new(at: Timestamp, drift_ppm: i64) -> Self {
        Self(Arc::new(HostClockState {
            at_start: at,
            started: tokio::time::Instant::now(),
            drift_ppm,
            set_ms: AtomicI64::new(0),
            stood_ms: AtomicU64::new(0),
        }))
    }

    /// Sets the wall clock by so many milliseconds.
    pub fn step_wall(&self, by_ms: i64) {
        self.0.set_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    /// Lets both clocks fall behind, as those of a virtual machine that was suspended.
    pub fn stood_still(&self, lasts: Span) {
        self.0.stood_ms.fetch_add(lasts.as_millis(), Ordering::SeqCst);
    }

    /// The time since the machine began.
    pub(super) fn ticks(&self) -> Span {
        let passed = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let gained = i64::try_from(passed).unwrap_or(i64::MAX).saturating_mul(self.0.drift_ppm) / 1_000_000;
        let stood = Span::from_millis(self.0.stood_ms.load(Ordering::SeqCst));
        Span::from_millis(passed.saturating_add_signed(gained)).minus(stood)
    }

    /// What the wall clock shows.
    pub(super) fn wall(&self) -> Timestamp {
        let at = self.0.at_start.plus(self.ticks()).as_millis();
        Timestamp::from_millis(at.saturating_add_signed(self.0.set_ms.load(Ordering::SeqCst)))
    }
}
