//! When this server ran last, in a file of its data directory. A system clock that is far later at a start may be wrong, and time does
//! not go back: tokens would have expired for good. Such a start waits until something else speaks for the clock.

use std::io;
use std::path::PathBuf;

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
    /// The file, once the system clock is believed: while it is far later than the last time, something else is waited for that speaks for
    /// it.
    ///
    /// # Errors
    /// [`StoreError`] when the other servers cannot be listed.
    pub(crate) async fn once_believed(
        config: &Config,
        store: &Store,
        (clock, peers): (&Clock, &dyn PeerTimes),
    ) -> Result<Self, StoreError> {
        let this = Self(config.data_dir.join("last-time"));
        let (Some(last), Some(synchronized)) = (this.read(), &config.clock_synchronized_file) else {
            return Ok(this);
        };
        let mut is_told = false;
        while clock.wall() > last.plus(BELIEVED) && !synchronized.exists() {
            let others = others(store, &config.name).await?;
            let asked = join_all(others.iter().map(|peer| measure(clock, peers, peer))).await;
            if asked.iter().any(Option::is_some) {
                // Their time is taken over.
                break;
            }
            if !is_told {
                tracing::error!(
                    "waiting: the system clock is {} ahead of the time at which this server last ran, and a wrong one would let \
                     tokens and certificates expire; if it is right, start with --accept-clock; otherwise correct it; this server \
                     also continues when another one tells the time, or when {} exists",
                    clock.wall().since(last).brief(),
                    synchronized.display()
                );
                is_told = true;
            }
            tokio::time::sleep(AGAIN.to_duration()).await;
        }
        if is_told {
            tracing::info!("the system clock is believed; continuing");
            clock.set(clock.wall());
        }
        Ok(this)
    }

    fn read(&self) -> Option<Timestamp> {
        let text = std::fs::read_to_string(&self.0).ok()?;
        text.trim().parse().ok().map(Timestamp::from_millis)
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
