//! Bodies of answers in parts of a bounded size, so that it is known whether the client takes them.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::connections::PendingAnswer;

/// Most bytes of a part: what is given to the connection at once is in its buffers, whoever takes it.
const PART_BYTES: usize = 64 << 10;

/// A body whose request is pending until its end is given to the connection.
#[derive(Debug)]
pub(super) struct TakenBody {
    body: Body,
    /// The rest of a part that was larger.
    rest: Bytes,
    /// None of a connection without a network.
    pending: Option<PendingAnswer>,
}

impl TakenBody {
    /// The body of an answer.
    pub(super) fn new(body: Body, pending: Option<PendingAnswer>) -> Self {
        let answer = Self { body, rest: Bytes::new(), pending };
        answer.offer(true);
        answer
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
