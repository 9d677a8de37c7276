//! Bodies of answers in parts of a bounded size, so that it is known whether the client takes them.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::IntoResponse;
use bellwether_api::problem::Code;
use bytes::Bytes;
use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::connections::PendingAnswer;
use super::problem::Failure;

/// Most bytes of a part: what is given to the connection at once is in its buffers, whoever takes it. A frame of HTTP/2 has as many.
const PART_BYTES: usize = 16 << 10;

/// That answers of this connection are to be taken first.
fn too_much() -> Response<Body> {
    Failure::new(Code::Busy, "cannot answer: this connection holds answers that are not taken")
        .hint("take the answers of earlier requests first, or ask on another connection")
        .retry_after_ms(1_000)
        .into_response()
}

/// A body whose request is pending until its end is given to the connection.
#[derive(Debug)]
pub(super) struct TakenBody {
    body: Body,
    /// The rest of a part that was larger.
    rest: Bytes,
    /// Bytes of the last part that was given to the connection.
    given: usize,
    /// None of a connection without a network.
    pending: Option<PendingAnswer>,
}

impl TakenBody {
    /// The body of an answer.
    fn new(body: Body, pending: Option<PendingAnswer>) -> Self {
        let answer = Self { body, rest: Bytes::new(), given: 0, pending };
        answer.offer(true);
        answer
    }

    /// The answer with a body in parts; another one in its place if the connection holds too much that its client does not take.
    pub(super) fn answer(answer: Response<Body>, pending: Option<PendingAnswer>) -> Response<Self> {
        let bytes = answer.body().size_hint().lower();
        let is_held = pending.as_ref().is_none_or(|pending| pending.hold(bytes));
        let answer = if is_held { answer } else { too_much() };
        answer.map(|body| Self::new(body, pending))
    }

    /// Notes that the last part is in the client's window.
    fn taken(&mut self) {
        let given = u64::try_from(std::mem::take(&mut self.given)).unwrap_or(u64::MAX);
        if let Some(pending) = self.pending.as_ref().filter(|_| given > 0) {
            pending.take(given);
        }
    }

    fn offer(&self, is_something: bool) {
        if let Some(pending) = &self.pending {
            pending.offer(is_something);
        }
    }

    fn part(&mut self) -> Bytes {
        self.rest.split_to(self.rest.len().min(PART_BYTES))
    }
}

impl HttpBody for TakenBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // The connection asks for more once there is room for what it has.
        self.taken();
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Pending => {
                    self.offer(false);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Poll::Ready(end) => return Poll::Ready(end),
            }
        }
        self.offer(true);
        let part = self.part();
        self.given = part.len();
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), u64::try_from(self.rest.len()).unwrap_or(u64::MAX));
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper.saturating_add(rest));
        }
        whole
    }
}
