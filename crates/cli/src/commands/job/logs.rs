//! `job logs`: what a job wrote, in parts from its node, by way of the server that the node is connected to.

use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::v1::job::{Job, JobState};
use bellwether_api::v1::job_log::JobLog;

use crate::args::Output;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::data::json_line;
use crate::show::{try_print_data, try_print_part};

/// How long one request waits for new output.
const WAIT: Duration = Duration::from_secs(10);

/// Time before the next attempt, unless the server says another.
const AGAIN: Duration = Duration::from_secs(2);

/// Most servers that are asked in a row, because each names another one: a node rarely moves between servers.
const MOST_MOVES: u32 = 3;

/// Reads the log of a job.
pub(super) struct LogReader {
    pub(super) job: Job,
    pub(super) follow: bool,
    /// The byte that is next.
    pub(super) offset: u64,
    /// Whether what was printed last is not the end of a line.
    pub(super) is_within_line: bool,
}

impl LogReader {
    /// Prints the log to its end, or until the job has ended.
    pub(super) async fn run(mut self, context: &Context) -> CommandResult {
        let (mut client, mut moves) = (context.client.clone(), 0_u32);
        let (mut has_read, mut was_told) = (false, false);
        loop {
            let pause = match self.read(context, &client).await {
                Ok(JobLog { server: Some(server), .. }) if moves < MOST_MOVES => {
                    moves = moves.saturating_add(1);
                    client = context.client.towards(&server.address)?;
                    continue;
                }
                Ok(JobLog { server: Some(_), .. }) if self.follow => AGAIN,
                Ok(JobLog { server: Some(server), .. }) => {
                    let what = format!("read the log of job {}: its node changes its server", self.job.name);
                    let hint = format!("retry; it was connected to {} last", server.name);
                    return Err(Failure::new(Exit::Refused, what).hint(hint));
                }
                Ok(part) => {
                    (moves, has_read, was_told) = (0, true, false);
                    self.show(context, &part)?;
                    if part.ended || !(self.follow || part.more) {
                        return self.end(context, part.state);
                    }
                    continue;
                }
                Err(error) => {
                    if let Some(state) = self.closed(context, &error).await {
                        return self.end(context, state);
                    }
                    let Some(pause) = self.pause(&error, has_read) else { return Err(error.into()) };
                    if !std::mem::replace(&mut was_told, true) {
                        self.end_line(context)?;
                        context.show.note(&format!("{error}; it is asked again until it answers"));
                    }
                    pause
                }
            };
            // The server that was configured knows where the node is by now.
            (client, moves) = (context.client.clone(), 0);
            tokio::time::sleep(pause).await;
        }
    }

    async fn read(&self, context: &Context, client: &Client) -> Result<JobLog, CallError> {
        let job = (self.job.run.as_str(), self.job.node.as_str(), self.job.index);
        let wait = if self.follow { WAIT } else { Duration::ZERO };
        client.job_log(&context.namespace, job, self.offset, wait).await
    }

    /// Prints a part; the next one begins after it.
    fn show(&mut self, context: &Context, part: &JobLog) -> Result<(), Failure> {
        if part.offset > self.offset {
            let lost = part.offset.saturating_sub(self.offset);
            self.end_line(context)?;
            context
                .show
                .note(&format!("{lost} bytes from byte {} on are no longer on the node", self.offset));
        }
        self.offset = part.next;
        match context.show.output {
            Output::Json | Output::Yaml => {
                let text = json_line(part);
                try_print_data(&text.map_err(|error| Failure::ours(format!("print a log: {error}")))?)
            }
            Output::Table | Output::Wide | Output::Name => {
                self.is_within_line =
                    part.text.chars().last().map_or(self.is_within_line, |last| last != '\n');
                try_print_part(&part.text)
            }
        }
    }

    /// Has what is told next begin a line, where a person reads it below the log. The log itself is printed as it is.
    fn end_line(&mut self, context: &Context) -> Result<(), Failure> {
        let is_open = std::mem::replace(&mut self.is_within_line, false);
        if is_open && context.show.terminal { try_print_part("\n") } else { Ok(()) }
    }

    /// How a job has ended whose log cannot be followed any more; `None` if it has not, or is not known to.
    async fn closed(&self, context: &Context, error: &CallError) -> Option<JobState> {
        let CallError::Problem(problem) = error else { return None };
        if !self.follow || problem.retry_after_ms.is_some() {
            return None;
        }
        let job = (self.job.run.as_str(), self.job.node.as_str());
        let job = context.client.job(&context.namespace, job, self.job.index).await.ok()?;
        let was_open = self.job.state.is_open();
        (was_open && !job.state.is_open()).then_some(job.state)
    }

    /// How long to wait before a log that is followed is asked for again; `None` if that is of no use.
    fn pause(&self, error: &CallError, has_read: bool) -> Option<Duration> {
        match error {
            _ if !self.follow => None,
            CallError::Problem(problem) => problem.retry_after_ms.map(Duration::from_millis),
            CallError::Unreachable { .. } | CallError::NoneReachable { .. } | CallError::Timeout { .. } => {
                has_read.then_some(AGAIN)
            }
            CallError::Setup { .. } | CallError::AnswerLost { .. } | CallError::Garbled { .. } => None,
        }
    }

    /// The exit code of a log that was read to its end.
    fn end(&mut self, context: &Context, state: JobState) -> CommandResult {
        self.end_line(context)?;
        let Job { name, run, node, .. } = &self.job;
        Ok(match state {
            JobState::Created if self.offset == 0 => {
                context.show.note(&format!(
                    "job {name} has not begun; see what it waits for: bellwether why target/{run}/{node}"
                ));
                Exit::Yes
            }
            JobState::Failed | JobState::Lost | JobState::Cancelled if self.follow => {
                let state = state.as_str();
                context.show.note(&format!("job {name} is {state}; see: bellwether job get {name}"));
                Exit::No
            }
            JobState::Finished
            | JobState::Skipped
            | JobState::Failed
            | JobState::Lost
            | JobState::Cancelled
            | JobState::Created
            | JobState::Running
            | JobState::Incomplete => Exit::Yes,
        })
    }
}
