//! Holds back the first report and the first registrations of an agent's life until everything that they are made from has an
//! account: what an agent does not know yet must not replace what the control plane knows of it.

use std::time::Duration;

use tokio::time::Instant;

/// Longest time for which something that hangs holds the others back; longer than a check takes by default.
const LONGEST: Duration = Duration::from_secs(10);

/// Closed at the start of the agent; once open, it stays so.
#[derive(Debug)]
pub(super) struct StartGate {
    is_open: bool,
    until: Instant,
}

impl StartGate {
    /// A closed gate.
    pub(super) fn closed() -> Self {
        Self { is_open: false, until: Instant::now() + LONGEST }
    }

    /// Opens it if everything is known, or the time is over; returns whether it is open.
    pub(super) fn opens(&mut self, everything_is_known: bool) -> bool {
        self.is_open = self.is_open || everything_is_known || Instant::now() >= self.until;
        self.is_open
    }

    /// Waits until it opens by itself; for ever once it is open. Cancel safe.
    pub(super) async fn due(&self) {
        if self.is_open {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(self.until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_opens_once_everything_is_known_or_after_a_while_and_never_closes() {
        let mut gate = StartGate::closed();
        assert!(!gate.opens(false));
        assert!(gate.opens(true) && gate.opens(false));
        let mut gate = StartGate::closed();
        gate.due().await;
        assert!(gate.opens(false));
        assert!(tokio::time::timeout(LONGEST * 2, gate.due()).await.is_err());
    }
}
