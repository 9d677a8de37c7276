//! The descendants of this process: what a job started, whatever process group or session it moved to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use crate::apply::detached;
use crate::apply::process_stat::{ProcessStat, seen, stat};

/// Descendants that have not ended, with their start times.
pub type Descendants = BTreeMap<i32, u64>;

/// Which descendants are left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spared {
    /// None.
    None,
    /// What a job detached, in a session of its own, with all that it started.
    Detached,
}

/// The descendants that are there now. One that begins meanwhile is found by the next call.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn descendants(spared: Spared) -> io::Result<Descendants> {
    let own = getpid().as_raw_nonzero().get();
    let processes = processes()?;
    let session = |pid: i32| processes.get(&pid).map(|stat| stat.session);
    let is_detached = |pid: i32| session(pid) != session(own) && detached::is_marked(pid);
    Ok(below(own, &processes, |pid| spared == Spared::Detached && is_detached(pid)))
}

/// Sends a signal to these descendants.
pub fn signal(descendants: &Descendants, signal: Signal) {
    for (&pid, &seen) in descendants {
        let Some(id) = Pid::from_raw(pid) else { continue };
        // Its number may be another process's by now: what is signalled is what has been looked at again.
        let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { continue };
        let is_same = stat(pid).is_ok_and(|now| now.started_ticks == seen);
        if is_same {
            // It ended, or has another user: the agent sees that by that this process goes on.
            pidfd_send_signal(&handle, signal).unwrap_or_default();
        }
    }
}

fn processes() -> io::Result<BTreeMap<i32, ProcessStat>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(stat) = seen(stat(pid))? {
            found.insert(pid, stat);
        }
    }
    Ok(found)
}

/// The descendants of a process, without those that are spared and their own.
fn below(root: i32, processes: &BTreeMap<i32, ProcessStat>, is_spared: impl Fn(i32) -> bool) -> Descendants {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in processes {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        let born = children.get(&parent).into_iter().flatten();
        next.extend(born.filter(|pid| !is_spared(**pid) && found.insert(**pid)).copied());
    }
    let lives = |pid: i32| processes.get(&pid).filter(|stat| !stat.has_ended());
    found.into_iter().filter_map(|pid| Some((pid, lives(pid)?.started_ticks))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_however_deep_and_nothing_else() {
        let of =
            |parent, state, started_ticks| ProcessStat { state, parent, group: 1, session: 1, started_ticks };
        let processes = [
            (1, of(0, 'S', 1)),
            (10, of(1, 'S', 2)),
            (11, of(10, 'S', 3)),
            (12, of(11, 'R', 4)),
            (13, of(10, 'Z', 5)),
            (14, of(13, 'S', 6)),
            (20, of(1, 'S', 7)),
        ];
        let processes = processes.into();
        assert_eq!(below(10, &processes, |_| false), [(11, 3), (12, 4), (14, 6)].into());
        assert_eq!(below(10, &processes, |pid| pid == 11), [(14, 6)].into(), "with what it started");
    }
}
