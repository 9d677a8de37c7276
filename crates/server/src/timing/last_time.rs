//! When this server ran last, or its records were restored, in a file of its data directory. A system clock that is far later at a start
//! may be wrong, and time does not go back: tokens would have expired for good. With one that is far earlier, time would go back. Such a
//! start waits until something else speaks for the clock.

use std::fmt;
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

/// How a system clock differs from the last time that is known, if it may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockDoubt {
    /// It is later, by so much.
    Ahead(Span),
    /// It is earlier, by so much.
    Behind(Span),
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead(by) => write!(f, "{} ahead of", by.brief()),
            Self::Behind(by) => write!(f, "{} behind", by.brief()),
        }
    }
}

/// The file with the time.
#[derive(Debug, Clone)]
pub(crate) struct LastTime(PathBuf);

impl LastTime {
    /// The file of this server.
    pub(crate) fn of(config: &Config) -> Self {
        Self(config.data_dir.join("last-time"))
    }

    /// Whether a system clock differs so much from the last time, or from one that is known otherwise if that is later, that something
    /// else must speak for it.
    pub(crate) fn doubt(
        &self,
        config: &Config,
        wall: Timestamp,
        known: Option<Timestamp>,
    ) -> Option<ClockDoubt> {
        let synchronized = config.clock_synchronized_file.as_ref()?;
        let last = self.read().max(known)?;
        let doubt = if wall > last.plus(BELIEVED) {
            ClockDoubt::Ahead(wall.since(last))
        } else if last > wall.plus(BELIEVED) {
            ClockDoubt::Behind(last.since(wall))
        } else {
            return None;
        };
        (!synchronized.exists()).then_some(doubt)
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
        while let Some(doubt) = self.doubt(config, clock.wall(), None) {
            let others = others(store, &config.name).await?;
            let asked = join_all(others.iter().map(|peer| measure(clock, peers, peer))).await;
            if asked.iter().any(Option::is_some) {
                // Their time is taken over.
                break;
            }
            if !is_told {
                tracing::error!(
                    "waiting, and not listening: the system clock is {doubt} the time at which this server last ran or was restored, and \
                     with a wrong one {}; if it is right, start with --accept-clock; otherwise correct it; this server also continues \
                     when another one tells the time, or when clock_synchronized_file exists",
                    match doubt {
                        ClockDoubt::Ahead(_) => "tokens and certificates would expire",
                        ClockDoubt::Behind(_) => "time would go back",
                    },
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

    /// Writes the last time.
    pub(crate) fn write(&self, now: Timestamp) {
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
    fn a_clock_is_doubted_that_is_more_than_a_day_from_the_last_time_unless_it_is_synchronised() {
        let dir = tempfile::tempdir().unwrap();
        let last = LastTime(dir.path().join("last-time"));
        let synchronized = dir.path().join("synchronized");
        let mut config = Config::load(None).unwrap();
        config.clock_synchronized_file = Some(synchronized.clone());
        let day = |days: u64| Timestamp::from_millis(days * 24 * 3_600_000);
        let days = |days: u64| Span::from_secs(days * 24 * 3_600);
        assert_eq!(last.doubt(&config, day(100), None), None, "it never ran");
        last.write(day(50));
        for believed in [49, 50, 51] {
            assert_eq!(last.doubt(&config, day(believed), None), None);
        }
        assert_eq!(last.doubt(&config, day(52), None), Some(ClockDoubt::Ahead(days(2))));
        assert_eq!(last.doubt(&config, day(52), Some(day(52))), None);
        assert_eq!(last.doubt(&config, day(47), None), Some(ClockDoubt::Behind(days(3))));
        assert_eq!(last.doubt(&config, day(52), Some(day(60))), Some(ClockDoubt::Behind(days(8))));
        std::fs::write(&synchronized, "").unwrap();
        assert_eq!(last.doubt(&config, day(52), None), None);
    }

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
