//! The descendants of this process: what a job started, whatever process group or session it moved to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use crate::apply::process_stat::{ProcessStat, stat};

/// Sends a signal to every descendant that is there now. One that begins meanwhile is found by the next call.
pub(super) fn signal_all(signal: Signal) -> io::Result<()> {
    let own = getpid().as_raw_nonzero().get();
    for (pid, seen) in below(own, &processes()?) {
        let Some(id) = Pid::from_raw(pid) else { continue };
        // Its number may be another process's by now: what is signalled is what has been looked at again.
        let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { continue };
        let is_same = stat(pid).is_ok_and(|now| now.started_ticks == seen);
        if is_same {
            // It ended, or has another user: the agent sees that by that this process goes on.
            pidfd_send_signal(&handle, signal).unwrap_or_default();
        }
    }
    Ok(())
}

fn processes() -> io::Result<BTreeMap<i32, ProcessStat>> {
    let entries = fs::read_dir("/proc")?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // One that ended meanwhile has none.
    Ok(numbers.filter_map(|pid| Some((pid, stat(pid).ok()?))).collect())
}

/// The descendants of a process that have not ended, with their start times.
fn below(root: i32, processes: &BTreeMap<i32, ProcessStat>) -> BTreeMap<i32, u64> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in processes {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        let born = children.get(&parent).into_iter().flatten();
        next.extend(born.filter(|pid| found.insert(**pid)).copied());
    }
    let lives = |pid: i32| processes.get(&pid).filter(|stat| !stat.has_ended());
    found.into_iter().filter_map(|pid| Some((pid, lives(pid)?.started_ticks))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_however_deep_and_nothing_else() {
        let of = |parent, state, started_ticks| ProcessStat { state, parent, started_ticks };
        let processes = [
            (1, of(0, 'S', 1)),
            (10, of(1, 'S', 2)),
            (11, of(10, 'S', 3)),
            (12, of(11, 'R', 4)),
            (13, of(10, 'Z', 5)),
            (14, of(13, 'S', 6)),
            (20, of(1, 'S', 7)),
        ];
        assert_eq!(below(10, &processes.into()), [(11, 3), (12, 4), (14, 6)].into());
    }
}
