//! What the kernel says of a process.

use std::fs;
use std::io;

/// What the kernel says of a process, from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// Its state, a letter: field 3.
    pub(crate) state: char,
    /// The number of its parent: field 4.
    pub(crate) parent: i32,
    /// Start time in clock ticks since boot: field 22.
    pub(crate) started_ticks: u64,
}

impl ProcessStat {
    /// Whether it has ended, and is yet to be reaped.
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// What the kernel says of this process.
pub(crate) fn stat(pid: i32) -> io::Result<ProcessStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let broken = || io::Error::other(format!("/proc/{pid}/stat is not in the expected format"));
    // The name in parentheses may contain anything, so the fields are counted from its end: the state is field 3.
    let (_, rest) = text.rsplit_once(')').ok_or_else(broken)?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next().and_then(|state| state.chars().next()).ok_or_else(broken)?;
    let parent = fields.next().and_then(|parent| parent.parse().ok()).ok_or_else(broken)?;
    let started_ticks = fields.nth(17).and_then(|ticks| ticks.parse().ok()).ok_or_else(broken)?;
    Ok(ProcessStat { state, parent, started_ticks })
}
