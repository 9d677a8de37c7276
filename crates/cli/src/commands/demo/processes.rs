//! Processes of the demo: this process adopts every orphan below it, so that it can stop everything that it started.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// Makes this process the parent of every orphan among its descendants.
pub(super) fn adopt_orphans() -> std::io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// All descendants of this process, by reading the process table.
pub(super) fn descendants(of: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The name in parentheses may contain anything; the parent is the second word after it.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut next = vec![of.as_raw_nonzero().get()];
    while let Some(pid) = next.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        found.extend(below.iter().copied().filter_map(Pid::from_raw));
        next.extend(below);
    }
    found
}

/// Kills a process and its descendants at once, as a power failure would.
pub(super) fn kill_tree(root: Pid) {
    // Stopped first, so that it starts nothing while the tree is walked.
    signal(root, Signal::STOP);
    for pid in descendants(root) {
        signal(pid, Signal::KILL);
    }
    signal(root, Signal::KILL);
}

/// Kills what is left below this process and reaps it. Returns whether anything was left.
pub(super) fn kill_all() -> bool {
    let left = descendants(getpid());
    for pid in &left {
        signal(*pid, Signal::KILL);
    }
    reap();
    !left.is_empty()
}

/// Reaps children that have ended.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

fn signal(pid: Pid, signal: Signal) {
    if let Err(error) = kill_process(pid, signal) {
        tracing::debug!(%error, ?pid, "a process was gone already");
    }
}
