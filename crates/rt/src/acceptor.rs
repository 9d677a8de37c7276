//! Accepting connections: up to a limit at once, each served by a task of its own. The owner decides what is accepted, and
//! from where.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio::sync::Semaphore;

use crate::tasks::Tasks;

/// Pause after a failed accept: most likely for want of file descriptors, until some are released.
const REST: Duration = Duration::from_millis(100);

/// Most file descriptors that this process may have; none is no limit.
#[must_use]
pub fn most_descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// An acceptor of connections.
#[derive(Debug, Clone, Copy)]
pub struct Acceptor {
    /// The name of the connections' tasks.
    pub name: &'static str,
    /// Most connections at once; further ones wait until one ends.
    pub limit: usize,
}

impl Acceptor {
    /// Accepts connections until `tasks` is stopped; their tasks are joined with it. `arrive` polls for the next connection;
    /// `serve` serves it.
    pub async fn run<A, W>(
        self,
        tasks: &Tasks,
        mut arrive: impl FnMut(&mut Context<'_>) -> Poll<io::Result<A>>,
        mut serve: impl FnMut(A) -> W,
    ) where
        W: Future<Output = ()> + Send + 'static,
    {
        let limit = Arc::new(Semaphore::new(self.limit));
        let token = tasks.token();
        loop {
            // Both arms only wait; a dropped permit is returned.
            let permit = tokio::select! {
                () = token.cancelled() => return,
                permit = limit.clone().acquire_owned() => permit,
            };
            let Ok(permit) = permit else { return };
            // A connection is either accepted or still in the queue: none is lost when the other arm wins.
            let arrived = tokio::select! {
                () = token.cancelled() => return,
                arrived = poll_fn(&mut arrive) => arrived,
            };
            match arrived {
                Ok(arrived) => {
                    // Boxed, because otherwise every layer around it would reserve its size again.
                    let work = Box::pin(serve(arrived));
                    tasks.spawn(self.name, async move {
                        work.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, what = self.name, "cannot accept");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, watch};

    use super::*;

    /// Reports that it was accepted, and stays until it may end.
    async fn visit(visitor: usize, entered: mpsc::Sender<usize>, mut leaving: watch::Receiver<usize>) {
        entered.send(visitor).await.unwrap();
        leaving.wait_for(|left| *left >= visitor).await.unwrap();
    }

    #[tokio::test]
    async fn connections_stay_within_the_limit_and_an_error_loses_none() {
        let tasks = Tasks::new();
        let (queue, mut arrivals) = mpsc::channel::<io::Result<usize>>(8);
        let (entered, mut seen) = mpsc::channel(8);
        let (leave, leaving) = watch::channel(0_usize);
        let level = tasks.clone();
        let attending = tasks.spawn("acceptor", async move {
            let serve = |visitor| visit(visitor, entered.clone(), leaving.clone());
            let arrive = |context: &mut Context<'_>| arrivals.poll_recv(context).map(Option::unwrap);
            Acceptor { name: "visitor", limit: 2 }.run(&level, arrive, serve).await;
        });
        queue.send(Err(io::Error::other("no room for a file descriptor"))).await.unwrap();
        for visitor in 1..=3 {
            queue.send(Ok(visitor)).await.unwrap();
        }
        assert_eq!((seen.recv().await, seen.recv().await), (Some(1), Some(2)));
        assert!(seen.try_recv().is_err(), "a third one waits");
        leave.send_replace(1);
        assert_eq!(seen.recv().await, Some(3));
        leave.send_replace(3);
        tasks.cancel();
        attending.await.unwrap().unwrap();
        tasks.stop(Duration::from_secs(5)).await.unwrap();
    }
}
