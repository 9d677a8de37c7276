//! Leftovers: processes of a run whose agent was killed. They are found by the run's name in their environment.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process_group};

use super::{PARAMS, RUN};

/// Kills the process groups of all programs of `run`; returns how many. What a command moved to another group stays.
///
/// Reads all of `/proc`; not for the runtime's threads.
pub(crate) fn kill(run: &str) -> std::io::Result<usize> {
    let wanted = format!("{RUN}={run}");
    kill_those(|variable| variable == wanted.as_bytes(), |pid, group| pid == group)
}

/// Kills the process groups that have a program of a job, whatever became of the program that the group is named after; returns how
/// many.
///
/// Reads all of `/proc`; not for the runtime's threads.
pub(crate) fn kill_job(run: &str) -> std::io::Result<usize> {
    let wanted = format!("{RUN}={run}");
    kill_those(|variable| variable == wanted.as_bytes(), |_, _| true)
}

/// The same for all programs of jobs whose working directories are below this one.
pub(crate) fn kill_jobs_below(dir: &Path) -> std::io::Result<usize> {
    let mut wanted = format!("{PARAMS}=").into_bytes();
    wanted.extend(dir.as_os_str().as_bytes());
    wanted.push(b'/');
    kill_those(|variable| variable.starts_with(&wanted), |_, _| true)
}

fn kill_those(is_of: impl Fn(&[u8]) -> bool, is_killed: impl Fn(Pid, Pid) -> bool) -> std::io::Result<usize> {
    let mut killed = 0;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // A process that ended meanwhile, or of another user, is not a leftover.
        let Ok(environment) = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())) else { continue };
        let mut variables = environment.split(|byte| *byte == 0);
        let carries = variables.any(&is_of);
        let Some(group) = getpgid(Some(pid)).ok().filter(|group| *group != getpgrp()) else { continue };
        if carries && is_killed(pid, group) {
            match kill_process_group(group, Signal::KILL) {
                Ok(()) => killed += 1,
                Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(killed)
}
