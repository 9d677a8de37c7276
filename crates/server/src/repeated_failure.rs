//! A failure that repeats for long, as from a store that takes no changes: it is told once, when it changes, and at intervals.

use std::time::Duration;

use tokio::time::Instant;

/// Interval at which a failure that goes on is told again: who opens a log sees it, and finds everything else in it too.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The failure that was told last.
#[derive(Debug, Default)]
pub(crate) struct RepeatedFailure(Option<(String, Instant)>);

impl RepeatedFailure {
    /// Whether to tell this failure now.
    pub(crate) fn is_news(&mut self, failure: &impl ToString) -> bool {
        let (text, now) = (failure.to_string(), Instant::now());
        let is_told = self
            .0
            .as_ref()
            .is_some_and(|(told, at)| *told == text && now.saturating_duration_since(*at) < AGAIN_AFTER);
        if !is_told {
            self.0 = Some((text, now));
        }
        !is_told
    }

    /// What failed succeeds: the next failure is news.
    pub(crate) fn is_over(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_told_once_then_when_it_changes_and_each_minute() {
        let mut failure = RepeatedFailure::default();
        assert!(failure.is_news(&"no space"));
        assert!(!failure.is_news(&"no space"));
        assert!(failure.is_news(&"no answer") && failure.is_news(&"no space"));
        tokio::time::advance(AGAIN_AFTER).await;
        assert!(failure.is_news(&"no space") && !failure.is_news(&"no space"));
        failure.is_over();
        assert!(failure.is_news(&"no space"));
    }
}
