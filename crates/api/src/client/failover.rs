//! Sends a request to one server after the other, until one takes it. A change whose answer was lost is not sent again, unless it
//! may be made twice.

use std::time::Duration;

use http::Method;
use hyper::body::Bytes;
use tokio::time::Instant;

use super::attempt::{Attempted, FailedCall, Request, lost, of_all};
use super::connection::Client;
use super::error::CallError;
use crate::problem::Code;

/// What to do after a request failed at a server.
enum Next {
    /// Ask the next server.
    Another,
    /// Ask the same server after this time.
    Again(Duration),
    /// Return the error.
    End,
}

impl Client {
    /// Sends a request to each server in turn, beginning with the one in use, until one takes it.
    pub(super) async fn attempt(&self, request: Request<'_>, deadline: Duration) -> Result<Bytes, CallError> {
        let end = Instant::now() + deadline;
        let is_repeatable = self.is_repeatable || request.method.is_safe();
        let mut failed: Vec<FailedCall> = Vec::new();
        loop {
            let server = self.servers.current().to_owned();
            let is_current = self.reads_newest(&request.method);
            let sent = self.request(&server, request.clone())?;
            let Ok(answer) = tokio::time::timeout_at(end, self.answer(&server, sent)).await else {
                self.servers.failed(&server);
                let timeout = CallError::Timeout {
                    server: server.clone(),
                    after: deadline,
                    may_be_made: !is_repeatable,
                };
                failed.push(FailedCall { server, error: timeout });
                return Err(of_all(failed));
            };
            let Attempted { is_unsent, error } = match answer {
                Ok(bytes) => {
                    self.servers.answered(is_current);
                    return Ok(bytes);
                }
                Err(attempted) => attempted,
            };
            match self.after(&request.method, &error, is_repeatable || is_unsent) {
                Next::Another => {
                    self.servers.failed(&server);
                    failed.push(FailedCall { server, error });
                    if failed.len() >= self.servers.len() {
                        return Err(of_all(failed));
                    }
                }
                Next::Again(pause) if Instant::now() + pause < end => tokio::time::sleep(pause).await,
                Next::Again(_) => return Err(error),
                Next::End => return Err(lost(error, &request.method, self.is_repeatable)),
            }
        }
    }

    /// What to do after this error. A server whose store fails has changed nothing, unless it says otherwise.
    fn after(&self, method: &Method, error: &CallError, may_be_sent_again: bool) -> Next {
        match error {
            CallError::Unreachable { .. } | CallError::Garbled { .. } if may_be_sent_again => Next::Another,
            CallError::Problem(problem) => match (problem.code, problem.retry_after_ms) {
                (Code::Store, _) if may_be_sent_again || !problem.may_be_made => Next::Another,
                // A read that the server was too busy to answer. Agents ask another server; the caller repeats changes.
                (Code::Busy, Some(pause)) if *method == Method::GET && self.bearer.is_some() => {
                    Next::Again(Duration::from_millis(pause))
                }
                (_, _) => Next::End,
            },
            CallError::Setup { .. }
            | CallError::Unreachable { .. }
            | CallError::NoneReachable { .. }
            | CallError::AnswerLost { .. }
            | CallError::Timeout { .. }
            | CallError::Garbled { .. } => Next::End,
        }
    }
}
