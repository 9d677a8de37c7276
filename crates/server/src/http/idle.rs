//! Closes connections of agents on which nothing arrives: agents ping by themselves.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::clock::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::timing::SILENCE_LIMIT;

/// Time of the last received data. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct LastActivity {
    clock: Clock,
    at: Arc<AtomicU64>,
}

impl LastActivity {
    /// Records that data arrived now.
    pub(super) fn new(clock: Clock) -> Self {
        let at = Arc::new(AtomicU64::new(clock.now().as_millis()));
        Self { clock, at }
    }

    fn note(&self) {
        self.at.store(self.clock.now().as_millis(), Ordering::Relaxed);
    }

    /// Waits until the connection is silent for too long.
    pub(super) async fn falls_silent(&self) {
        loop {
            let until = Timestamp::from_millis(self.at.load(Ordering::Relaxed)).plus(SILENCE_LIMIT);
            let left = until.since(self.clock.now());
            if left == Span::ZERO {
                return;
            }
            tokio::time::sleep(left.to_duration()).await;
        }
    }
}

/// A stream that records when data arrives.
#[derive(Debug)]
pub(super) struct ActivityStream<S> {
    pub(super) stream: S,
    pub(super) heard: LastActivity,
}

impl<S: AsyncRead + Unpin> AsyncRead for ActivityStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.heard.note();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ActivityStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_is_silent_some_time_after_the_last_that_arrived_and_writing_to_it_does_not_count() {
        let clock = Clock::of_runtime(Timestamp::EPOCH);
        let heard = LastActivity::new(clock.clone());
        let (mut near, mut far) = tokio::io::duplex(64);
        let mut far = ActivityStream { stream: &mut far, heard: heard.clone() };
        let mut byte = [0];
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(13)).await;
            near.write_all(b"p").await.unwrap();
            far.read_exact(&mut byte).await.unwrap();
        }
        let last = clock.now();
        let talk = async {
            loop {
                far.write_all(b"a").await.unwrap();
                near.read_exact(&mut byte).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = talk => {}
            () = heard.falls_silent() => {}
        }
        let after = clock.now().since(last);
        assert!(after >= SILENCE_LIMIT && after < SILENCE_LIMIT.plus(Span::from_secs(1)), "{after:?}");
    }
}
