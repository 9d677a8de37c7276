//! Answers to readers of the logs of jobs and of processes: a server asks by an order poll, and each request is answered once, as soon as there is
//! something to read, or after its wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::v1::job::JobState;
use bellwether_api::v1::job_log::{EnsembleLog, LogChunk, LogRequest, LogText, MAX_FOLLOW_MS};
use bellwether_core::words::name::{EnsembleName, EntityName, Namespace, NodeName};
use bellwether_rt::tasks::Tasks;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::connection::Connection;
use super::retry::cannot;
use crate::apply::job_log::{self, LogPart};
use crate::apply::process_log::{self, LogStart};
use crate::disk;
use crate::ledger::Ledger;

/// Most requests that are answered at the same time: twice what a server has of one node, since readers that went away are
/// answered too.
const MOST: usize = 16;

/// How often a log is looked at that somebody follows. What is written meanwhile is sent together.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Answers readers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct LogAnswers {
    connection: Connection,
    namespace: Namespace,
    node: NodeName,
    ledger: Ledger,
    logs: PathBuf,
    tasks: Tasks,
    room: Arc<Semaphore>,
}

impl LogAnswers {
    pub(super) fn new(
        (connection, namespace, node): (Connection, Namespace, NodeName),
        (ledger, logs): (Ledger, PathBuf),
        tasks: &Tasks,
    ) -> Self {
        let room = Arc::new(Semaphore::new(MOST));
        Self { connection, namespace, node, ledger, logs, tasks: tasks.clone(), room }
    }

    /// Begins to answer requests; one for which there is no room is answered so.
    pub(super) fn begin(&self, requests: Vec<LogRequest>) {
        for request in requests {
            let (answers, token) = (self.clone(), self.tasks.token());
            let answer = async move {
                // Both arms may be dropped: a reader asks again.
                tokio::select! {
                    () = answers.answer(request) => {}
                    () = token.cancelled() => {}
                }
            };
            self.tasks.spawn("log of a job", answer);
        }
    }

    async fn answer(&self, request: LogRequest) {
        let read = match self.room.clone().try_acquire_owned() {
            Ok(_place) if request.entity.is_some() || request.ensemble.is_some() => {
                self.wait_for_output(&request).await
            }
            Ok(_place) => self.wait_for_text(&request).await,
            Err(_) => Err("the node answers too many readers of logs; retry".to_owned()),
        };
        let (read, problem) = match read {
            Ok(read) => (Some(read), None),
            Err(problem) => (None, Some(problem)),
        };
        let chunk = LogChunk { request, read, problem };
        let sent = match self.connection.client() {
            Ok(client) => client.send_log(self.namespace.as_str(), self.node.as_str(), &chunk).await,
            Err(error) => Err(error),
        };
        // The reader is told by its server that the node did not answer, and may ask again.
        if let Err(error) = sent {
            tracing::debug!("{}; a reader of the log of a job has no answer", cannot(&error));
        }
    }

    /// What there is to read, at the latest after the wait of the request.
    async fn wait_for_text(&self, request: &LogRequest) -> Result<LogText, String> {
        let run: EntityName = request.run.parse().map_err(|error| format!("{error}"))?;
        let wait = Duration::from_millis(request.wait_ms.min(MAX_FOLLOW_MS));
        let until = Instant::now() + wait;
        let mut is_first = true;
        loop {
            // Before the log: what a job wrote is complete once its end is in the ledger.
            let state = self.state(&run, request.index).await?;
            let read = self.read(&run, request, state).await?;
            let is_enough = read.more || !state.is_open() || (!is_first && !read.text.is_empty());
            if is_enough || Instant::now() >= until {
                let LogPart { offset, next, text, more } = read;
                return Ok(LogText { offset, next, text, more, state });
            }
            is_first = false;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What wrote the output that is asked for, in words that fit after "no ", and its log.
    fn written_by(&self, request: &LogRequest) -> Result<(String, PathBuf), String> {
        let Some(EnsembleLog { ensemble, osd, manager }) = &request.ensemble else {
            let entity = request.entity.as_deref().unwrap_or_default();
            let entity: EntityName = entity.parse().map_err(|error| format!("{error}"))?;
            return Ok((format!("process of {entity}"), process_log::path(&self.logs, &entity)));
        };
        let ensemble: EnsembleName = ensemble.parse().map_err(|error| format!("{error}"))?;
        let (what, part) = match (osd, manager) {
            (Some(number), _) => (format!("OSD {number}"), format!("-osd-{number}")),
            (None, true) => ("manager".to_owned(), ".mgr".to_owned()),
            (None, false) => ("member".to_owned(), String::new()),
        };
        let path = self.logs.join(format!("ensemble-{ensemble}{part}.log"));
        Ok((format!("{what} of ensemble {ensemble}"), path))
    }

    /// What the process of an entity or of an ensemble wrote, at the latest after the wait of the request.
    async fn wait_for_output(&self, request: &LogRequest) -> Result<LogText, String> {
        let (what, path) = self.written_by(request)?;
        let until = Instant::now() + Duration::from_millis(request.wait_ms.min(MAX_FOLLOW_MS));
        let mut start = request.tail_bytes.map_or(LogStart::Byte(request.offset), LogStart::Tail);
        loop {
            let (of, to_end) = (path.clone(), request.wait_ms == 0);
            let read = move || {
                let read = process_log::read(&of, start, to_end);
                read.map_err(|error| format!("its node cannot read it: {error}"))
            };
            let part = disk::off_runtime(&self.tasks, read).await?;
            let none = || format!("no {what} was started on this node");
            let LogPart { offset, next, text, more } = part.ok_or_else(none)?;
            if !text.is_empty() || Instant::now() >= until {
                return Ok(LogText { offset, next, text, more, state: JobState::Running });
            }
            start = LogStart::Byte(offset);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What became of the job, by the ledger.
    async fn state(&self, run: &EntityName, index: u32) -> Result<JobState, String> {
        let stored = self.ledger.runs().work(run).await.map_err(|error| error.to_string())?;
        let jobs = stored.iter().flat_map(|stored| &stored.jobs);
        let found = jobs.into_iter().find(|job| job.index == index).map(|job| job.state.into());
        found.ok_or_else(|| "its node has forgotten the run".to_owned())
    }

    async fn read(&self, run: &EntityName, request: &LogRequest, state: JobState) -> Result<LogPart, String> {
        let (logs, run, index, from) = (self.logs.clone(), run.clone(), request.index, request.offset);
        let read = move || {
            let read = job_log::read(&logs, (&run, index), from, !state.is_open());
            read.map_err(|error| format!("its node cannot read it: {error}"))
        };
        disk::off_runtime(&self.tasks, read).await
    }
}
