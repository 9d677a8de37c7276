//! What the kernel says of a process.

use std::fs;
use std::io;

use rustix::process::{Pid, getpid, test_kill_process};

/// What the kernel says of a process, from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// Its state, a letter: field 3.
    pub(crate) state: char,
    /// The number of its parent: field 4.
    pub(crate) parent: i32,
    /// The number of its process group: field 5. 0 for one outside this PID namespace.
    pub(crate) group: i32,
    /// The number of its session: field 6. 0 for one outside this PID namespace, as when a container's manager started it there.
    pub(crate) session: i32,
    /// Start time in clock ticks since boot: field 22.
    pub(crate) started_ticks: u64,
}

impl ProcessStat {
    /// Whether it has ended, and is yet to be reaped.
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// The process group of a program that this agent or one before it started; `None` for a process that has ended, for one of this
/// process's own group, and for one of a group outside this PID namespace: what an agent starts is in a group of its own.
pub(crate) fn group_of(pid: Pid) -> io::Result<Option<Pid>> {
    let of = |pid: Pid| seen(stat(pid.as_raw_nonzero().get()).map(|stat| stat.group));
    let own = of(getpid())?;
    Ok(of(pid)?.filter(|group| Some(*group) != own).and_then(Pid::from_raw))
}

/// What was read of a process; `None` for one that has ended or belongs to another user. Any other error, such as too many open files,
/// says nothing of the process.
pub(crate) fn seen<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether a process exists: its number is in use.
pub(crate) fn exists(pid: Pid) -> bool {
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// What the kernel says of this process.
pub(crate) fn stat(pid: i32) -> io::Result<ProcessStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let broken = || io::Error::other(format!("/proc/{pid}/stat is not in the expected format"));
    // The name in parentheses may contain anything, so the fields are counted from its end: the state is field 3.
    let (_, rest) = text.rsplit_once(')').ok_or_else(broken)?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next().and_then(|state| state.chars().next()).ok_or_else(broken)?;
    let mut number = || fields.next().and_then(|number| number.parse().ok()).ok_or_else(broken);
    let (parent, group, session) = (number()?, number()?, number()?);
    let started_ticks = fields.nth(15).and_then(|ticks| ticks.parse().ok()).ok_or_else(broken)?;
    Ok(ProcessStat { state, parent, group, session, started_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_shows_that_a_process_is_gone_or_anothers_is_taken_for_that() {
        let read = |errno: rustix::io::Errno| seen::<()>(Err(io::Error::from(errno)));
        use rustix::io::Errno;
        for gone in [Errno::NOENT, Errno::SRCH, Errno::ACCESS, Errno::PERM] {
            assert!(read(gone).unwrap().is_none(), "{gone}");
        }
        for unseen in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO] {
            assert!(read(unseen).is_err(), "{unseen}");
        }
    }
}
