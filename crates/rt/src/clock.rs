//! The only clock. It tells the time, and decides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bellwether_core::words::time::{Span, Timestamp};

/// A clock that never goes back while the process lives.
///
/// The system clock reads the wall clock once, at start, and then adds the time of the monotonic clock:
/// changing the host's wall clock neither ends a soak early nor extends a deadline.
#[derive(Debug, Clone)]
pub struct Clock(Arc<ClockSource>);

#[derive(Debug)]
enum ClockSource {
    System {
        wall_at_start: Timestamp,
        started: Instant,
    },
    Manual(AtomicU64),
    #[cfg(any(test, feature = "testing"))]
    Runtime {
        at_start: Timestamp,
        started: tokio::time::Instant,
    },
}

impl Clock {
    /// The host's clock, from now on.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        Self::anchored(Timestamp::from_millis(millis))
    }

    /// A clock that reads `at` now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    fn anchored(at: Timestamp) -> Self {
        Self(Arc::new(ClockSource::System { wall_at_start: at, started: Instant::now() }))
    }

    /// A clock that only moves when [`Clock::advance`] is called.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Arc::new(ClockSource::Manual(AtomicU64::new(start.as_millis()))))
    }

    /// A clock that follows the runtime's time, which tests may pause, and reads `at` now.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn of_runtime(at: Timestamp) -> Self {
        Self(Arc::new(ClockSource::Runtime { at_start: at, started: tokio::time::Instant::now() }))
    }

    /// A clock of the same kind that reads `at` now.
    #[must_use]
    pub fn set_to(&self, at: Timestamp) -> Self {
        let source = match &*self.0 {
            ClockSource::System { .. } => return Self::anchored(at),
            #[cfg(any(test, feature = "testing"))]
            ClockSource::Runtime { .. } => {
                ClockSource::Runtime { at_start: at, started: tokio::time::Instant::now() }
            }
            ClockSource::Manual(_) => ClockSource::Manual(AtomicU64::new(at.as_millis())),
        };
        Self(Arc::new(source))
    }

    /// The time now, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            ClockSource::System { wall_at_start, started } => {
                let since = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                wall_at_start.plus(Span::from_millis(since))
            }
            #[cfg(any(test, feature = "testing"))]
            ClockSource::Runtime { at_start, started } => {
                let since = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                at_start.plus(Span::from_millis(since))
            }
            ClockSource::Manual(millis) => Timestamp::from_millis(millis.load(Ordering::SeqCst)),
        }
    }

    /// The time since this machine's boot, in suspend too; no step of the wall clock moves it. `None` if the kernel does not
    /// say.
    #[must_use]
    pub fn since_boot(&self) -> Option<Span> {
        match &*self.0 {
            ClockSource::System { .. } => {
                // The first number is CLOCK_BOOTTIME in seconds with two decimals.
                let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
                let (seconds, hundredths) = uptime.split_whitespace().next()?.split_once('.')?;
                let (seconds, hundredths): (u64, u64) = (seconds.parse().ok()?, hundredths.parse().ok()?);
                Some(Span::from_secs(seconds).plus(Span::from_millis(hundredths.saturating_mul(10))))
            }
            #[cfg(any(test, feature = "testing"))]
            ClockSource::Runtime { .. } => Some(self.now().since(Timestamp::EPOCH)),
            ClockSource::Manual(_) => Some(self.now().since(Timestamp::EPOCH)),
        }
    }

    /// Moves a manual clock forward. It has no effect on other clocks.
    pub fn advance(&self, by: Span) {
        if let ClockSource::Manual(millis) = &*self.0 {
            millis.fetch_add(by.as_millis(), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_advanced() {
        let clock = Clock::manual(Timestamp::from_millis(1_000));
        assert_eq!(clock.now(), Timestamp::from_millis(1_000));
        clock.advance(Span::from_secs(2));
        assert_eq!(clock.now(), Timestamp::from_millis(3_000));
    }

    #[test]
    fn a_clock_that_is_set_continues_from_there() {
        let hour = Span::from_secs(3_600);
        let there = Clock::system().now().plus(hour);
        assert!(Clock::system().set_to(there).now() >= there);
    }

    #[test]
    fn the_time_since_boot_is_read_from_the_kernel() {
        let clock = Clock::system();
        let first = clock.since_boot().unwrap();
        assert!(first > Span::ZERO && clock.since_boot().unwrap() >= first);
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = Clock::system();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
