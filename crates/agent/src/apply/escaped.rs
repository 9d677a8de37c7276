//! Programs that left the process group of the command that started them, as `setsid` does: found by the command's mark in their
//! environment.

use std::fs;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::pidfd;

/// The variable with the mark of a command.
pub(super) const VARIABLE: &str = "BELLWETHER_COMMAND";

/// Most rounds of one sweep: what starts programs faster than they are killed is not waited for.
const MAX_ROUNDS: usize = 16;

/// Most process numbers that are tried one by one; more are compared with those that there are.
const MAX_TRIED: i32 = 4_096;

/// The number of the last command of this process.
static LAST: AtomicU64 = AtomicU64::new(0);

/// What no other process has in the marks of its commands.
static OWN: OnceLock<String> = OnceLock::new();

/// The mark of one command, which no other command of this machine has.
#[derive(Debug)]
pub(super) struct CommandMark(String);

impl CommandMark {
    /// # Errors
    /// The kernel has no random bytes yet.
    pub(super) fn new() -> io::Result<Self> {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        Ok(Self(format!("{}-{number}", own()?)))
    }

    pub(super) fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.0)
    }

    /// Kills all programs that carry the mark. They were started after the process `first`.
    ///
    /// Costs little: numbers of processes are given in order, and few are given while a command runs.
    pub(super) fn sweep(&self, first: Pid) {
        let wanted = format!("{VARIABLE}={}", self.0);
        for _ in 0..MAX_ROUNDS {
            let found = since(first.as_raw_nonzero().get()).filter(|pid| kill(*pid, &wanted)).count();
            if found == 0 {
                return;
            }
        }
        tracing::warn!(mark = self.0, "programs of a command start others faster than they are killed");
    }
}

fn own() -> io::Result<&'static str> {
    if let Some(own) = OWN.get() {
        return Ok(own);
    }
    let number = getrandom::u64().map_err(io::Error::other)?;
    Ok(OWN.get_or_init(|| format!("{number:016x}")))
}

/// The numbers of processes that may have been started since `first` was. All of them once the numbers began anew.
fn since(first: i32) -> Box<dyn Iterator<Item = i32>> {
    match last_given() {
        Some(last) if last >= first && last - first <= MAX_TRIED => Box::new(first..=last),
        Some(last) if last >= first => Box::new(listed().filter(move |pid| (first..=last).contains(pid))),
        Some(_) | None => Box::new(listed()),
    }
}

/// The number that was given last in this PID namespace: the last field of `/proc/loadavg`.
fn last_given() -> Option<i32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

fn listed() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Kills a process if it carries the mark; returns whether it did.
fn kill(pid: i32, wanted: &str) -> bool {
    let is_marked = || {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    if !is_marked() {
        return false;
    }
    // The handle comes before the look that counts, so that it is of the process that was looked at.
    let Some(Ok(handle)) = Pid::from_raw(pid).map(pidfd::open) else { return false };
    if !is_marked() {
        return false;
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) => true,
        Err(rustix::io::Errno::SRCH) => false,
        Err(error) => {
            tracing::warn!(pid, %error, "cannot end a program that a command left running");
            false
        }
    }
}
