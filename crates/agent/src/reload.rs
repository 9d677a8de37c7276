//! Reloading the configuration: read again as a whole, on SIGHUP or on request over the socket. A valid one replaces the one in
//! force; one that is not valid changes nothing, and its reason is shown until a valid one is read.

use std::path::PathBuf;

use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::signal::HangUps;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::Config;

/// Requests that may wait.
const QUEUE: usize = 8;

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigState {
    /// How many configurations this process has run with: 1 for the first.
    pub(crate) number: u64,
    /// When it was read, by the agent's clock.
    pub(crate) read_at: Timestamp,
    /// Why the one that was read last was refused, if it was.
    pub(crate) refused: Option<String>,
    /// Definitions of services that cannot be used, with the reason.
    pub(crate) refused_definitions: Vec<String>,
}

/// Answers with the number that the new configuration has, or why the one in force stays.
type ReloadAnswer = oneshot::Sender<Result<u64, String>>;

/// Requests a reload. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ReloadRequests(mpsc::Sender<ReloadAnswer>);

impl ReloadRequests {
    /// Requests a reload; returns the number of the configuration that replaces the one in force soon.
    ///
    /// # Errors
    /// The reason for which the one in force stays. Fits after "cannot ".
    pub(crate) async fn reload(&self) -> Result<u64, String> {
        let ending = |_| "reload the configuration: the agent is stopping".to_owned();
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).await.map_err(|_| ending(()))?;
        answered.await.map_err(|_| ending(()))?
    }
}

/// Where configurations come from.
#[derive(Debug)]
pub struct ConfigSource {
    /// `None` if the configuration is not from a file.
    file: Option<(PathBuf, HangUps)>,
}

impl ConfigSource {
    /// A configuration that is never read again.
    #[must_use]
    pub const fn fixed() -> Self {
        Self { file: None }
    }

    /// This file, read again on SIGHUP, which no longer ends the process from now on.
    ///
    /// # Errors
    /// When the process may not install signal handlers.
    pub fn file(path: PathBuf) -> std::io::Result<Self> {
        Ok(Self { file: Some((path, HangUps::listen()?)) })
    }
}

/// Reads configurations on request.
#[derive(Debug)]
pub(crate) struct Reloader {
    source: ConfigSource,
    queue: mpsc::Receiver<ReloadAnswer>,
    pub(crate) requests: ReloadRequests,
    pub(crate) state: watch::Sender<ConfigState>,
    clock: Clock,
}

impl Reloader {
    pub(crate) fn new(source: ConfigSource, config: &Config, clock: Clock) -> Self {
        let (requests, queue) = mpsc::channel(QUEUE);
        let state = ConfigState {
            number: 1,
            read_at: clock.now(),
            refused: None,
            refused_definitions: refused_definitions(config),
        };
        let requests = ReloadRequests(requests);
        Self { source, queue, requests, state: watch::Sender::new(state), clock }
    }

    /// Waits for a request with a valid configuration, and returns that. Cancel safe: a request that is dropped is answered
    /// by its end.
    pub(crate) async fn next(&mut self, current: &Config, tasks: &Tasks) -> Config {
        loop {
            let answer = self.requested().await;
            match self.read(current, tasks).await {
                Ok(config) => {
                    self.state.send_modify(|state| state.refused = None);
                    respond(answer, Ok(self.state.borrow().number.saturating_add(1)));
                    return config;
                }
                Err(reason) => {
                    let reason = format!("reload the configuration: cannot {reason}");
                    tracing::error!("cannot {reason}; the configuration before stays in force");
                    self.state.send_modify(|state| state.refused = Some(reason.clone()));
                    respond(answer, Err(reason));
                }
            }
        }
    }

    /// Refuses requests, while a reload waits for running steps.
    pub(crate) async fn refuse(&mut self) -> std::convert::Infallible {
        loop {
            let answer = self.requested().await;
            let reason = "reload the configuration: a reload waits for the running steps of entities to end";
            respond(answer, Err(reason.to_owned()));
        }
    }

    /// Records that this configuration is in force.
    pub(crate) fn replaced(&self, config: &Config) {
        let (read_at, refused_definitions) = (self.clock.now(), refused_definitions(config));
        self.state.send_modify(|state| {
            let number = state.number.saturating_add(1);
            *state = ConfigState { number, read_at, refused: None, refused_definitions };
        });
    }

    /// The next request; without an answer if it is a signal.
    async fn requested(&mut self) -> Option<ReloadAnswer> {
        let hang_up = async {
            match &mut self.source.file {
                Some((_, hang_ups)) => hang_ups.next().await,
                None => std::future::pending().await,
            }
        };
        // Both arms only wait; this holds a sender, so the queue does not end.
        tokio::select! {
            () = hang_up => None,
            request = self.queue.recv() => request,
        }
    }

    async fn read(&self, current: &Config, tasks: &Tasks) -> Result<Config, String> {
        let Some((path, _)) = &self.source.file else {
            return Err("read it again: this agent was not started from a file".to_owned());
        };
        let path = path.clone();
        let read = tasks.spawn_blocking(move || Config::load(&path).map_err(|error| error.to_string()));
        let config = read.await.map_err(|error| format!("read it: {error}"))??;
        for (key, same) in [
            ("agent.name", config.name == current.name),
            ("agent.namespace", config.namespace == current.namespace),
            ("agent.data_dir", config.data_dir == current.data_dir),
        ] {
            if !same {
                return Err(format!("change {key} without a restart of the agent"));
            }
        }
        match refused_definitions(&config).first() {
            Some(refused) => Err(refused.clone()),
            None => Ok(config),
        }
    }
}

fn respond(answer: Option<ReloadAnswer>, with: Result<u64, String>) {
    if answer.is_some_and(|answer| answer.send(with).is_err()) {
        tracing::debug!("a client did not wait for the answer to its reload");
    }
}

/// Reasons, each with its file; fit after "cannot ".
fn refused_definitions(config: &Config) -> Vec<String> {
    config.refused_definitions.values().cloned().collect()
}
