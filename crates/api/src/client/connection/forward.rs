//! Requests of jobs, which the agent sends on under its own certificate. Changes nothing of them.

use std::time::Duration;

use http::{HeaderValue, Request, header};
use hyper::body::Bytes;

use super::{Call, Client};
use crate::client::error::CallError;
use crate::paths::ACTING_JOB;

/// The headers of a request that are sent on as they are.
const FORWARDED: [header::HeaderName; 3] = [header::CONTENT_TYPE, header::IF_MATCH, header::IF_NONE_MATCH];

impl Client {
    /// Sends a request of a job that this node runs, as it came from there, and returns the answer as it is.
    ///
    /// # Errors
    /// [`CallError`] when no server answers in time.
    pub async fn forward(
        &self,
        job: &str,
        request: Request<Bytes>,
        deadline: Duration,
    ) -> Result<http::Response<Bytes>, CallError> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let server = self.server();
        let mut sent = self.request(server, Call { method: head.method, path, body })?;
        let setup = |error: &dyn std::fmt::Display| CallError::Setup {
            what: "the request of a job".to_owned(),
            reason: error.to_string(),
        };
        sent.headers_mut().insert(ACTING_JOB, HeaderValue::try_from(job).map_err(|error| setup(&error))?);
        for name in FORWARDED {
            if let Some(value) = head.headers.get(&name) {
                sent.headers_mut().insert(name, value.clone());
            }
        }
        match tokio::time::timeout(deadline, self.whole(server, sent)).await {
            Ok(answer) => answer.map_err(|attempted| attempted.error),
            Err(_) => {
                Err(CallError::Timeout { server: server.to_owned(), after: deadline, may_be_made: false })
            }
        }
    }
}
