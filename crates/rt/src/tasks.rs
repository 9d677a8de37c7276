//! Named, owned, joined tasks: the only place that spawns.
//!
//! A [`Tasks`] is a group of tasks. Everything started on it stops when its token is cancelled and is
//! joined by [`Tasks::stop`]. A task that panics stops its group instead of leaving it half alive.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// A boxed future, which the entry points of a crate return: the body of an `async fn` is compiled in each crate that awaits
/// it, that of a boxed future once, in its own.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A group of tasks that live and stop together.
#[derive(Debug, Clone)]
pub struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
    broken: Arc<OnceLock<String>>,
    #[cfg(any(test, feature = "testing"))]
    gate: Option<crate::gate::TestGate>,
}

/// Why a group did not stop in order.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// A task panicked; the others were asked to stop because of it.
    #[error("task {task} panicked")]
    Panicked {
        /// The task's name.
        task: String,
    },
    /// Some tasks did not end within the grace.
    #[error("stop all tasks within {grace:?}: {left} still running")]
    Stuck {
        /// How many were still running.
        left: usize,
        /// How long was waited.
        grace: Duration,
    },
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// A group of its own.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tracker: TaskTracker::new(),
            token: CancellationToken::new(),
            broken: Arc::default(),
            #[cfg(any(test, feature = "testing"))]
            gate: None,
        }
    }

    /// A child group: stopping this one stops it too, and joins it.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { token: self.token.child_token(), ..self.clone() }
    }

    /// A child group that is joined by itself: it stops with this one, whose own stop does not wait for its tasks.
    #[must_use]
    pub fn subgroup(&self) -> Self {
        Self { tracker: TaskTracker::new(), ..self.child() }
    }

    /// The same group with everything that is started on it, or on its children, from now on behind a gate.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn behind(&self, gate: &crate::gate::TestGate) -> Self {
        Self { gate: Some(gate.clone()), ..self.clone() }
    }

    /// The token that is cancelled when the group is to stop.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Starts `work` under `name`. It must end soon after the token is cancelled.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<Option<T>> {
        self.spawn_boxed(name, Box::pin(work))
    }

    /// Boxed, so that the runtime's task around `work` is compiled once for each `T`, not for each `work`.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns")]
    fn spawn_boxed<T: Send + 'static>(
        &self,
        name: &str,
        work: BoxFuture<'static, T>,
    ) -> JoinHandle<Option<T>> {
        let span = tracing::info_span!("task", name);
        let guarded = guard(name.to_owned(), self.token.clone(), self.broken.clone(), work);
        #[cfg(any(test, feature = "testing"))]
        if let Some(gate) = &self.gate {
            let behind = gate.behind(guarded.instrument(span));
            return tokio::spawn(self.tracker.track_future(behind.map(Option::flatten)));
        }
        tokio::spawn(self.tracker.track_future(guarded.instrument(span)))
    }

    /// Runs `work`, which may block on disk or a process, off the runtime's threads.
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn_blocking(work)
    }

    /// Asks the whole group to stop, without waiting.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Waits until the group is asked to stop, by [`Tasks::cancel`], its parent, or a panic.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Asks the whole group to stop and joins it.
    ///
    /// # Errors
    /// [`StopError::Panicked`] names the first task that panicked since start; [`StopError::Stuck`] counts
    /// those that did not end within `grace`.
    pub async fn stop(&self, grace: Duration) -> Result<(), StopError> {
        self.token.cancel();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            return Err(StopError::Stuck { left: self.tracker.len(), grace });
        }
        match self.broken.get() {
            Some(task) => Err(StopError::Panicked { task: task.clone() }),
            None => Ok(()),
        }
    }
}

async fn guard<T>(
    name: String,
    token: CancellationToken,
    broken: Arc<OnceLock<String>>,
    work: impl Future<Output = T>,
) -> Option<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(value) => Some(value),
        Err(_) => {
            tracing::error!(task = name, "task panicked; stopping its group");
            broken.get_or_init(|| name);
            token.cancel();
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stop_joins_what_was_started() {
        let tasks = Tasks::new();
        let token = tasks.token();
        let handle = tasks.spawn("waits", async move {
            token.cancelled().await;
            7
        });
        tasks.stop(Duration::from_secs(5)).await.unwrap();
        assert_eq!(handle.await.unwrap(), Some(7));
    }

    #[tokio::test]
    async fn a_panic_stops_the_group_and_is_named() {
        let tasks = Tasks::new();
        tasks.spawn("breaks", async { panic!("on purpose") });
        tasks.cancelled().await;
        let error = tasks.stop(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.to_string(), "task breaks panicked");
    }

    #[tokio::test]
    async fn a_subgroup_is_joined_alone_and_stops_with_its_parent() {
        let (parent, grace) = (Tasks::new(), Duration::from_secs(5));
        let (first, second) = (parent.subgroup(), parent.subgroup());
        let handles = [&parent, &first, &second].map(|group| {
            let token = group.token();
            group.spawn("waits", async move { token.cancelled().await })
        });
        first.stop(grace).await.unwrap();
        assert_eq!(handles.each_ref().map(JoinHandle::is_finished), [false, true, false]);
        parent.stop(grace).await.unwrap();
        second.stop(grace).await.unwrap();
    }

    #[tokio::test]
    async fn a_child_stops_with_its_parent() {
        let parent = Tasks::new();
        let child = parent.child();
        parent.cancel();
        child.cancelled().await;
    }
}
