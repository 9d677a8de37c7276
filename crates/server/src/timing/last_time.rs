//! When this server ran last, in a file of its data directory. A system clock that is far later at a start may be wrong, and time does
//! not go back: tokens would have expired for good. Such a start waits until something else speaks for the clock.

use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::clock::Clock;
use bellwether_store::{Store, StoreError};
use futures_util::future::join_all;

use super::peers::{PeerTimes, measure};
use super::start::others;
use crate::config::Config;

/// Longest time without this server that is believed without a second source.
const BELIEVED: Span = Span::from_secs(24 * 60 * 60);

/// How often the time is written.
const WRITTEN_EVERY: Span = Span::from_secs(60 * 60);

/// How often a start that waits looks again.
const AGAIN: Span = Span::from_secs(5);

/// The file with the time.
#[derive(Debug, Clone)]
pub(crate) struct LastTime(PathBuf);

impl LastTime {
    /// The file of this server.
    pub(crate) fn of(config: &Config) -> Self {
        Self(config.data_dir.join("last-time"))
    }

    /// Whether the system clock is so much later than the last time that something else must speak for it.
    pub(crate) fn is_doubtful(&self, config: &Config, clock: &Clock) -> bool {
        let Some(synchronized) = &config.clock_synchronized_file else { return false };
        self.read().is_some_and(|last| clock.wall() > last.plus(BELIEVED)) && !synchronized.exists()
    }

    /// Waits while the system clock is doubtful.
    ///
    /// # Errors
    /// [`StoreError`] when the other servers cannot be listed.
    pub(crate) async fn believed(
        &self,
        config: &Config,
        store: &Store,
        (clock, peers): (&Clock, &dyn PeerTimes),
    ) -> Result<(), StoreError> {
        let mut is_told = false;
        while self.is_doubtful(config, clock) {
            let others = others(store, &config.name).await?;
            let asked = join_all(others.iter().map(|peer| measure(clock, peers, peer))).await;
            if asked.iter().any(Option::is_some) {
                // Their time is taken over.
                break;
            }
            if !is_told {
                tracing::error!(
                    "waiting, and not listening: the system clock is {} ahead of the time at which this server last ran, and a wrong one \
                     would let tokens and certificates expire; if it is right, start with --accept-clock; otherwise correct it; this \
                     server also continues when another one tells the time, or when clock_synchronized_file exists",
                    self.read().map_or(Span::ZERO, |last| clock.wall().since(last)).brief(),
                );
                is_told = true;
            }
            tokio::time::sleep(AGAIN.to_duration()).await;
        }
        if is_told {
            tracing::info!("the system clock is believed; continuing");
        }
        clock.set(clock.wall());
        Ok(())
    }

    /// The last time; of a file that cannot be understood, when it was written. `None` before the first.
    fn read(&self) -> Option<Timestamp> {
        let text = std::fs::read_to_string(&self.0).ok();
        let said = text.and_then(|text| text.trim().parse().ok()).map(Timestamp::from_millis);
        let written = || {
            let since = std::fs::metadata(&self.0).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(Timestamp::from_millis(u64::try_from(since.as_millis()).ok()?))
        };
        said.or_else(written)
    }

    fn write(&self, now: Timestamp) {
        // Half a number is no time that has been: it is replaced in one move.
        let new = self.0.with_extension("new");
        let written = || -> io::Result<()> {
            std::fs::write(&new, format!("{}\n", now.as_millis()))?;
            std::fs::rename(&new, &self.0)
        };
        if let Err(error) = written() {
            tracing::warn!(%error, path = %self.0.display(), "cannot write the time at which this server runs");
        }
    }

    /// Writes the time from now on.
    pub(crate) async fn keep(self, clock: Clock, stop: tokio_util::sync::CancellationToken) {
        while !stop.is_cancelled() {
            self.write(clock.now());
            let waited = tokio::time::sleep(WRITTEN_EVERY.to_duration());
            stop.run_until_cancelled(waited).await;
        }
        self.write(clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_cannot_be_read_is_when_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let last = LastTime(dir.path().join("last-time"));
        assert_eq!(last.read(), None, "it never ran");
        last.write(Timestamp::from_millis(7_000));
        assert_eq!(last.read(), Some(Timestamp::from_millis(7_000)));
        for garbage in ["", "soon", "99999999999999999999999"] {
            std::fs::write(&last.0, garbage).unwrap();
            let read = last.read().unwrap();
            assert!(read.as_millis() > 1_700_000_000_000, "{garbage:?} is {read:?}");
        }
    }
}
