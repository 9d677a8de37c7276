//! Signals: requests from outside the process to stop, and signals to pass on to another process.

use std::future::poll_fn;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal that stops this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C at a terminal (SIGINT).
    Interrupt,
    /// A request of a service manager or a person (SIGTERM).
    Terminate,
    /// The terminal was closed (SIGHUP).
    HangUp,
}

/// Listens for stop signals from its creation on: one that comes while no one waits is not lost.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl StopSignals {
    /// Starts listening. From now on the signals no longer end the process by themselves.
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

/// Waits for the next of SIGINT, SIGTERM and SIGHUP from now on.
///
/// # Errors
/// When the process may not install signal handlers.
pub async fn stop_requested() -> std::io::Result<StopSignal> {
    Ok(StopSignals::listen()?.requested().await)
}

/// Waits for the next of SIGINT and SIGTERM from now on: for a program to which SIGHUP means something else.
///
/// # Errors
/// When the process may not install signal handlers.
pub async fn termination_requested() -> std::io::Result<StopSignal> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Both arms only wait; dropping one loses nothing.
    Ok(tokio::select! {
        _ = interrupt.recv() => StopSignal::Interrupt,
        _ = terminate.recv() => StopSignal::Terminate,
    })
}

/// SIGHUP as a request to read the configuration again.
#[derive(Debug)]
pub struct HangUps(Signal);

impl HangUps {
    /// Starts listening. From now on SIGHUP no longer ends the process.
    ///
    /// # Errors
    /// When the process may not install signal handlers.
    pub fn listen() -> std::io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits for the next one. Cancel safe.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Signals for another process: a program between a person and its child listens for them and passes them on.
#[derive(Debug)]
pub struct ForwardedSignals(Vec<(i32, Signal)>);

impl ForwardedSignals {
    /// Starts listening for SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2. From now on they do nothing by themselves.
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

    /// Waits for the next of them, and returns its number. Cancel safe.
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

/// SIGTSTP, which a terminal sends to its foreground job at Ctrl-Z, for a program that has something to do before it stops.
#[derive(Debug)]
pub struct JobControl {
    stop: Signal,
    resumed: Signal,
}

impl JobControl {
    /// Starts listening for SIGTSTP and SIGCONT. From now on SIGTSTP does not stop the process by itself.
    ///
    /// # Errors
    /// When the process may not install signal handlers.
    pub fn listen() -> std::io::Result<Self> {
        let resumed = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        let stop = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        Ok(Self { stop: signal(stop)?, resumed: signal(resumed)? })
    }

    /// Waits for the next SIGTSTP. Cancel safe.
    pub async fn stop_requested(&mut self) {
        if self.stop.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Stops this process, as SIGTSTP would have, and returns once it goes on.
    ///
    /// # Errors
    /// When the process cannot be stopped.
    pub async fn suspend(&mut self) -> std::io::Result<()> {
        // Of an earlier stop.
        poll_fn(|context| {
            while let Poll::Ready(Some(())) = self.resumed.poll_recv(context) {}
            Poll::Ready(())
        })
        .await;
        // Another thread may run for a moment yet: what comes after it waits for SIGCONT.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        self.resumed.recv().await;
        Ok(())
    }
}
