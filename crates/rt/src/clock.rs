//! The only clock. It tells the time, and decides nothing.

#[cfg(any(test, feature = "testing"))]
mod host;
mod line;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bellwether_core::words::time::{Span, Timestamp};

#[cfg(any(test, feature = "testing"))]
pub use self::host::HostClock;
pub use self::line::Pace;
use self::line::TimeLine;

/// A clock that never goes back once something has read it. Clones are one clock.
///
/// It reads the wall clock once, at start, and then counts by a clock that nobody sets: changing the host's wall clock neither
/// ends a soak early nor extends a deadline. A server [steers](Clock::steer) it towards the time that it finds to be right.
#[derive(Debug, Clone)]
pub struct Clock(Arc<ClockSource>);

#[derive(Debug)]
enum ClockSource {
    Counting(CountingClock),
    Manual(AtomicU64),
}

#[derive(Debug)]
struct CountingClock {
    ticks: Ticks,
    /// By how much its wall clock is another than the host's, in milliseconds: of use to tests.
    wall_apart_ms: i64,
    // A std mutex: held to read a few numbers, never across an await.
    line: Mutex<TimeLine>,
}

/// What a clock counts by.
#[derive(Debug)]
enum Ticks {
    /// `CLOCK_MONOTONIC`, which stands still while the machine is suspended.
    Running(Instant),
    /// `CLOCK_BOOTTIME`, which does not.
    SinceBoot,
    #[cfg(any(test, feature = "testing"))]
    Host(HostClock),
}

impl Ticks {
    fn now(&self) -> Span {
        match self {
            Self::Running(started) => {
                Span::from_millis(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX))
            }
            Self::SinceBoot => since_boot(),
            #[cfg(any(test, feature = "testing"))]
            Self::Host(host) => host.ticks(),
        }
    }

    fn wall(&self) -> Timestamp {
        match self {
            Self::Running(_) | Self::SinceBoot => wall(),
            #[cfg(any(test, feature = "testing"))]
            Self::Host(host) => host.wall(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

fn since_boot() -> Span {
    let read = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = Span::from_secs(u64::try_from(read.tv_sec).unwrap_or_default());
    seconds.plus(Span::from_millis(u64::try_from(read.tv_nsec).unwrap_or_default() / 1_000_000))
}

impl CountingClock {
    fn line(&self) -> MutexGuard<'_, TimeLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        // The ticks are read under the lock: otherwise a thread could read the time before a bend after one that it follows.
        let line = self.line();
        line.at(self.ticks.now())
    }

    fn wall(&self) -> Timestamp {
        let wall = self.ticks.wall().as_millis();
        Timestamp::from_millis(wall.saturating_add_signed(self.wall_apart_ms))
    }
}

impl Clock {
    /// The host's clock, from now on. It stands still while the machine is suspended, as all that an agent limits does.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn system() -> Self {
        Self::counting(Ticks::Running(Instant::now()))
    }

    /// The host's clock, from now on, in suspend too: the time of a server goes on for everybody else.
    #[must_use]
    pub fn of_server() -> Self {
        Self::counting(Ticks::SinceBoot)
    }

    fn counting(ticks: Ticks) -> Self {
        let line = Mutex::new(TimeLine::through(ticks.now(), ticks.wall()));
        Self(Arc::new(ClockSource::Counting(CountingClock { ticks, wall_apart_ms: 0, line })))
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
        Self::of_host(&HostClock::new(at, 0))
    }

    /// The clock of a process that begins now on a simulated machine.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn of_host(host: &HostClock) -> Self {
        Self::counting(Ticks::Host(host.clone()))
    }

    /// The clock of a machine whose wall clock reads `at` now; otherwise of the same kind.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn set_to(&self, at: Timestamp) -> Self {
        let ClockSource::Counting(from) = &*self.0 else { return Self::manual(at) };
        let ticks = match &from.ticks {
            Ticks::Running(_) => Ticks::Running(Instant::now()),
            Ticks::SinceBoot => Ticks::SinceBoot,
            #[cfg(any(test, feature = "testing"))]
            Ticks::Host(host) => Ticks::Host(host.clone()),
        };
        let wall_apart_ms = difference_ms(ticks.wall(), at);
        let line = Mutex::new(TimeLine::through(ticks.now(), at));
        Self(Arc::new(ClockSource::Counting(CountingClock { ticks, wall_apart_ms, line })))
    }

    /// The time now, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            ClockSource::Counting(clock) => clock.now(),
            ClockSource::Manual(millis) => Timestamp::from_millis(millis.load(Ordering::SeqCst)),
        }
    }

    /// What the host's wall clock shows now, whatever it was set to.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match &*self.0 {
            ClockSource::Counting(clock) => clock.wall(),
            ClockSource::Manual(_) => self.now(),
        }
    }

    /// Sets the time, also back: before anything has read it. It has no effect on a manual clock.
    pub fn set(&self, at: Timestamp) {
        if let ClockSource::Counting(clock) = &*self.0 {
            let mut line = clock.line();
            *line = TimeLine::through(clock.ticks.now(), at);
        }
    }

    /// Has the time gain these milliseconds little by little, or lose them if negative. What is left of an earlier difference is
    /// dropped. It has no effect on a manual clock.
    pub fn steer(&self, by_ms: i64, pace: Pace) {
        if let ClockSource::Counting(clock) = &*self.0 {
            let mut line = clock.line();
            *line = line.bent(clock.ticks.now(), by_ms, pace);
        }
    }

    /// The time since this machine's boot, in suspend too; no step of the wall clock moves it. `None` if the kernel does not
    /// say.
    #[must_use]
    pub fn since_boot(&self) -> Option<Span> {
        match &*self.0 {
            #[cfg(any(test, feature = "testing"))]
            ClockSource::Counting(CountingClock { ticks: Ticks::Host(_), .. }) => {
                Some(self.now().since(Timestamp::EPOCH))
            }
            ClockSource::Counting(_) => Some(since_boot()),
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

/// Milliseconds from one time to another; negative if that is earlier.
#[must_use]
pub fn difference_ms(from: Timestamp, to: Timestamp) -> i64 {
    let signed = |span: Span| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    if to >= from { signed(to.since(from)) } else { signed(from.since(to)).saturating_neg() }
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
    fn a_clock_that_is_steered_is_so_for_all_who_read_it_and_its_wall_clock_is_not() {
        let clock = Clock::of_server();
        let other = clock.clone();
        assert!(difference_ms(clock.now(), clock.wall()).abs() < 60_000);
        clock.set(clock.now().plus(Span::from_secs(3_600)));
        assert!(difference_ms(other.now(), other.wall()) < -3_500_000);
        other.steer(-3_600_000, Pace::Careful);
        let first = clock.now();
        assert!(clock.now() >= first && difference_ms(clock.now(), clock.wall()) < -3_500_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_simulated_machine_has_clocks_that_are_set_and_stand_still() {
        let host = HostClock::new(Timestamp::from_millis(1_000_000), 200);
        let clock = Clock::of_host(&host);
        tokio::time::advance(std::time::Duration::from_secs(1_000)).await;
        assert_eq!(clock.now().as_millis(), 2_000_200, "it goes fast by 200 parts in a million");
        host.step_wall(-500_000);
        assert_eq!((clock.now().as_millis(), clock.wall().as_millis()), (2_000_200, 1_500_200));
        host.stood_still(Span::from_secs(10));
        assert_eq!(clock.now().as_millis(), 1_990_200, "a suspended machine counts nothing");
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
