//! Answers that are read as they arrive: larger than what is held in memory.

use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};

use super::{Client, failure, refused, unreachable};
use crate::client::attempt::Attempted;
use crate::client::error::{CallError, UnreachableCause};

/// Largest problem document that is read, in bytes.
const MAX_PROBLEM_BYTES: usize = 1 << 20;

/// Longest wait for the next part of an answer that has begun: the server has all of it.
const PART_DEADLINE: Duration = Duration::from_secs(60);

/// The body of an answer, part by part.
#[derive(Debug)]
pub struct AnswerBody {
    server: String,
    body: Incoming,
}

impl AnswerBody {
    /// The next part; none at the end.
    ///
    /// # Errors
    /// [`CallError`] if the connection ends before the answer, or nothing arrives for a minute.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            let frame = tokio::time::timeout(PART_DEADLINE, self.body.frame()).await;
            let Ok(frame) = frame else {
                let server = self.server.clone();
                return Err(CallError::Timeout { server, after: PART_DEADLINE, may_be_made: false });
            };
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    return Err(CallError::Unreachable {
                        server: self.server.clone(),
                        cause: UnreachableCause::Connection,
                        reason: format!("the answer ended early: {}", failure::chain(&error)),
                    });
                }
            }
        }
    }
}

impl Client {
    /// Sends a request and answers the body as soon as it begins.
    pub(in crate::client) async fn streamed(
        &self,
        server: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<AnswerBody, Attempted> {
        let (head, body) = self.begun(server, request).await?;
        if head.status.is_success() {
            return Ok(AnswerBody { server: server.to_owned(), body });
        }
        let read = Limited::new(body, MAX_PROBLEM_BYTES).collect().await;
        let bytes = read.map_err(|error| unreachable(server, &*error))?.to_bytes();
        Err(refused(server, head.status, &bytes).into())
    }
}
