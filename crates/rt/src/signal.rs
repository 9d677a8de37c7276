//! Stop signals. Owns the wish to end that comes from outside the process.

use tokio::signal::unix::{SignalKind, signal};

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

/// Waits for the first of SIGINT, SIGTERM and SIGHUP.
///
/// # Errors
/// When the process may not install signal handlers.
pub async fn stop_requested() -> std::io::Result<Stop> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    // Each arm only waits; dropping one loses nothing.
    tokio::select! {
        _ = interrupt.recv() => Ok(Stop::Interrupt),
        _ = terminate.recv() => Ok(Stop::Terminate),
        _ = hang_up.recv() => Ok(Stop::HangUp),
    }
}
