//! Leftovers: processes of a run whose agent was killed. They are found by the run's name in their environment.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use bellwether_rt::observed::TimeLimit;
use bellwether_rt::tasks::Tasks;
use rustix::process::{Pid, Signal, kill_process_group};

use super::detached::is_marked;
use super::guarded::KILLED;
use super::process_stat::{group_of, seen};
use super::{GUARD, PARAMS, RUN};
use crate::guard::message::GRACE;

/// Interval between two looks at guards that are to end: each reads all of `/proc`.
const LOOK: Duration = Duration::from_millis(50);

/// Kills the process groups of all programs of `run`; returns how many. What a command moved to another group stays.
///
/// Reads all of `/proc`; not for the runtime's threads.
pub(crate) fn kill(run: &str) -> std::io::Result<usize> {
    let wanted = format!("{RUN}={run}");
    kill_those(|variable| variable == wanted.as_bytes(), |pid, group| pid == group)
}

/// Kills the process groups that have a program of a job, whatever became of the program that the group is named after, except what
/// the job detached; returns how many.
///
/// Reads all of `/proc`; not for the runtime's threads.
pub(crate) fn kill_job(run: &str) -> std::io::Result<usize> {
    let wanted = format!("{RUN}={run}");
    let is_of = |variable: &[u8]| variable == wanted.as_bytes();
    kill_those(is_of, |pid, _| !is_marked(pid.as_raw_nonzero().get()))
}

/// The same for all programs of jobs whose working directories are below this one.
pub(crate) fn kill_jobs_below(dir: &Path) -> std::io::Result<usize> {
    let mut wanted = format!("{PARAMS}=").into_bytes();
    wanted.extend(dir.as_os_str().as_bytes());
    wanted.push(b'/');
    kill_those(|variable| variable.starts_with(&wanted), |_, _| true)
}

/// Waits until no guard of a job in this directory, or below it, is left: what it ends has ended then. The error fits after "cannot ".
pub(crate) async fn guards_end(dir: &Path, tasks: &Tasks) -> Result<(), String> {
    let mut limit = TimeLimit::new(GRACE + KILLED);
    loop {
        let (within, look) = (dir.to_owned(), tasks.clone());
        let look = async {
            let found = look.spawn_blocking(move || guards(&within)).await;
            let found = found.map_err(std::io::Error::other).flatten();
            let found = found.map_err(|error| format!("look for guards of jobs in /proc: {error}"))?;
            if !found.is_empty() {
                tokio::time::sleep(LOOK).await;
            }
            Ok::<_, String>(found)
        };
        let found = limit.count_during(look).await?;
        match found.first() {
            None => return Ok(()),
            Some(pid) if limit.left().is_zero() => {
                return Err(format!(
                    "end what a former agent's job started: its guard, process {pid}, goes on"
                ));
            }
            Some(_) => {}
        }
    }
}

fn guards(dir: &Path) -> std::io::Result<Vec<i32>> {
    let is_of = |variable: &[u8]| {
        let work = variable.strip_prefix(GUARD.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        work.is_some_and(|work| Path::new(OsStr::from_bytes(work)).starts_with(dir))
    };
    Ok(carrying(is_of)?.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect())
}

/// The processes that have such a variable in their environment.
fn carrying(is_of: impl Fn(&[u8]) -> bool) -> std::io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        let environment = seen(fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())))?;
        let Some(environment) = environment else { continue };
        if environment.split(|byte| *byte == 0).any(&is_of) {
            found.push(pid);
        }
    }
    Ok(found)
}

fn kill_those(is_of: impl Fn(&[u8]) -> bool, is_killed: impl Fn(Pid, Pid) -> bool) -> std::io::Result<usize> {
    let mut killed = 0;
    for pid in carrying(is_of)? {
        let Some(group) = group_of(pid)? else { continue };
        if is_killed(pid, group) {
            match kill_process_group(group, Signal::KILL) {
                Ok(()) => killed += 1,
                Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(killed)
}
