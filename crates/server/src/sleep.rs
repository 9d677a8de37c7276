//! Waiting until the next thing is due.

use std::time::Duration;

use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;

/// Longest sleep before the clock is read again: timers stand still while the machine is suspended, and the clock may be steered.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Sleeps for a duration; never returns if there is none.
pub(crate) async fn sleep_or_never(duration: Option<Duration>) {
    match duration {
        // One millisecond longer: the clock is read in whole milliseconds, and must have reached the due time.
        Some(duration) => tokio::time::sleep(duration + Duration::from_millis(1)).await,
        None => std::future::pending().await,
    }
}

/// Sleeps until a time by this clock; never returns if there is none.
pub(crate) async fn sleep_until(clock: &Clock, at: Option<Timestamp>) {
    let Some(at) = at else { return std::future::pending().await };
    while clock.now() < at {
        let left = at.since(clock.now()).to_duration() + Duration::from_millis(1);
        tokio::time::sleep(left.min(LOOK_EVERY)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::words::time::Span;
    use bellwether_rt::clock::HostClock;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn what_became_due_while_the_machine_was_suspended_is_noticed_soon() {
        let host = HostClock::new(Timestamp::from_millis(1_000_000), 0);
        let clock = Clock::of_host(&host);
        let (began, due) = (Instant::now(), clock.now().plus(Span::from_secs(3_600)));
        let sleeps = sleep_until(&clock, Some(due));
        let suspends = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            // Timers did not count this hour, and the clock did.
            clock.set(clock.now().plus(Span::from_secs(3_600)));
        };
        tokio::join!(sleeps, suspends);
        assert!(began.elapsed() <= Duration::from_secs(66), "{:?}", began.elapsed());
    }
}
