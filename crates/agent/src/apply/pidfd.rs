//! Handles of processes, which become readable when their process ends.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// The handle, to wait for its process.
#[expect(deprecated, reason = "what replaces it is unsafe; an OwnedFd keeps its descriptor open by itself")]
pub(super) fn waitable(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(handle)
}
