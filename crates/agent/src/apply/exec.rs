//! Running one command to its end: no shell, a cleared environment, its own process group, a deadline, bounded output.

use std::os::fd::OwnedFd;
use std::time::Duration;

use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::observed;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::CommandFacts;
pub(crate) use super::command_exit::{CommandExit, CommandResult};
use super::escaped::CommandMark;
use super::log::EntityLog;
use super::output::OutputTail;
use super::pidfd;
use crate::config::recipe::Command;
use crate::limits::{CgroupScope, LimitedProgram};

/// How long output is read after the command ended: it comes from programs that the command left running.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(100);

/// Time for a command to end by itself after SIGTERM, when what it does is not wanted any more.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// When a command is ended from outside.
#[derive(Debug, Clone)]
pub(crate) struct CommandLimit {
    /// Its process group is killed after this observed time.
    pub(crate) deadline: Duration,
    /// Its process group is terminated, and killed [`STOP_GRACE`] later, once this is cancelled.
    pub(crate) stop: CancellationToken,
}

impl From<Duration> for CommandLimit {
    /// A deadline alone.
    fn from(deadline: Duration) -> Self {
        Self { deadline, stop: CancellationToken::new() }
    }
}

/// Kills a command's process group, and what left it, when dropped before the command ended.
struct ProcessGroup {
    pid: Option<Pid>,
    mark: CommandMark,
}

impl ProcessGroup {
    fn kill(&mut self) {
        if let Some(pid) = self.pid.take() {
            signal(pid, Signal::KILL);
            self.mark.sweep(pid);
        }
    }
}

fn signal(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => {
            tracing::warn!(group = group.as_raw_nonzero(), %error, "cannot end the process group of a command")
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What happens to programs that a command leaves running in its process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftRunning {
    /// They go on: a part may start what it is for.
    Stays,
    /// They are killed: a check only asks, again and again.
    IsKilled,
}

/// Runs `command` to its end; kills its process group, and what left that, after the limit's deadline, or when this is dropped.
pub(crate) async fn run(
    command: &Command,
    facts: &CommandFacts,
    limit: impl Into<CommandLimit>,
    log: Option<&mut EntityLog>,
) -> CommandResult {
    run_with(command, facts, limit.into(), log, LeftRunning::Stays).await
}

/// The same for a check, of which nothing is left at its end.
pub(crate) async fn probe(command: &Command, facts: &CommandFacts, deadline: Duration) -> CommandResult {
    run_with(command, facts, deadline.into(), None, LeftRunning::IsKilled).await
}

async fn run_with(
    command: &Command,
    facts: &CommandFacts,
    limit: CommandLimit,
    mut log: Option<&mut EntityLog>,
    left_running: LeftRunning,
) -> CommandResult {
    let CommandLimit { deadline, stop } = limit;
    let mut tail = OutputTail::default();
    if stop.is_cancelled() {
        return not_started(command, &std::io::Error::other("it is not wanted any more"));
    }
    if let Some(log) = &mut log {
        log.mark(&format!("{} {:?}", facts.run, command.argv));
    }
    let started = CommandMark::new().and_then(|mark| Ok((start(command, facts, &mark)?, mark)));
    // The cgroup of the run is kept until this returns.
    let ((mut child, mut output, _scope), mark) = match started {
        Ok(started) => started,
        Err(error) => return not_started(command, &error),
    };
    fail::pass(FailPoint::ProgramStarted);
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut group = ProcessGroup { pid, mark };
    let ends = async {
        // Both continue until the child has ended; a pipe that closes early only ends the reading.
        if left_running == LeftRunning::IsKilled {
            tokio::select! {
                () = kill_at_end(pid) => {}
                () = drain(&mut output, &mut tail, None) => kill_at_end(pid).await,
            }
        }
        tokio::select! {
            status = child.wait() => return status,
            () = drain(&mut output, &mut tail, log.as_deref_mut()) => {}
        }
        child.wait().await
    };
    // Both arms only wait: the child goes on until it is signalled below.
    let ended = tokio::select! {
        ended = observed::timeout(deadline, ends) => Some(ended),
        () = stop.cancelled() => None,
    };
    let exit = match ended {
        None => stopped(&mut child, &mut group, &mut output, &mut tail).await,
        Some(Ok(Ok(status))) => {
            // It has ended and was reaped: another process may get its number soon.
            if let Some(pid) = group.pid.take()
                && left_running == LeftRunning::IsKilled
            {
                group.mark.sweep(pid);
            }
            CommandExit::of(status)
        }
        Some(Ok(Err(error))) => return not_started(command, &error),
        Some(Err(_)) => {
            group.kill();
            if let Err(error) = child.wait().await {
                tracing::warn!(%error, "cannot wait for a killed command");
            }
            CommandExit::TimedOut(deadline)
        }
    };
    last_words(drain(&mut output, &mut tail, log.as_deref_mut()), facts).await;
    if let Some(log) = &mut log {
        log.mark(&exit.to_string());
    }
    fail::pass(FailPoint::ProgramEnded);
    CommandResult { exit, tail: tail.text() }
}

/// Reads what is left of the output of a command that has ended. Nothing depends on late output being complete.
async fn last_words(rest: impl Future<Output = ()>, facts: &CommandFacts) {
    if observed::timeout(LAST_WORDS, rest).await.is_err() {
        tracing::debug!(run = facts.run, "a command left programs running that hold its output");
    }
}

fn not_started(command: &Command, error: &std::io::Error) -> CommandResult {
    let reason = match command.argv.first() {
        Some(program) => format!("{program}: {error}"),
        None => error.to_string(),
    };
    CommandResult { exit: CommandExit::NotStarted(reason), tail: String::new() }
}

/// Ends a command that is not wanted any more: with SIGTERM, and with SIGKILL if it goes on. Its output is read meanwhile,
/// so that nothing it writes keeps it from ending.
async fn stopped(
    child: &mut tokio::process::Child,
    group: &mut ProcessGroup,
    output: &mut pipe::Receiver,
    tail: &mut OutputTail,
) -> CommandExit {
    let pid = group.pid;
    if let Some(pid) = pid {
        signal(pid, Signal::TERM);
    }
    let ends = async {
        // Programs that it left running are of no use without it. Without a handle they stay, and its end is seen all the same.
        tokio::select! {
            () = kill_at_end(pid) => {}
            () = drain(output, tail, None) => kill_at_end(pid).await,
        }
        child.wait().await
    };
    let status = match observed::timeout(STOP_GRACE, ends).await {
        Ok(status) => status,
        Err(_) => {
            group.kill();
            child.wait().await
        }
    };
    if let Some(pid) = group.pid.take() {
        group.mark.sweep(pid);
    }
    match status {
        Ok(status) => CommandExit::of(status),
        Err(error) => CommandExit::NotStarted(format!("cannot wait for its end: {error}")),
    }
}

/// Waits until the process ends, and kills its group before it is reaped, as long as the group's number is its own.
async fn kill_at_end(pid: Option<Pid>) {
    let Some(pid) = pid else { return };
    pidfd::ended(pid, None).await;
    signal(pid, Signal::KILL);
}

fn start(
    command: &Command,
    facts: &CommandFacts,
    mark: &CommandMark,
) -> std::io::Result<(tokio::process::Child, pipe::Receiver, Option<CgroupScope>)> {
    let (program, arguments) =
        command.argv.split_first().ok_or_else(|| std::io::Error::other("no program"))?;
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let error_writer: OwnedFd = writer.try_clone()?;
    let stdin = command.standard_input()?;
    let LimitedProgram { command: mut command_line, scope } = facts.program(program)?;
    let child = command_line
        .args(arguments)
        .current_dir(&command.workdir)
        .env_clear()
        .envs(facts.environment(command))
        .envs([mark.variable()])
        .stdin(stdin)
        .stdout(writer)
        .stderr(error_writer)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    Ok((child, pipe::Receiver::from_owned_fd(reader)?, scope))
}

/// Reads the output into the tail and the log until its last writer is gone. Cancel safe: what was read is in both.
pub(super) async fn drain(output: &mut pipe::Receiver, tail: &mut OutputTail, log: Option<&mut EntityLog>) {
    let mut log = log;
    let mut buffer = vec![0_u8; 8_192];
    loop {
        match output.read(&mut buffer).await {
            Ok(0) => return,
            Ok(count) => {
                let read = buffer.get(..count).unwrap_or_default();
                tail.add(read);
                if let Some(log) = &mut log {
                    log.write(read);
                }
            }
            Err(error) => return tracing::warn!(%error, "cannot read the output of a command"),
        }
    }
}

#[cfg(test)]
mod tests;
