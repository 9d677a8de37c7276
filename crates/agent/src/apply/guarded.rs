//! The agent's side of the guard of a job: has it run scripts, one after the other, tells it of the lease, and has it end what they
//! left running.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::observed;
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::changed_or_never;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::{Child, Command as Program};
use tokio::sync::mpsc;

use super::command_exit::{CommandExit, CommandResult};
use super::exec::drain;
use super::log::EntityLog;
use super::output::OutputTail;
use super::{CommandFacts, GUARD};
use crate::config::recipe::Command;
use crate::guard::COMMAND;
use crate::guard::message::{GRACE, GuardAnswer, GuardRequest, GuardedScript};
use crate::lease::Lease;

/// This same program, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// Time for a guard to kill what is left after its grace; longer takes a process that hangs in a system call.
pub(crate) const KILLED: Duration = Duration::from_secs(5);

/// Requests that wait for a guard: one script at a time.
const WAITING: usize = 1;

/// The guard of a job. Dropping this has it end the job, and does not wait for that.
#[derive(Debug)]
pub(crate) struct JobGuard {
    child: Child,
    requests: mpsc::Sender<GuardRequest>,
    answers: Lines<BufReader<OwnedReadHalf>>,
    /// What all scripts write, and what they leave running.
    output: pipe::Receiver,
}

/// How a script under a guard ended.
#[derive(Debug)]
pub(crate) enum ScriptEnd {
    /// As commands do.
    Ended(CommandResult),
    /// The lease of the logical node is over, and the guard ends it.
    LeaseOver,
    /// Its guard ended before it; how, as a sentence.
    WithoutGuard(String),
}

impl JobGuard {
    /// Starts the guard of the job with this working directory. On a logical node, it is told of the lease.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(dir: &Path, lease: Option<Lease>, tasks: &Tasks) -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let errors = writer.try_clone()?;
        let (child, socket) = spawn([(GUARD, dir)], writer, errors)?;
        let (answers, to) = socket.into_split();
        let (requests, waiting) = mpsc::channel(WAITING);
        tasks.spawn("job guard", pass_on(to, waiting, lease));
        let output = pipe::Receiver::from_owned_fd(reader)?;
        Ok(Self { child, requests, answers: BufReader::new(answers).lines(), output })
    }

    /// Runs a script. After the deadline, or when this is dropped, it goes on until [`Self::end`].
    pub(crate) async fn run(
        &mut self,
        command: &Command,
        facts: &CommandFacts,
        deadline: Duration,
        log: &mut EntityLog,
    ) -> ScriptEnd {
        log.mark(&format!("{} {:?}", facts.run, command.argv));
        let script = GuardedScript {
            argv: command.argv.clone(),
            workdir: command.workdir.clone(),
            env: facts.environment(command),
            stdin: command.stdin.clone(),
        };
        let mut tail = OutputTail::default();
        let ended = async {
            // If nobody listens, there is no answer either.
            drop(self.requests.send(GuardRequest::Run(script)).await);
            fail::pass(FailPoint::ProgramStarted);
            // Both continue until the script has ended; an output that closes early only ends the reading.
            tokio::select! {
                answer = self.answers.next_line() => return answer,
                () = drain(&mut self.output, &mut tail, Some(&mut *log)) => {}
            }
            self.answers.next_line().await
        };
        let ended = observed::timeout(deadline, ended).await;
        fail::pass(FailPoint::ProgramEnded);
        let answer = match ended {
            Ok(answer) => answer.ok().flatten().and_then(|line| serde_json::from_str(&line).ok()),
            Err(_) => return self.exited(CommandExit::TimedOut(deadline), (tail, log)),
        };
        match answer {
            Some(GuardAnswer::Exited(code)) => self.exited(CommandExit::of_code(code), (tail, log)),
            Some(GuardAnswer::Killed(signal)) => self.exited(CommandExit::Signal(signal), (tail, log)),
            Some(GuardAnswer::NotStarted(reason)) => {
                self.exited(CommandExit::NotStarted(reason), (tail, log))
            }
            Some(GuardAnswer::LeaseOver) => ScriptEnd::LeaseOver,
            None => {
                let how = match observed::timeout(KILLED, self.child.wait()).await {
                    Ok(Ok(status)) => CommandExit::of(status).to_string(),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "it closed its socket".to_owned(),
                };
                log.mark("its guard has ended");
                ScriptEnd::WithoutGuard(format!("the guard of the job ended before its script: {how}"))
            }
        }
    }

    fn exited(&self, exit: CommandExit, (mut tail, log): (OutputTail, &mut EntityLog)) -> ScriptEnd {
        self.read_rest(&mut tail, log);
        log.mark(&exit.to_string());
        ScriptEnd::Ended(CommandResult { exit, tail: tail.text() })
    }

    /// Reads what is in the pipe: all that a script wrote that has ended. Programs that it left running may write on.
    fn read_rest(&self, tail: &mut OutputTail, log: &mut EntityLog) {
        let mut buffer = [0_u8; 8_192];
        // A pipe holds 64 KiB.
        for _ in 0..16 {
            let Ok(count @ 1..) = rustix::io::read(&self.output, &mut buffer) else { return };
            let read = buffer.get(..count).unwrap_or_default();
            tail.add(read);
            log.write(read);
        }
    }

    /// Has the guard end what is left of the job, and waits for that.
    pub(crate) async fn end(self, mut log: EntityLog) {
        let Self { mut child, requests, mut output, .. } = self;
        drop(requests);
        let mut tail = OutputTail::default();
        let ends = async {
            // Its output is read meanwhile, so that nothing it writes keeps it from ending.
            tokio::select! {
                status = child.wait() => return status,
                () = drain(&mut output, &mut tail, Some(&mut log)) => {}
            }
            child.wait().await
        };
        let ended: Option<io::Result<ExitStatus>> = observed::timeout(GRACE + KILLED, ends).await.ok();
        match ended {
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::warn!(%error, "cannot wait for the guard of a job"),
            None => {
                tracing::warn!("what a job started goes on after SIGKILL; its guard is ended without it");
                if let Err(error) = child.kill().await {
                    tracing::warn!(%error, "cannot end the guard of a job");
                }
            }
        }
    }
}

/// Starts a guard, what it starts writes to these; what it is asked for and answers are lines on the socket.
pub(super) fn spawn<'a>(
    variables: impl IntoIterator<Item = (&'static str, &'a Path)>,
    output: OwnedFd,
    errors: OwnedFd,
) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = Socket::pair()?;
    let child = Program::new(PROGRAM)
        .arg0("bellwether")
        .arg(COMMAND)
        .env_clear()
        .envs(variables)
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()?;
    ours.set_nonblocking(true)?;
    Ok((child, UnixStream::from_std(ours)?))
}

/// Passes on requests and the ends of the lease; the guard ends the job once this has ended.
async fn pass_on(mut to: OwnedWriteHalf, mut requests: mpsc::Receiver<GuardRequest>, lease: Option<Lease>) {
    let mut ends = lease.as_ref().map(Lease::ends);
    // Before any script.
    let mut next = lease.as_ref().and_then(Lease::end).map(GuardRequest::Lease);
    loop {
        if let Some(request) = next.take() {
            let Ok(mut line) = serde_json::to_vec(&request) else { return };
            line.push(b'\n');
            // A guard that has ended is noticed by whoever waits for its answer.
            if to.write_all(&line).await.is_err() {
                return;
            }
        }
        let renewed = async {
            match &mut ends {
                Some(ends) => changed_or_never(ends).await,
                None => std::future::pending().await,
            }
        };
        // Both arms only wait.
        next = tokio::select! {
            biased;
            () = renewed => lease.as_ref().and_then(Lease::end).map(GuardRequest::Lease),
            request = requests.recv() => match request {
                None => return,
                request => request,
            },
        };
    }
}
