//! Programs that left the process group of the command that started them, as `setsid` does: found by the command's mark in their
//! environment.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::pidfd;
use super::process_stat::seen;

/// The variable with the mark of a command.
pub(super) const VARIABLE: &str = "BELLWETHER_COMMAND";

/// Most rounds of one sweep: what starts programs faster than they are killed is not waited for.
const MAX_ROUNDS: usize = 16;

/// Most looks at a process whose program is being replaced, which takes it less than a millisecond of a processor.
const MAX_LOOKS: usize = 10_000;

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
        let (mut from, mut killed) = (first.as_raw_nonzero().get(), BTreeSet::new());
        for _ in 0..MAX_ROUNDS {
            let last = last_given();
            let (mut has_found, mut replaced) = (false, Vec::new());
            for pid in between(from, last) {
                if killed.contains(&pid) {
                    continue;
                }
                match kill(pid, &wanted) {
                    Swept::Killed => has_found |= killed.insert(pid),
                    Swept::Replaced => replaced.push(pid),
                    Swept::Other => {}
                }
            }
            for pid in replaced {
                has_found |= kill_replaced(pid, &wanted) && killed.insert(pid);
            }
            match last {
                // What it started before its end may have been given a number after these.
                _ if has_found => {}
                // Nothing with these numbers carries the mark; what was started meanwhile may, by one that ended by itself.
                Some(last) if last_given().is_some_and(|now| now > last) => from = last.saturating_add(1),
                Some(_) | None => return,
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

/// The numbers of processes that may have been given from `first` to `last`. All of them once the numbers began anew.
fn between(first: i32, last: Option<i32>) -> Box<dyn Iterator<Item = i32>> {
    match last {
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

/// What a process says of the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Carried,
    Absent,
    /// It cannot be read now: its program is being replaced by another one, as `exec` does, and there is a moment in which it has no environment.
    Unreadable,
}

/// What became of a process that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swept {
    Killed,
    Other,
    /// See [`Mark::Unreadable`].
    Replaced,
}

fn mark(pid: i32, wanted: &str) -> Mark {
    let environment = || seen(fs::read(format!("/proc/{pid}/environ")));
    let mut found = match environment() {
        Ok(Some(found)) => found,
        // One that ended meanwhile, or of another user.
        Ok(None) => return Mark::Absent,
        // Such as too many open files, which says nothing of it.
        Err(_) => return Mark::Unreadable,
    };
    if found.is_empty() {
        if !has_environment(pid) {
            // What belongs to the kernel, or has ended, has no program.
            let has_program = fs::read_link(format!("/proc/{pid}/exe")).is_ok();
            return if has_program { Mark::Unreadable } else { Mark::Absent };
        }
        // It may have been that of the program before.
        found = match environment() {
            Ok(again) => again.unwrap_or_default(),
            Err(_) => return Mark::Unreadable,
        };
    }
    let is_marked = found.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
    if is_marked { Mark::Carried } else { Mark::Absent }
}

/// Whether a program has its environment already, be it empty: its end, the 51st field of `/proc/PID/stat`.
fn has_environment(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may contain anything; what follows begins with field 3.
    let field = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(48));
    field.is_some_and(|end| end != "0")
}

/// Kills a process whose program was being replaced, if it carries the mark once it is; returns whether it did.
fn kill_replaced(pid: i32, wanted: &str) -> bool {
    for _ in 0..MAX_LOOKS {
        match kill(pid, wanted) {
            Swept::Killed => return true,
            Swept::Other => return false,
            // It needs a processor for that moment.
            Swept::Replaced => std::thread::yield_now(),
        }
    }
    tracing::warn!(
        pid,
        "cannot see whether a program was left running by a command: its environment cannot be read"
    );
    false
}

/// Kills a process if it carries the mark.
fn kill(pid: i32, wanted: &str) -> Swept {
    match mark(pid, wanted) {
        Mark::Carried => {}
        Mark::Absent => return Swept::Other,
        Mark::Unreadable => return Swept::Replaced,
    }
    // The handle comes before the look that counts, so that it is of the process that was looked at.
    let Some(Ok(handle)) = Pid::from_raw(pid).map(pidfd::open) else { return Swept::Other };
    match mark(pid, wanted) {
        Mark::Carried => {}
        Mark::Absent => return Swept::Other,
        Mark::Unreadable => return Swept::Replaced,
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) => Swept::Killed,
        Err(rustix::io::Errno::SRCH) => Swept::Other,
        Err(error) => {
            tracing::warn!(pid, %error, "cannot end a program that a command left running");
            Swept::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn marks_are_told_from_other_environments_and_from_none() {
        let wanted = format!("{VARIABLE}=1-2");
        let of = |variables: &[(&str, &str)]| {
            let mut command = Command::new("/bin/cat");
            command.env_clear().envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            // Its program is there, as it has ended the moment in which it had none.
            while mark(pid, &wanted) == Mark::Unreadable {
                std::thread::yield_now();
            }
            let (seen, has_environment) = (mark(pid, &wanted), has_environment(pid));
            child.kill().unwrap();
            let is_other = loop {
                match mark(pid, &wanted) {
                    Mark::Absent => break true,
                    Mark::Carried | Mark::Unreadable => std::thread::yield_now(),
                }
            };
            child.wait().unwrap();
            (seen, has_environment, is_other)
        };
        assert_eq!(of(&[(VARIABLE, "1-2")]), (Mark::Carried, true, true));
        assert_eq!(of(&[(VARIABLE, "1-3")]), (Mark::Absent, true, true));
        assert_eq!(of(&[]), (Mark::Absent, true, true));
    }
}
