//! Asking a command: what it writes to its standard output is the answer. It runs under a guard, so that all it started is killed when it
//! ends, when its time is over, and when its agent ends.

use std::io;
use std::time::Duration;

use bellwether_rt::observed;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;

use super::CommandFacts;
use super::command_exit::CommandExit;
use super::exec::{LAST_WORDS, drain};
use super::guarded::{KILLED, spawn};
use super::output::OutputTail;
use crate::config::recipe::Command;
use crate::guard::message::{GuardAnswer, GuardRequest, GuardedScript};

/// What a command writes.
struct Outputs {
    answer: pipe::Receiver,
    /// `None` once it is more than `most` bytes.
    written: Option<Vec<u8>>,
    most: usize,
    errors: pipe::Receiver,
    tail: OutputTail,
}

/// What a command wrote to its standard output. When this is dropped, or the deadline has passed, all that it started is killed.
///
/// # Errors
/// Why there is no answer, in one line: how it ended, with the last line that it wrote to its standard error, or that it wrote more than
/// `most` bytes.
pub(crate) async fn answer(
    command: &Command,
    facts: &CommandFacts,
    deadline: Duration,
    most: usize,
) -> Result<Vec<u8>, String> {
    let (guard, socket, mut outputs) =
        start(most).map_err(|error| format!("cannot start a guard: {error}"))?;
    let ended = tokio::select! {
        ended = observed::timeout(deadline, run(socket, command, facts)) => ended,
        never = outputs.read() => match never {},
    };
    // The socket is closed: the guard kills what is left, and ends.
    let guard = end(guard, &mut outputs).await;
    let exit = match ended {
        Err(_) => CommandExit::TimedOut(deadline),
        Ok(Some(GuardAnswer::Exited(code))) => CommandExit::of_code(code),
        Ok(Some(GuardAnswer::Killed(signal))) => CommandExit::Signal(signal),
        Ok(Some(GuardAnswer::NotStarted(reason))) => CommandExit::NotStarted(reason),
        Ok(Some(GuardAnswer::LeaseOver) | None) => return Err(format!("its guard ended before it: {guard}")),
    };
    let last = outputs.tail.text().lines().next_back().unwrap_or_default().to_owned();
    match (exit, outputs.written) {
        (CommandExit::Success, Some(written)) => Ok(written),
        (CommandExit::Success, None) => Err(format!("its answer has more than {most} bytes")),
        (exit, _) if last.is_empty() => Err(exit.to_string()),
        (exit, _) => Err(format!("{exit}: {last}")),
    }
}

/// Starts the guard.
fn start(most: usize) -> io::Result<(Child, UnixStream, Outputs)> {
    let (answer, output) = pipe_with(PipeFlags::CLOEXEC)?;
    let (errors, error_output) = pipe_with(PipeFlags::CLOEXEC)?;
    let (guard, socket) = spawn([], output, error_output)?;
    let outputs = Outputs {
        answer: pipe::Receiver::from_owned_fd(answer)?,
        written: Some(Vec::new()),
        most,
        errors: pipe::Receiver::from_owned_fd(errors)?,
        tail: OutputTail::default(),
    };
    Ok((guard, socket, outputs))
}

/// Has the guard run the command; `None` if the guard ended before that.
async fn run(mut socket: UnixStream, command: &Command, facts: &CommandFacts) -> Option<GuardAnswer> {
    let script = GuardedScript {
        argv: command.argv.clone(),
        workdir: command.workdir.clone(),
        env: facts.environment(command),
        stdin: command.stdin.clone(),
    };
    // It only asks, again and again: nothing that it started is worth waiting for.
    for request in [GuardRequest::GraceMs(0), GuardRequest::Run(script)] {
        let mut line = serde_json::to_vec(&request).ok()?;
        line.push(b'\n');
        socket.write_all(&line).await.ok()?;
    }
    let line = BufReader::new(&mut socket).lines().next_line().await.ok().flatten()?;
    serde_json::from_str(&line).ok()
}

/// Waits until nothing of the command is left; how its guard ended.
async fn end(mut guard: Child, outputs: &mut Outputs) -> String {
    let ended = tokio::select! {
        ended = observed::timeout(KILLED, guard.wait()) => ended,
        never = outputs.read() => match never {},
    };
    let how = match ended {
        Ok(Ok(status)) => CommandExit::of(status).to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            tracing::warn!("what a probe started goes on after SIGKILL; its guard is ended without it");
            let killed = guard.kill().await;
            killed.map_or_else(|error| error.to_string(), |()| "it was killed".to_owned())
        }
    };
    if observed::timeout(LAST_WORDS, outputs.read_rest()).await.is_err() {
        tracing::debug!("a probe detached programs that hold its output");
    }
    how
}

impl Outputs {
    /// Reads for ever. May be dropped anywhere: what was read is kept.
    async fn read(&mut self) -> std::convert::Infallible {
        self.read_rest().await;
        std::future::pending().await
    }

    /// Reads until the last writer is gone. May be dropped anywhere: what was read is kept.
    async fn read_rest(&mut self) {
        let Self { answer, written, most, errors, tail } = self;
        tokio::join!(collect(answer, written, *most), drain(errors, tail, None));
    }
}

/// Reads until the last writer is gone. What is more than `most` is read and dropped, so that the command ends.
async fn collect(reader: &mut pipe::Receiver, written: &mut Option<Vec<u8>>, most: usize) {
    let mut buffer = vec![0_u8; 8_192];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => return,
            Ok(count) => {
                if let Some(all) = written {
                    all.extend_from_slice(buffer.get(..count).unwrap_or_default());
                }
                if written.as_ref().is_some_and(|all| all.len() > most) {
                    *written = None;
                }
            }
            Err(error) => return tracing::warn!(%error, "cannot read the answer of a command"),
        }
    }
}
