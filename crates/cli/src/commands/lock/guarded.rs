//! A command under its guard, as `lock run` sees it: starts both, passes orders on, and reads how the command did.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};

use super::guard;
use super::message::{GuardAnswer, GuardOrder, GuardedLease};
use super::request::LockRequest;

/// Longest time for a guard to end after its command has.
const GUARD_TIMEOUT: Duration = Duration::from_secs(5);

/// A command under its guard.
pub(super) struct Guarded {
    guard: Child,
    orders: File,
    answers: Lines<BufReader<Receiver>>,
    /// The process group of the command.
    group: Option<Pid>,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEvent {
    /// It is ended: the lease was not renewed in time.
    LeaseOver,
    /// It is ended as it was ordered.
    Ending,
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// The guard has ended without a word: what is left of the command was killed.
    Unguarded,
}

impl Guarded {
    /// Starts the command under a guard, until the end of this lease.
    pub(super) async fn start(
        wanted: &LockRequest<'_>,
        fence: u64,
        lease: GuardedLease,
    ) -> std::io::Result<Self> {
        // Nothing waits for a guard that is stopped and does not read. The runtime is not asked: it may not know yet that there is room.
        let (read_orders, write_orders) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (read_answers, write_answers) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(guard::COMMAND).arg(std::process::id().to_string());
        command.args([read_orders.as_raw_fd(), write_answers.as_raw_fd()].map(|fd| fd.to_string()));
        command.args([lease.end_ms, lease.kill_ms].map(|time| time.to_string()));
        // In a group of its own: what a terminal sends to this one does not stop it.
        command.args(&wanted.run.command).process_group(0);
        command.env("BELLWETHER_LOCK", &wanted.run.name).env("BELLWETHER_FENCE", fence.to_string());
        // A background process group that reads from the terminal is stopped by the kernel, while the lock is held.
        if std::io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        let mut guarded = Self {
            guard: command.spawn()?,
            orders: File::from(write_orders),
            answers: BufReader::new(Receiver::from_owned_fd(read_answers)?).lines(),
            group: None,
        };
        // The guard opens these two anew, and its end is seen only if they are closed here. One that ended before says nothing.
        let first = tokio::select! {
            first = guarded.answers.next_line() => first?,
            _ = guarded.guard.wait() => None,
        };
        drop((read_orders, write_answers));
        match first.and_then(|line| serde_json::from_str(&line).ok()) {
            Some(GuardAnswer::Started(group)) => {
                guarded.group = Pid::from_raw(group);
                Ok(guarded)
            }
            Some(GuardAnswer::NotStarted(reason)) => Err(std::io::Error::other(reason)),
            Some(_) | None => Err(std::io::Error::other("its guard cannot be started")),
        }
    }

    /// Passes an order on.
    pub(super) fn order(&self, order: GuardOrder) {
        let Ok(mut line) = serde_json::to_string(&order) else { return };
        line.push('\n');
        // A line is written whole or not at all. A guard that has ended needs none; one that is stopped has enough to read.
        if let Err(error) = (&self.orders).write_all(line.as_bytes()) {
            tracing::debug!(%error, "cannot pass an order on to the guard");
        }
    }

    /// Waits for what becomes of the command. Cancel safe.
    pub(super) async fn next(&mut self) -> CommandEvent {
        loop {
            let line = self.answers.next_line().await.ok().flatten();
            match line.and_then(|line| serde_json::from_str(&line).ok()) {
                Some(GuardAnswer::LeaseOver) => return CommandEvent::LeaseOver,
                Some(GuardAnswer::Ending) => return CommandEvent::Ending,
                Some(GuardAnswer::Exited(code)) => return CommandEvent::Exited(code),
                Some(GuardAnswer::Killed(signal)) => return CommandEvent::Killed(signal),
                Some(GuardAnswer::Started(_) | GuardAnswer::NotStarted(_)) => {}
                None => {
                    // The kernel has killed the command itself.
                    if let Some(group) = self.group {
                        kill_process_group(group, Signal::KILL).unwrap_or_default();
                    }
                    return CommandEvent::Unguarded;
                }
            }
        }
    }

    /// Waits until the guard has ended, with everything that it ends.
    pub(super) async fn ended(mut self) {
        if tokio::time::timeout(GUARD_TIMEOUT, self.guard.wait()).await.is_err() {
            tracing::warn!(
                "the guard of the command does not end: something that the command started cannot be killed"
            );
        }
    }
}
