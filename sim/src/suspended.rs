//! The clocks of a machine that may be suspended: they stand still then, and go on where they stood.

use bellwether_core::words::time::Span;
use bellwether_rt::clock::HostClock;
use tokio::time::Instant;

/// The clocks of a machine, and since when it is suspended.
#[derive(Debug)]
pub struct SuspendedHost {
    clock: HostClock,
    since: Option<Instant>,
}

impl SuspendedHost {
    pub(crate) const fn new(clock: HostClock) -> Self {
        Self { clock, since: None }
    }

    pub(crate) const fn clock(&self) -> &HostClock {
        &self.clock
    }

    pub(crate) fn suspend(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Its clocks go on where they stood.
    pub(crate) fn resume(&mut self) {
        if let Some(since) = self.since.take() {
            let stood = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.clock.stood_still(Span::from_millis(stood));
        }
    }
}
