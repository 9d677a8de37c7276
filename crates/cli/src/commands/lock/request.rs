//! A request for a lock: who asks, and for what.

use bellwether_rt::clock::Clock;

use crate::args::LockRun;
use crate::context::Context;
use crate::exit::Exit;

/// A request for a lock.
pub(super) struct LockRequest<'a> {
    pub(super) context: &'a Context,
    pub(super) run: &'a LockRun,
    pub(super) holder: String,
}

/// The exit code that a shell reports for a command that a signal ended.
pub(super) fn exit_by(signal: i32) -> Exit {
    Exit::Child(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// A unique holder name: host, process id and time.
pub(super) fn this_process() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(64).collect();
    format!("{host}:{}:{}", std::process::id(), Clock::system().now().as_millis())
}
