//! Statuses that programs on this machine set: taken in one after the other, on disk before anybody is told they were.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Request, State};
use bellwether_api::problem::Code;
use bellwether_api::shape::read;
use bellwether_api::v1;
use bellwether_core::local::statuses::{Said, Statuses};
use bellwether_core::records::status::Status;
use bellwether_core::words::name::Category;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};

use super::Local;
use super::problem::{Failure, body};
use crate::board::Board;
use crate::ledger::Ledger;

/// Sayings that may wait for the disk; whoever comes when it is full waits, up to [`PATIENCE`].
const QUEUE: usize = 64;

/// Most sayings that share one write.
const AT_ONCE: usize = 64;

/// How long a program waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// One saying, and where the answer goes.
#[derive(Debug)]
struct Saying {
    category: Category,
    said: Said,
    answer: oneshot::Sender<Result<(), (Code, String)>>,
}

/// Takes in statuses. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Desk(mpsc::Sender<Saying>);

impl Desk {
    /// Starts the one task that changes the statuses of this machine, from what was kept.
    pub(crate) fn start(kept: Statuses, ledger: Ledger, board: watch::Sender<Board>, tasks: &Tasks) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE);
        board.send_modify(|board| board.statuses = kept.clone());
        tasks.spawn("statuses", work(kept, queue, (ledger, board), tasks.clone()));
        Self(sender)
    }

    async fn say(&self, category: Category, said: Said) -> Result<(), Failure> {
        let (answer, answered) = oneshot::channel();
        let ending = || Failure::new(Code::Store, "could not keep the status: the agent is ending");
        let saying = Saying { category, said, answer };
        let asked = async {
            self.0.send(saying).await.map_err(|_| ending())?;
            let answer = answered.await.map_err(|_| ending())?;
            answer.map_err(|(code, reason)| Failure::new(code, format!("could not {reason}")))
        };
        let late = |_| Failure::new(Code::Timeout, format!("could not keep the status within {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, asked).await.map_err(late)?
    }
}

/// Takes sayings in until the level stops; those that have come in together share one write.
async fn work(
    mut statuses: Statuses,
    mut queue: mpsc::Receiver<Saying>,
    (ledger, board): (Ledger, watch::Sender<Board>),
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
        for Saying { category, said, answer } in sayings {
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

/// Nothing: the answer to what was done.
#[derive(Debug, serde::Serialize)]
pub(super) struct Nothing {}

pub(super) async fn put(
    State(local): State<Local>,
    Path(category): Path<String>,
    request: Request,
) -> Result<Json<Nothing>, Failure> {
    let category: Category = read("category", &category)?;
    let new: v1::local::NewStatus = body(request).await?;
    let v1::local::NewStatus { state, reason, lifetime_ms } = new;
    let shape = v1::status::Status { state, reason, lifetime_ms, ..v1::status::Status::default() };
    let Status { state, reason, lifetime, .. } = shape.try_into()?;
    let lifetime = lifetime.map(|lifetime| lifetime.lasts);
    let said = Said { state, reason, lifetime, at: local.clock.now(), update: 0 };
    local.statuses.say(category, said).await?;
    Ok(Json(Nothing {}))
}
