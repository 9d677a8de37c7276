//! Signals. Owns the wish to end that comes from outside the process, and what is to be passed on to another.

use std::future::poll_fn;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal that asked this process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C at a terminal (SIGINT).
    Interrupt,
    /// A service manager's or a person's request (SIGTERM).
    Terminate,
    /// The terminal went away (SIGHUP).
    HangUp,
}

/// Listens for stop signals from the moment it is made: one that comes while nobody waits is not lost.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl StopSignals {
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
    pub async fn requested(&mut self) -> StopSignal {
        // Each arm only waits; dropping one loses nothing.
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.hang_up.recv() => StopSignal::HangUp,
        }
    }
}

/// Waits for the first of SIGINT, SIGTERM and SIGHUP from now on.
///
/// # Errors
/// When the process may not install signal handlers.
pub async fn stop_requested() -> std::io::Result<StopSignal> {
    Ok(StopSignals::listen()?.requested().await)
}

/// Signals that are meant for somebody else: whoever stands between a person and a program listens for them and passes them
/// on.
#[derive(Debug)]
pub struct ForwardedSignals(Vec<(i32, Signal)>);

impl ForwardedSignals {
    /// Begins to listen for SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2. From now on they do nothing by themselves.
    ///
    /// # Errors
    /// When the process may not install signal handlers.
    pub fn listen() -> std::io::Result<Self> {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let listening = kinds.into_iter().map(|kind| Ok((kind.as_raw_value(), signal(kind)?)));
        listening.collect::<std::io::Result<_>>().map(Self)
    }

    /// Waits for the next of them, and answers its number. Cancel safe.
    pub async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            let came = self
                .0
                .iter_mut()
                .find_map(|(number, signal)| signal.poll_recv(context).is_ready().then_some(*number));
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
