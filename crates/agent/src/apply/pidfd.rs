//! Handles of processes, which become readable when their process ends.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;

use super::process_stat::{exists, stat};

/// Interval between two looks at a process that cannot be waited for.
const LOOK: Duration = Duration::from_millis(100);

/// A handle of a process. Without flags: those are younger than the oldest kernel that agents run on, and waiting needs none.
pub(super) fn open(pid: Pid) -> Result<OwnedFd, rustix::io::Errno> {
    pidfd_open(pid, PidfdFlags::empty())
}

/// Waits until a process has ended, with a handle of it, if there is one already. What prevents the waiting says nothing of the process:
/// then it is looked at from time to time. Cancel safe.
pub(super) async fn ended(pid: Pid, handle: Option<OwnedFd>) {
    let handle = match handle.map_or_else(|| open(pid), Ok) {
        Ok(handle) => waitable(handle),
        Err(rustix::io::Errno::SRCH) => return,
        Err(error) => Err(error.into()),
    };
    let readable = match handle {
        Ok(handle) => handle.readable().await.map(drop),
        Err(error) => Err(error),
    };
    let Err(error) = readable else { return };
    tracing::warn!(pid = pid.as_raw_nonzero(), %error, "cannot wait for a process; looking at it instead");
    let number = pid.as_raw_nonzero().get();
    let started = stat(number).ok().map(|seen| seen.started_ticks);
    while lives(pid, started) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a process lives, as far as can be seen: only what shows that it has ended is evidence of that.
fn lives(pid: Pid, started: Option<u64>) -> bool {
    match stat(pid.as_raw_nonzero().get()) {
        Ok(seen) => !seen.has_ended() && started.is_none_or(|started| seen.started_ticks == started),
        Err(_) => exists(pid),
    }
}

/// The handle, to wait for its process.
#[expect(deprecated, reason = "what replaces it is unsafe; an OwnedFd keeps its descriptor open by itself")]
fn waitable(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(handle)
}
