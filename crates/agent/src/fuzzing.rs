//! For a fuzz target: what data stores, members and programs say is read without sockets and processes, by what reads it from them.

use core::pin::pin;
use core::task::{Context, Poll, Waker};

use crate::apply::output::{last_words, telling_line};
use crate::ensemble::fuzzing::{read_log, read_redis, read_status};
use crate::probe::fuzzing::read;

/// Reads what was said as each of those who could have said it.
pub fn said(bytes: &[u8]) {
    // All is there already, so that nothing is waited for.
    let reading = pin!(read(bytes)).poll(&mut Context::from_waker(Waker::noop()));
    assert!(reading.is_ready(), "a whole answer is waited for");
    if let Poll::Ready(Some(info)) = reading {
        read_redis(&info);
    }
    read_status(bytes);
    read_log(bytes);
    let kept = last_words(bytes);
    let line = telling_line(&kept);
    assert!(kept.contains(line) && !line.contains('\n'), "{line:?} of {kept:?}");
}
