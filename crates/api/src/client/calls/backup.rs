//! The call for a backup of all records.

use std::time::Duration;

use http::Method;

use super::super::attempt::{Attempted, FailedCall, Request, of_all};
use super::super::connection::Client;
use super::super::connection::streamed::AnswerBody;
use super::super::error::CallError;
use crate::paths;
use crate::problem::Code;
use crate::v1::backup::NewBackup;

/// Longest wait until a backup begins to arrive: the server writes all of it first, a million records in less than a minute.
const READY_DEADLINE: Duration = Duration::from_secs(600);

impl Client {
    /// Takes a backup: the text of the backup as it arrives, which is complete only with its trailer. It changes nothing, so that each
    /// server is asked in turn, until one takes the request.
    ///
    /// # Errors
    /// [`CallError`]: [`Code::Forbidden`] without every right, [`Code::Busy`] while the server gives another one.
    pub async fn backup(&self, request: NewBackup) -> Result<AnswerBody, CallError> {
        let body = serde_json::to_vec(&request).map_err(|error| CallError::Setup {
            what: "the request".to_owned(),
            reason: error.to_string(),
        })?;
        let call = Request { method: Method::POST, path: paths::BACKUP, body: body.into() };
        let mut failed = Vec::new();
        loop {
            let server = self.servers.current().to_owned();
            let sent = self.request(&server, call.clone())?;
            let answer = tokio::time::timeout(READY_DEADLINE, self.streamed(&server, sent)).await;
            let timeout =
                CallError::Timeout { server: server.clone(), after: READY_DEADLINE, may_be_made: false };
            let error = match answer.unwrap_or_else(|_| Err(timeout.into())) {
                Ok(body) => {
                    self.servers.answered(false);
                    return Ok(body);
                }
                Err(Attempted { error, .. }) => error,
            };
            if !is_of_server(&error) {
                return Err(error);
            }
            self.servers.failed(&server);
            failed.push(FailedCall { server, error });
            if failed.len() >= self.servers.len() {
                return Err(of_all(failed));
            }
        }
    }
}

/// Whether another server may do what this one did not.
fn is_of_server(error: &CallError) -> bool {
    match error {
        CallError::Unreachable { .. } | CallError::Garbled { .. } => true,
        CallError::Problem(problem) => problem.code == Code::Store,
        CallError::Setup { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Timeout { .. } => false,
    }
}
