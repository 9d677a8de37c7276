//! Reading request bodies up to a limit and within a deadline. The rest of one above it is read and dropped, within bounds, before the answer: many clients
//! read nothing until they have sent everything, and a connection or stream that is closed before that loses them the answer.

use std::error::Error;
use std::io::{self, ErrorKind};
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

/// Longest time for a whole body to arrive, however many parts it comes in: a slower client occupies a connection for nothing.
pub(super) const BODY_DEADLINE: Duration = Duration::from_secs(30);

/// The same for a body above the usual limit: 16 MiB within it are a megabit a second.
pub(super) const LARGE_BODY_DEADLINE: Duration = Duration::from_secs(120);

/// Longest time in which the rest of a refused body is read.
const DROP_WITHIN: Duration = Duration::from_secs(10);

/// The length that a request declares for its body.
pub(super) fn declared_length(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The whole body of a request, which is left without it.
///
/// # Errors
/// If it is larger than `limit`, or not there within `deadline`.
pub(super) async fn read(request: &mut Request, limit: usize, deadline: Duration) -> Result<Bytes, Failure> {
    let declared = declared_length(request).unwrap_or_default();
    // This client waits for the answer before it sends anything.
    let asks_first = request.headers().contains_key(header::EXPECT);
    let mut body = std::mem::take(request.body_mut());
    if declared > limit {
        return Err(if asks_first { too_large(limit) } else { drop_rest(body, limit).await });
    }
    match tokio::time::timeout(deadline, read_within(&mut body, limit)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err(drop_rest(body, limit).await),
        Ok(Err(failure)) => Err(failure),
        Err(_) => {
            let detail = format!("cannot read the body: it did not arrive within {} s", deadline.as_secs());
            Err(Failure::new(Code::Timeout, detail))
        }
    }
}

/// A body up to its end; `None` once it is larger than the limit.
async fn read_within(body: &mut Body, limit: usize) -> Result<Option<Bytes>, Failure> {
    let mut bytes = BytesMut::new();
    while let Some(part) = next(body).await? {
        if bytes.len() + part.len() > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Some(bytes.freeze()))
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
            Err(error) => return Err(broken(&error)),
        }
    }
}

/// A body that is not whole: because of how it is encoded, which is so every time, or because the rest did not arrive.
fn broken(error: &axum::Error) -> Failure {
    let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
    let cause = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
    if cause.is_some_and(|cause| matches!(cause.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData)) {
        return Failure::new(Code::Invalid, "cannot read the body: its chunks are malformed");
    }
    Failure::new(Code::Timeout, "cannot read the body: it broke off")
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{FutureExt, StreamExt, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// A body of which a byte comes every ten seconds.
    fn dripping(bytes: usize) -> Request {
        let parts = stream::iter(0..bytes).then(|_| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(b" ")))
        });
        Request::new(Body::new(StreamBody::new(parts)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_refused_at_its_deadline_however_steadily_it_drips() {
        let read = async |bytes| read(&mut dripping(bytes), 1 << 20, BODY_DEADLINE).await;
        assert_eq!(read(2).await.unwrap(), "  ");
        let refused = read(1_000).await.unwrap_err();
        assert_eq!(refused.detail(), "cannot read the body: it did not arrive within 30 s");
    }

    #[tokio::test]
    async fn a_request_is_left_without_its_body() {
        let mut request = Request::new(Body::from("{}"));
        let first = read(&mut request, 9, BODY_DEADLINE).now_or_never().unwrap();
        let second = read(&mut request, 9, BODY_DEADLINE).now_or_never().unwrap();
        assert_eq!((first.unwrap(), second.unwrap()), (Bytes::from("{}"), Bytes::new()));
    }
}
