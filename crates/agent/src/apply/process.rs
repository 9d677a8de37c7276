//! The supervised process: started in a process group of its own, watched, stopped, and adopted by the next agent.
//!
//! It outlives the agent: it writes its log directly, and its mark (number, start time, boot) is in the ledger.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::records::evidence::Evidence;
use bellwether_rt::observed;
use bellwether_rt::tasks::Tasks;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;

use super::CommandFacts;
use super::exec::CommandExit;
use super::former::ProcessOwner;
use super::process_stat::{ProcessStat, exists, stat};
use super::{log, pidfd};
use crate::config::recipe::Command;
use crate::limits::{CgroupScope, LimitedProgram};

/// Interval at which the size of a process's log is checked.
const LOG_PERIOD: Duration = Duration::from_secs(5);

/// Identifies a process among all that ever had its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessMark {
    /// Its process number, which is also its group's.
    pub(crate) pid: i32,
    /// Start time in clock ticks since boot.
    pub(crate) started_ticks: u64,
    /// The boot of the machine, from `/proc/sys/kernel/random/boot_id`.
    pub(crate) boot_id: String,
}

/// A watched process. Dropping this stops the watching, not the process.
#[derive(Debug)]
pub(crate) struct SupervisedProcess {
    mark: ProcessMark,
    pid: Pid,
    ended: watch::Receiver<Option<Evidence>>,
}

/// A process's group, its log, and the offset at which its own output begins, if that is known.
#[derive(Debug, Clone)]
struct ProcessOutput {
    group: Pid,
    path: PathBuf,
    from: Option<u64>,
    /// Whether what it leaves running in its group stays.
    leaves: bool,
}

impl SupervisedProcess {
    /// Starts `command` as a process of `owner`, its output appended to the log at `path`.
    pub(crate) fn start(
        command: &Command,
        facts: &CommandFacts,
        owner: &ProcessOwner,
        path: &Path,
        tasks: &Tasks,
    ) -> io::Result<Self> {
        Self::start_seen_by(command, facts, owner, (path, tasks, false), stat)
    }

    /// The same for a command that ends, and may leave running what it starts.
    pub(crate) fn start_leaving(
        command: &Command,
        facts: &CommandFacts,
        owner: &ProcessOwner,
        path: &Path,
        tasks: &Tasks,
    ) -> io::Result<Self> {
        Self::start_seen_by(command, facts, owner, (path, tasks, true), stat)
    }

    /// The same with another look at the process that was started.
    fn start_seen_by(
        command: &Command,
        facts: &CommandFacts,
        owner: &ProcessOwner,
        (path, tasks, leaves): (&Path, &Tasks, bool),
        look: impl FnOnce(i32) -> io::Result<ProcessStat>,
    ) -> io::Result<Self> {
        let (program, arguments) =
            command.argv.split_first().ok_or_else(|| io::Error::other("no program"))?;
        let fill = |text: &String| text.replace("{version}", &facts.version);
        let boot_id = boot_id()?;
        let output = log::append(path)?;
        let from = output.metadata()?.len();
        let errors = output.try_clone()?;
        let LimitedProgram { command: mut command_line, scope } = facts.program(&fill(program))?;
        let stdin = command.standard_input()?;
        let child = command_line
            .args(arguments.iter().map(fill))
            .current_dir(&command.workdir)
            .env_clear()
            .envs(facts.environment(command))
            .envs(owner.environment())
            .stdin(stdin)
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()?;
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        let number =
            number.ok_or_else(|| io::Error::other("it ended before its process number was known"))?;
        let pid = Pid::from_raw(number).ok_or_else(|| io::Error::other("it has no process number"))?;
        // It is not reaped yet, so even one that has ended still has its start time.
        let started_ticks = match look(number) {
            Ok(seen) => seen.started_ticks,
            Err(error) => {
                // Nobody would know it later: it must not stay beside the one that the next attempt starts.
                signal(pid, Signal::KILL);
                tasks.spawn("process", reap(child));
                return Err(error);
            }
        };
        let mark = ProcessMark { pid: number, started_ticks, boot_id };
        let (sender, ended) = watch::channel(None);
        let output = ProcessOutput { group: pid, path: path.to_owned(), from: Some(from), leaves };
        tasks.spawn("process", watch_own((child, scope), sender, output, tasks.clone()));
        Ok(Self { mark, pid, ended })
    }

    /// Adopts a process that an earlier agent started; `None` if it no longer exists.
    ///
    /// # Errors
    /// The process cannot be looked at, which says nothing of whether it runs.
    pub(crate) fn adopt(mark: &ProcessMark, path: &Path, tasks: &Tasks) -> io::Result<Option<Self>> {
        Self::adopt_seen_by(mark, path, tasks, stat)
    }

    /// The same with another look at the process.
    fn adopt_seen_by(
        mark: &ProcessMark,
        path: &Path,
        tasks: &Tasks,
        look: impl FnOnce(i32) -> io::Result<ProcessStat>,
    ) -> io::Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(mark.pid) else { return Ok(None) };
        if mark.before_boot()? {
            return Ok(None);
        }
        // The handle comes first, so that it is of the process whose state is read.
        let handle = match pidfd::open(pid) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match look(mark.pid) {
            Ok(seen) if seen.started_ticks == mark.started_ticks && !seen.has_ended() => {}
            Ok(_) => return Ok(None),
            Err(_) if !exists(pid) => return Ok(None),
            // Also where `/proc` shows only one's own processes.
            Err(error) => return Err(error),
        }
        let (sender, ended) = watch::channel(None);
        let output = ProcessOutput { group: pid, path: path.to_owned(), from: None, leaves: false };
        tasks.spawn("process", watch_adopted(handle, sender, output, tasks.clone()));
        Ok(Some(Self { mark: mark.clone(), pid, ended }))
    }

    /// The mark for the ledger.
    pub(crate) fn mark(&self) -> &ProcessMark {
        &self.mark
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<Evidence> {
        self.ended.borrow().clone()
    }

    /// Waits until it has ended. Cancel safe.
    pub(crate) async fn wait(&mut self) -> Evidence {
        let ended = self.ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        match ended {
            Some(evidence) => evidence,
            // The watcher failed, which ends the agent.
            None => std::future::pending().await,
        }
    }

    /// Sends SIGTERM to the group, and SIGKILL after `grace` of observed time; returns when the process has ended. Cancel safe.
    pub(crate) async fn stop(&mut self, grace: Duration) {
        if self.ended().is_some() {
            return;
        }
        signal(self.pid, Signal::TERM);
        if observed::timeout(grace, self.wait()).await.is_err() {
            tracing::warn!(
                pid = self.mark.pid,
                ?grace,
                "the process did not end on SIGTERM; sending SIGKILL"
            );
            signal(self.pid, Signal::KILL);
            self.wait().await;
        }
    }
}

fn signal(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(group = group.as_raw_nonzero(), %error, "cannot signal a process"),
    }
}

async fn watch_own(
    // The cgroup is kept until the process has ended.
    (mut child, _scope): (tokio::process::Child, Option<CgroupScope>),
    ended: watch::Sender<Option<Evidence>>,
    output: ProcessOutput,
    tasks: Tasks,
) {
    let exit = tokio::select! {
        // Both are cancel safe; a child that outlives its watcher is reaped by the runtime.
        exit = exit_of(&mut child, output.group) => exit,
        () = keep_log(&output, &tasks, &ended) => return,
    };
    // Its whole group is killed: what it left running would hold the ports of its successor.
    if !output.leaves {
        signal(output.group, Signal::KILL);
    }
    let evidence = Evidence {
        summary: format!("the process ended: {exit}"),
        exit_code: exit.code(),
        tail: log::tail(&output.path, output.from),
        failing_checks: Vec::new(),
    };
    ended.send_replace(Some(evidence));
}

/// Waits until a process of this agent has ended. Cancel safe.
async fn exit_of(child: &mut tokio::process::Child, pid: Pid) -> CommandExit {
    match child.wait().await {
        Ok(status) => CommandExit::of(status),
        Err(error) => {
            pidfd::ended(pid, None).await;
            CommandExit::NotStarted(format!("cannot wait for its end: {error}"))
        }
    }
}

/// Waits for the end of a process that is of no use.
async fn reap(mut child: tokio::process::Child) {
    if let Err(error) = child.wait().await {
        tracing::debug!(%error, "cannot wait for a process that was killed");
    }
}

async fn watch_adopted(
    handle: OwnedFd,
    ended: watch::Sender<Option<Evidence>>,
    output: ProcessOutput,
    tasks: Tasks,
) {
    tokio::select! {
        // Cancel safe.
        () = pidfd::ended(output.group, Some(handle)) => {}
        () = keep_log(&output, &tasks, &ended) => return,
    }
    signal(output.group, Signal::KILL);
    let evidence = Evidence {
        summary: "the process ended; an earlier agent had started it, so its exit code is unknown".to_owned(),
        exit_code: None,
        tail: log::tail(&output.path, output.from),
        failing_checks: Vec::new(),
    };
    ended.send_replace(Some(evidence));
}

/// Bounds the log until no one watches the process any more. The watching ends with that, not with the agent: a process
/// that is stopped with the agent is watched until it has ended.
async fn keep_log(output: &ProcessOutput, tasks: &Tasks, ended: &watch::Sender<Option<Evidence>>) {
    loop {
        let path = output.path.clone();
        tokio::select! {
            () = ended.closed() => return,
            () = tokio::time::sleep(LOG_PERIOD) => {}
        }
        let trimmed = tasks.spawn_blocking(move || log::trim(&path)).await;
        if let Ok(Err(error)) = trimmed {
            tracing::debug!(path = %output.path.display(), %error, "cannot trim a log");
        }
    }
}

impl ProcessMark {
    /// Whether the machine was rebooted since.
    pub(crate) fn before_boot(&self) -> io::Result<bool> {
        Ok(boot_id()? != self.boot_id)
    }
}

/// The boot of this machine: another one after each reboot.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests;
