//! What a job detaches on purpose: programs that are to stay when it ends, on a machine without a service manager for them.

use std::fs;

/// The variable, and its value, in the environment of a program that stays.
const MARK: &[u8] = b"BELLWETHER_DETACHED=true";

/// Whether a process was started with the mark. One that ended meanwhile, or of another user, was not.
pub(crate) fn is_marked(pid: i32) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == MARK)
}
