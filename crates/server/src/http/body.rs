//! Reading request bodies up to a limit. The rest of one above it is read and dropped, within bounds, before the answer: many clients
//! read nothing until they have sent everything, and a connection or stream that is closed before that loses them the answer.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bellwether_api::problem::Code;
use bytes::{Bytes, BytesMut};
use http::header;
use http_body_util::BodyExt;

use super::problem::Failure;

/// Most bytes of a refused body that are read and dropped: four times the largest that is accepted. Whoever sends more sees its
/// connection closed, and the answer if it looks.
const MAX_DROPPED_BYTES: usize = 64 << 20;

/// Longest time in which the rest of a refused body is read.
const DROP_WITHIN: Duration = Duration::from_secs(10);

/// The length that a request declares for its body.
pub(super) fn declared_length(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The whole body of a request.
pub(super) async fn read(request: Request, limit: usize) -> Result<Bytes, Failure> {
    let declared = declared_length(&request).unwrap_or_default();
    // This client waits for the answer before it sends anything.
    let asks_first = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    if declared > limit && asks_first {
        return Err(too_large(limit));
    }
    let mut bytes = BytesMut::new();
    while declared <= limit
        && let Some(part) = next(&mut body).await?
    {
        if bytes.len() + part.len() > limit {
            return Err(drop_rest(body, limit).await);
        }
        bytes.extend_from_slice(&part);
    }
    if declared > limit { Err(drop_rest(body, limit).await) } else { Ok(bytes.freeze()) }
}

/// The next part of a body; `None` at its end.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Failure> {
    loop {
        match body.frame().await.transpose() {
            Ok(None) => return Ok(None),
            Ok(Some(frame)) => {
                if let Ok(part) = frame.into_data() {
                    return Ok(Some(part));
                }
            }
            Err(_) => return Err(Failure::new(Code::Timeout, "cannot read the body: it did not arrive")),
        }
    }
}

/// Reads and drops the rest of a body that is refused.
async fn drop_rest(mut body: Body, limit: usize) -> Failure {
    let rest = async {
        let mut dropped = 0;
        while dropped < MAX_DROPPED_BYTES
            && let Ok(Some(part)) = next(&mut body).await
        {
            dropped += part.len();
        }
    };
    // Whether it ended in time does not change the answer.
    let _ended = tokio::time::timeout(DROP_WITHIN, rest).await;
    too_large(limit)
}

fn too_large(limit: usize) -> Failure {
    Failure::new(Code::TooLarge, format!("cannot read the body: it is larger than {limit} bytes"))
}
