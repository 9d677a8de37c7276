//! Leftovers: processes of a run whose agent was killed. They are found by the run's name in their environment.

use std::fs;

use rustix::process::{Pid, Signal, kill_process_group};

use super::RUN;

/// Kills the process groups of all programs of `run`; returns how many. What a command moved to another group stays.
///
/// Reads all of `/proc`; not for the runtime's threads.
pub(crate) fn kill(run: &str) -> std::io::Result<usize> {
    let wanted = format!("{RUN}={run}");
    let mut killed = 0;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // A process that ended meanwhile, or of another user, is not a leftover.
        let Ok(environment) = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())) else { continue };
        let mut variables = environment.split(|byte| *byte == 0);
        let carries = variables.any(|variable| variable == wanted.as_bytes());
        if carries && rustix::process::getpgid(Some(pid)).is_ok_and(|group| group == pid) {
            match kill_process_group(pid, Signal::KILL) {
                Ok(()) => killed += 1,
                Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(killed)
}
