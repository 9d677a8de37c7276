//! A part: one process on one host that can be started, stopped, paused and killed, with its log.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// A process on a host. Dropped, it is killed.
#[derive(Debug)]
pub struct Part {
    /// Name, such as `server-2`.
    pub name: String,
    /// The part's host, counted from 1. No other part shares it.
    pub host: usize,
    /// Path of its log.
    pub log: PathBuf,
    /// The command that starts it, without the prefix that runs it on its host.
    pub(crate) argv: Vec<String>,
    /// Additional environment variables, `NAME=VALUE`.
    pub(crate) environment: Vec<String>,
    pub(crate) child: Option<Child>,
}

impl Part {
    /// Whether it was started and has not exited.
    pub fn runs(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|ended| ended.is_none()))
    }

    /// Starts it with the prefix that runs a command on its host.
    pub(crate) fn start(&mut self, on: &[String]) -> Result<()> {
        if self.runs() {
            bail!("{} runs already", self.name);
        }
        let (program, words) = on.split_first().context("nothing to start it with")?;
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("cannot open {}", self.log.display()))?;
        let path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
        let mut command = Command::new(program);
        command.args(words).args(["env", "-i", &path]).args(&self.environment).args(&self.argv);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Its own process group: Ctrl-C in the terminal must not reach it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.child = Some(command.spawn().with_context(|| format!("cannot start {}", self.name))?);
        Ok(())
    }

    /// Kills it with SIGKILL.
    ///
    /// # Errors
    /// If it is not running.
    pub fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.ended()
    }

    /// Stops it with SIGTERM and waits for its exit.
    ///
    /// # Errors
    /// If it is not running, or does not exit in time.
    pub fn stop(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        self.ended()
    }

    /// Pauses it with SIGSTOP: its connections stay open and silent.
    ///
    /// # Errors
    /// If it is not running.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Resumes it with SIGCONT.
    ///
    /// # Errors
    /// If it is not running.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Waits until it has been killed by SIGKILL, whoever sent it.
    ///
    /// # Errors
    /// If it was not started, does not die in time, or exited otherwise.
    pub fn killed(&mut self) -> Result<()> {
        let name = &self.name;
        let child = self.child.as_mut().with_context(|| format!("{name} was not started"))?;
        let mut ended = None;
        wait::until(&format!("{name} dies"), || {
            ended = child.try_wait().with_context(|| format!("cannot wait for {name}"))?;
            Ok(ended.is_some())
        })?;
        let signal = ended.and_then(|ended| std::os::unix::process::ExitStatusExt::signal(&ended));
        if signal != Some(Signal::KILL.as_raw()) {
            bail!("{name} was not killed, it ended by itself: {ended:?}");
        }
        self.child = None;
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        if !self.runs() {
            bail!("{} does not run", self.name);
        }
        let pid =
            self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok()).and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("{} has no number", self.name))?;
        kill_process(pid, signal).with_context(|| format!("cannot signal {}", self.name))
    }

    fn ended(&mut self) -> Result<()> {
        let name = self.name.clone();
        wait::until(&format!("{name} ends"), || Ok(!self.runs()))?;
        self.child = None;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
