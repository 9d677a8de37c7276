//! Statuses that programs on this machine set: taken in one after the other, on disk before anybody is told they were.

use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_core::local::statuses::{LocalStatuses, StatusUpdate};
use bellwether_core::words::name::Category;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};

use super::problem::LocalFailure;
use crate::ledger::Ledger;
use crate::report_board::ReportBoard;

/// Sayings that may wait for the disk; whoever comes when it is full waits, up to [`PATIENCE`].
const QUEUE: usize = 64;

/// Most sayings that share one write.
const AT_ONCE: usize = 64;

/// How long a program waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// One saying, and where the answer goes.
#[derive(Debug)]
struct StatusCommand {
    category: Category,
    said: StatusUpdate,
    answer: oneshot::Sender<Result<(), (Code, String)>>,
}

/// Takes in statuses. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct StatusSink(mpsc::Sender<StatusCommand>);

impl StatusSink {
    /// Starts the one task that changes the statuses of this machine, from what was kept.
    pub(crate) fn start(
        kept: LocalStatuses,
        ledger: Ledger,
        board: watch::Sender<ReportBoard>,
        tasks: &Tasks,
    ) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE);
        board.send_modify(|board| board.statuses = kept.clone());
        tasks.spawn("statuses", work(kept, queue, (ledger, board), tasks.clone()));
        Self(sender)
    }

    pub(super) async fn say(&self, category: Category, said: StatusUpdate) -> Result<(), LocalFailure> {
        let (answer, answered) = oneshot::channel();
        let ending = || LocalFailure::new(Code::Store, "could not keep the status: the agent is ending");
        let saying = StatusCommand { category, said, answer };
        let asked = async {
            self.0.send(saying).await.map_err(|_| ending())?;
            let answer = answered.await.map_err(|_| ending())?;
            answer.map_err(|(code, reason)| LocalFailure::new(code, format!("could not {reason}")))
        };
        let late =
            |_| LocalFailure::new(Code::Timeout, format!("could not keep the status within {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, asked).await.map_err(late)?
    }
}

/// Takes sayings in until the level stops; those that have come in together share one write.
async fn work(
    mut statuses: LocalStatuses,
    mut queue: mpsc::Receiver<StatusCommand>,
    (ledger, board): (Ledger, watch::Sender<ReportBoard>),
    tasks: Tasks,
) {
    let token = tasks.token();
    loop {
        let mut sayings = Vec::new();
        // Both are cancel safe; what was not taken out of the queue is answered by its end.
        tokio::select! {
            () = token.cancelled() => return,
            count = queue.recv_many(&mut sayings, AT_ONCE) => if count == 0 { return },
        }
        let mut next = statuses.clone();
        let mut taken = Vec::new();
        for StatusCommand { category, said, answer } in sayings {
            match next.say(category, said) {
                Ok(()) => taken.push(answer),
                Err(refusal) => reply(answer, Err((Code::Refused, refusal.to_string()))),
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
        tracing::debug!("whoever set a status did not wait for the answer");
    }
}
