//! Statuses that programs on this node set: applied one after the other, on disk before they are acknowledged.

use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_core::local::statuses::{LocalStatuses, StatusRefusal, StatusUpdate};
use bellwether_core::words::name::Category;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};

use super::problem::LocalFailure;
use crate::ledger::Ledger;
use crate::report_board::ReportBoard;

/// Commands that may queue for the disk; further ones wait, up to [`PATIENCE`].
const QUEUE: usize = 64;

/// Most commands that share one write.
const AT_ONCE: usize = 64;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// One command, and where to answer.
#[derive(Debug)]
struct StatusCommand {
    category: Category,
    /// The new status; `None` deletes it.
    update: Option<StatusUpdate>,
    answer: oneshot::Sender<Result<(), (Code, String)>>,
}

/// Takes status updates. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct StatusSink(mpsc::Sender<StatusCommand>);

impl StatusSink {
    /// Starts the task that changes the statuses of this node, from those of the ledger.
    pub(crate) fn start(
        kept: LocalStatuses,
        ledger: Ledger,
        board: watch::Sender<ReportBoard>,
        tasks: &Tasks,
    ) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE);
        board.send_modify(|board| board.statuses = kept.clone());
        tasks.spawn("statuses", work(kept, queue, ledger, board, tasks.clone()));
        Self(sender)
    }

    /// Sets the status of a category, or deletes it if `update` is `None`.
    pub(super) async fn say(
        &self,
        category: Category,
        update: Option<StatusUpdate>,
    ) -> Result<(), LocalFailure> {
        let (answer, answered) = oneshot::channel();
        let ending = || LocalFailure::new(Code::Store, "cannot store the status: the agent is stopping");
        let saying = StatusCommand { category, update, answer };
        let asked = async {
            self.0.send(saying).await.map_err(|_| ending())?;
            let answer = answered.await.map_err(|_| ending())?;
            answer.map_err(|(code, reason)| LocalFailure::new(code, format!("cannot {reason}")))
        };
        let late =
            |_| LocalFailure::new(Code::Timeout, format!("cannot store the status within {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, asked).await.map_err(late)?
    }
}

/// Applies commands until the agent stops; those that arrive together share one write.
async fn work(
    mut statuses: LocalStatuses,
    mut queue: mpsc::Receiver<StatusCommand>,
    ledger: Ledger,
    board: watch::Sender<ReportBoard>,
    tasks: Tasks,
) {
    let token = tasks.token();
    loop {
        let mut sayings = Vec::new();
        // Both arms are cancel safe; commands that are still queued are answered by the end of the queue.
        tokio::select! {
            () = token.cancelled() => return,
            count = queue.recv_many(&mut sayings, AT_ONCE) => if count == 0 { return },
        }
        let mut next = statuses.clone();
        let mut taken = Vec::new();
        for StatusCommand { category, update, answer } in sayings {
            let changed = match update {
                Some(update) => next.say(category, update),
                None => next.delete(&category),
            };
            match changed {
                Ok(()) => taken.push(answer),
                Err(refusal @ StatusRefusal::Unknown(_)) => {
                    reply(answer, Err((Code::NotFound, refusal.to_string())));
                }
                Err(refusal @ (StatusRefusal::BuiltIn(_) | StatusRefusal::Full(_))) => {
                    reply(answer, Err((Code::Refused, refusal.to_string())));
                }
            }
        }
        if taken.is_empty() {
            continue;
        }
        let written = ledger.keep_statuses(&next).await;
        if written.is_ok() {
            statuses = next;
            board.send_modify(|board| board.statuses = statuses.clone());
        }
        let result = written.map_err(|error| (Code::Store, error.to_string()));
        for answer in taken {
            reply(answer, result.clone());
        }
    }
}

fn reply(answer: oneshot::Sender<Result<(), (Code, String)>>, result: Result<(), (Code, String)>) {
    if answer.send(result).is_err() {
        tracing::debug!("a client did not wait for its answer");
    }
}
