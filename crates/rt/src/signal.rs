//! Stop signals. Owns the wish to end that comes from outside the process.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal that asked this process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C at a terminal (SIGINT).
    Interrupt,
    /// A service manager's or a person's request (SIGTERM).
    Terminate,
    /// The terminal went away (SIGHUP).
    HangUp,
}

/// Listens for stop signals from the moment it is made: one that comes while nobody waits is not lost.
#[derive(Debug)]
pub struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Stops {
    /// Begins to listen. From now on the signals no longer end the process by themselves.
    ///
    /// # Errors
    /// When the process may not install signal handlers.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the first of SIGINT, SIGTERM and SIGHUP. Cancel safe.
    pub async fn requested(&mut self) -> Stop {
        // Each arm only waits; dropping one loses nothing.
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Interrupt,
            _ = self.terminate.recv() => Stop::Terminate,
            _ = self.hang_up.recv() => Stop::HangUp,
        }
    }
}

/// Waits for the first of SIGINT, SIGTERM and SIGHUP from now on.
///
/// # Errors
/// When the process may not install signal handlers.
pub async fn stop_requested() -> std::io::Result<Stop> {
    Ok(Stops::listen()?.requested().await)
}
