//! Waiting until the next thing is due.

use std::time::Duration;

/// Sleeps for a duration; never returns if there is none.
pub(crate) async fn sleep_or_never(duration: Option<Duration>) {
    match duration {
        // One millisecond longer: the clock is read in whole milliseconds, and must have reached the due time.
        Some(duration) => tokio::time::sleep(duration + Duration::from_millis(1)).await,
        None => std::future::pending().await,
    }
}
