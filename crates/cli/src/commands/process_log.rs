//! `node logs NODE ENTITY`: what the process of an entity, or a part of an ensemble, wrote, in parts from its node, by way of the server that the node is
//! connected to.

use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::v1::process_log::ProcessLog;

use crate::args::{LogOf, Output};
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

/// Reads the output of a process on a node.
pub(super) struct ProcessReader {
    pub(super) node: String,
    pub(super) of: LogOf,
    pub(super) follow: bool,
}

impl ProcessReader {
    /// Prints the end of the output; goes on with what is written, if it is followed.
    pub(super) async fn run(self, context: &Context) -> CommandResult {
        let mut offset = None;
        let mut was_told = false;
        loop {
            match self.part(context, offset).await {
                Ok(part) => {
                    was_told = false;
                    if offset.is_some_and(|offset| part.offset < offset) {
                        context.show.note("the log was full and begins anew");
                    }
                    offset = Some(part.next);
                    print(context, &part)?;
                    if !self.follow && !part.more {
                        return Ok(Exit::Yes);
                    }
                }
                Err(error) => {
                    let Some(pause) = self.pause(&error, offset.is_some()) else { return Err(error.into()) };
                    if !std::mem::replace(&mut was_told, true) {
                        context.show.note(&format!("{error}; it is asked again until it answers"));
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// The next part, from the server that the node is connected to.
    async fn part(&self, context: &Context, offset: Option<u64>) -> Result<ProcessLog, CallError> {
        let mut client = context.client.clone();
        let mut part = self.read(context, &client, offset).await?;
        for _ in 0..MOST_MOVES {
            let Some(server) = &part.server else { break };
            client = client.towards(&server.address)?;
            part = self.read(context, &client, offset).await?;
        }
        Ok(part)
    }

    async fn read(
        &self,
        context: &Context,
        client: &Client,
        offset: Option<u64>,
    ) -> Result<ProcessLog, CallError> {
        // Without an offset, what there is comes at once.
        let wait = if self.follow && offset.is_some() { WAIT } else { Duration::ZERO };
        match &self.of {
            LogOf::Entity(entity) => {
                client.process_log(&context.namespace, (&self.node, entity), offset, wait).await
            }
            LogOf::Ensemble(log) => {
                client.member_log(&context.namespace, (&self.node, log), offset, wait).await
            }
        }
    }

    /// How long to wait before output that is followed is asked for again; `None` if that is of no use.
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
}

fn print(context: &Context, part: &ProcessLog) -> Result<(), Failure> {
    match context.show.output {
        Output::Json | Output::Yaml => {
            let text = json_line(part);
            try_print_data(&text.map_err(|error| Failure::ours(format!("print a log: {error}")))?)
        }
        Output::Table | Output::Wide | Output::Name => try_print_part(&part.text),
    }
}
