//! Doorways: whoever arrives is let in as long as there is room, and served by a task of its own. What arrives, and where, is
//! the owner's business.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::tasks::Tasks;

/// How long is waited when nobody can be let in: for want of file descriptors, most likely, and for some to come back.
const REST: Duration = Duration::from_millis(100);

/// A way in.
#[derive(Debug, Clone, Copy)]
pub struct Acceptor {
    /// What the tasks of those inside are called.
    pub name: &'static str,
    /// Most that are inside at once; others wait outside until somebody leaves.
    pub room: usize,
}

impl Acceptor {
    /// Lets in whoever arrives, until the level stops; those inside are joined with the level. `arrive` answers who is next,
    /// or that nobody is yet; `serve` what is done with them.
    pub async fn attend<A, W>(
        self,
        tasks: &Tasks,
        mut arrive: impl FnMut(&mut Context<'_>) -> Poll<io::Result<A>>,
        mut serve: impl FnMut(A) -> W,
    ) where
        W: Future<Output = ()> + Send + 'static,
    {
        let room = Arc::new(Semaphore::new(self.room));
        let token = tasks.token();
        loop {
            // Both arms only wait; a permit that is dropped goes back.
            let permit = tokio::select! {
                () = token.cancelled() => return,
                permit = room.clone().acquire_owned() => permit,
            };
            let Ok(permit) = permit else { return };
            // Whoever arrives is answered, or still outside: nobody is lost when the other arm wins.
            let arrived = tokio::select! {
                () = token.cancelled() => return,
                arrived = poll_fn(&mut arrive) => arrived,
            };
            match arrived {
                Ok(arrived) => {
                    // Boxed, or every layer around it would have room for it a second time.
                    let work = Box::pin(serve(arrived));
                    tasks.spawn(self.name, async move {
                        work.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, what = self.name, "could not accept");
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

    /// Says that it is inside, and stays until it may leave.
    async fn visit(visitor: usize, entered: mpsc::Sender<usize>, mut leaving: watch::Receiver<usize>) {
        entered.send(visitor).await.unwrap();
        leaving.wait_for(|left| *left >= visitor).await.unwrap();
    }

    #[tokio::test]
    async fn no_more_are_inside_than_there_is_room_for_and_an_error_keeps_nobody_out() {
        let tasks = Tasks::new();
        let (queue, mut arrivals) = mpsc::channel::<io::Result<usize>>(8);
        let (entered, mut seen) = mpsc::channel(8);
        let (leave, leaving) = watch::channel(0_usize);
        let level = tasks.clone();
        let attending = tasks.spawn("doorway", async move {
            let serve = |visitor| visit(visitor, entered.clone(), leaving.clone());
            let arrive = |context: &mut Context<'_>| arrivals.poll_recv(context).map(Option::unwrap);
            Acceptor { name: "visitor", room: 2 }.attend(&level, arrive, serve).await;
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
