//! Observed time: only the time in which this process ran. It owns every limit after which something is called failed.
//!
//! A machine that is suspended, or a process that is stopped, does nothing, so that nothing can be held against what it waits
//! for. Time is therefore counted in short steps, and a step counts with its own length, however late it ends.

use std::time::Duration;

use tokio::time::Instant;

/// Longest step: what a standstill may count at most. One wake-up a second costs nothing while something is waited for.
const LONGEST_STEP: Duration = Duration::from_secs(1);

/// Shortest step: the resolution of the runtime's timers.
const SHORTEST_STEP: Duration = Duration::from_millis(1);

/// Steps in a limit shorter than ten of the longest ones: a standstill counts as a tenth of the limit at most.
const STEPS: u32 = 10;

/// A limit of observed time was reached before its future ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time limit was reached")]
pub struct LimitReached;

/// A limit of observed time, which runs from its creation.
///
/// It is exact to a step: a second, or a tenth of a shorter limit. Time counts while one of its futures is awaited; between them
/// at most one step does. It is not reached by a standstill: a step without one comes before its end, in which what
/// happened meanwhile is noticed.
#[derive(Debug)]
pub struct TimeLimit {
    left: Duration,
    step: Duration,
    /// End of what was counted.
    counted_to: Instant,
    standstills: u32,
    /// Whether the last step was a standstill.
    stood_still: bool,
}

impl TimeLimit {
    /// A limit that is reached after this much observed time.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        // In whole milliseconds: the runtime's timers would end a fraction later than it counts.
        let millis = u64::try_from((limit / STEPS).as_millis()).unwrap_or(u64::MAX);
        let step = Duration::from_millis(millis).clamp(SHORTEST_STEP, LONGEST_STEP);
        Self { left: limit, step, counted_to: Instant::now(), standstills: 0, stood_still: false }
    }

    /// What is left of it.
    #[must_use]
    pub fn left(&mut self) -> Duration {
        self.count();
        self.left
    }

    /// How long it may stay uncounted: waiting for longer counts as this much.
    #[must_use]
    pub fn next_step(&mut self) -> Duration {
        self.step.min(self.left())
    }

    /// How many standstills there were: steps that took more than twice their time.
    #[must_use]
    pub fn standstills(&mut self) -> u32 {
        self.count();
        self.standstills
    }

    /// Waits until it is reached. Cancel safe.
    pub async fn reached(&mut self) {
        while !self.left().is_zero() {
            tokio::time::sleep(self.next_step()).await;
        }
    }

    /// Waits for the future, at most until the limit is reached. The future is dropped then.
    ///
    /// # Errors
    /// If the limit was reached before.
    pub async fn bound<F: Future>(&mut self, future: F) -> Result<F::Output, LimitReached> {
        // The future comes first: what ended during a standstill has ended in time.
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = self.reached() => Err(LimitReached),
        }
    }

    /// Waits for the future, however long it takes, and counts that time.
    pub async fn count_during<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                biased;
                output = &mut future => {
                    self.count();
                    return output;
                }
                () = tokio::time::sleep(self.step) => self.count(),
            }
        }
    }

    /// Counts what passed since the last time: a step at most.
    fn count(&mut self) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.counted_to);
        self.counted_to = now;
        let stands_still = passed > self.step * 2;
        let counts = self.left.saturating_sub(passed.min(self.step));
        // Once in a row: where every step is late, time passes all the same.
        let holds = stands_still && !self.stood_still && !self.left.is_zero();
        self.left = if holds { counts.max(self.step) } else { counts };
        self.standstills = self.standstills.saturating_add(u32::from(stands_still));
        if !passed.is_zero() {
            self.stood_still = stands_still;
        }
    }
}

/// Sleeps until so much observed time has passed. Cancel safe.
pub async fn sleep(time: Duration) {
    TimeLimit::new(time).reached().await;
}

/// Waits for the future, at most for this much observed time.
///
/// # Errors
/// If the limit was reached before.
pub async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, LimitReached> {
    TimeLimit::new(limit).bound(future).await
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);
    const STANDSTILL: Duration = Duration::from_secs(300);

    /// Whether the future ends without any further time.
    async fn ends_now<F: Future>(future: F) -> bool {
        tokio::select! {
            biased;
            _ = future => true,
            () = tokio::task::yield_now() => false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_standstill_a_limit_is_the_time_it_says() {
        for limit in [Duration::ZERO, Duration::from_millis(7), Duration::from_millis(2_500), LIMIT] {
            let start = Instant::now();
            assert_eq!(timeout(limit, pending::<()>()).await, Err(LimitReached));
            assert_eq!(start.elapsed(), limit);
        }
        assert_eq!(timeout(Duration::ZERO, async { 1 }).await, Ok(1), "what has ended has ended in time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_standstill_counts_as_one_step_and_reaches_no_limit() {
        let mut limit = TimeLimit::new(LIMIT);
        assert!(!ends_now(limit.reached()).await);
        advance(STANDSTILL).await;
        assert_eq!((limit.left(), limit.standstills()), (LIMIT - LONGEST_STEP, 1));
        let start = Instant::now();
        limit.reached().await;
        assert_eq!(start.elapsed(), LIMIT - LONGEST_STEP);

        let mut short = TimeLimit::new(Duration::from_millis(100));
        short.count_during(sleep(Duration::from_millis(95))).await;
        advance(STANDSTILL).await;
        assert!(!ends_now(short.reached()).await, "what happened meanwhile is noticed first");
        short.reached().await;
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_also_where_every_step_is_late() {
        let mut limit = TimeLimit::new(LIMIT);
        for _ in 0..60 {
            advance(STANDSTILL).await;
            assert_eq!(limit.bound(async { 1 }).await, Ok(1));
            assert!(limit.standstills() > 0);
        }
        assert!(ends_now(limit.reached()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_ended_during_a_standstill_has_ended_in_time() {
        let (sender, receiver) = oneshot::channel();
        let mut limit = TimeLimit::new(Duration::from_secs(10));
        let mut receiver = std::pin::pin!(receiver);
        assert!(!ends_now(limit.bound(&mut receiver)).await);
        advance(STANDSTILL).await;
        sender.send(7).unwrap();
        assert_eq!(limit.bound(&mut receiver).await, Ok(Ok(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn several_futures_share_a_limit() {
        let mut limit = TimeLimit::new(LIMIT);
        for _ in 0..5 {
            limit.count_during(sleep(Duration::from_secs(10))).await;
        }
        assert_eq!(limit.left(), Duration::from_secs(10));
        assert_eq!(limit.bound(sleep(Duration::from_secs(11))).await, Err(LimitReached));
        assert_eq!((limit.left(), limit.standstills()), (Duration::ZERO, 0));
    }
}
