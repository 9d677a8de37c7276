//! The guard at work: starts scripts, tells how they ended, and ends everything when it is time.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use rustix::process::{Pid, Signal, WaitStatus, getpid, set_child_subreaper};

use super::descendants::{Spared, descendants, signal};
use super::events::{Event, Events, left};
use super::message::{GRACE, GuardAnswer, GuardLease, GuardRequest, GuardedScript};
use super::reap::{Reaped, reap};

/// Longest time between two looks at the clock: a machine that was suspended notices within this that a lease is over.
const LOOK: Duration = Duration::from_millis(200);

/// Time between two attempts to kill what is left: what began during one is found by the next.
const BETWEEN_KILLS: Duration = Duration::from_millis(20);

/// A guard.
pub(super) struct Keeper {
    socket: UnixStream,
    events: Events<GuardRequest>,
    clock: Clock,
    /// The script that runs.
    script: Option<Pid>,
    /// Until when anything may run; `None` for ever, on a machine.
    lease: Option<GuardLease>,
    /// Time for what is left to end by itself.
    grace: Duration,
}

impl Keeper {
    /// Becomes the parent of every descendant that loses its own, and begins to listen.
    pub(super) fn start(socket: UnixStream) -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        let events = Events::start(socket.try_clone()?)?;
        Ok(Self { socket, events, clock: Clock::system(), script: None, lease: None, grace: GRACE })
    }

    /// Does what the agent asks for until it ends, or the lease is over; then ends everything.
    pub(super) fn run(mut self) {
        loop {
            let wait = self.lease.map(|lease| left(&self.clock, lease.end_ms).min(LOOK));
            match self.events.next(wait) {
                Event::Requested(GuardRequest::Lease(lease)) => self.lease = Some(lease),
                Event::Requested(GuardRequest::GraceMs(ms)) => self.grace = Duration::from_millis(ms),
                // A lease that ended while this process could not run is found below.
                Event::Requested(GuardRequest::Run(script)) if !self.is_over() => self.start_script(script),
                Event::Requested(GuardRequest::Run(_)) | Event::TimeOver => {}
                Event::ChildEnded => drop(self.reap()),
                Event::Closed => break,
            }
            if self.is_over() {
                self.tell(&GuardAnswer::LeaseOver);
                break;
            }
        }
        self.end_all();
    }

    fn is_over(&self) -> bool {
        self.lease.is_some_and(|lease| left(&self.clock, lease.end_ms).is_zero())
    }

    fn start_script(&mut self, script: GuardedScript) {
        let GuardedScript { argv, workdir, env, stdin } = script;
        let Some((program, arguments)) = argv.split_first() else {
            return self.tell(&GuardAnswer::NotStarted("no program".to_owned()));
        };
        let stdin = match stdin.map(|path| File::open(&path).map_err(|error| (path, error))).transpose() {
            Ok(file) => file.map_or_else(Stdio::null, Stdio::from),
            Err((path, error)) => {
                return self.tell(&GuardAnswer::NotStarted(format!("open {}: {error}", path.display())));
            }
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(workdir).env_clear().envs(env).stdin(stdin);
        // In a group of its own: a script may signal all of its group.
        match command.process_group(0).spawn() {
            Ok(child) => {
                self.script = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                self.events.watch_children();
            }
            Err(error) => self.tell(&GuardAnswer::NotStarted(format!("{program}: {error}"))),
        }
    }

    /// Reaps children that have ended, and tells how the script did. Returns whether any are left.
    fn reap(&mut self) -> bool {
        let Reaped { are_left, ended } = reap(self.script);
        if let Some(status) = ended {
            self.script = None;
            self.tell(&answer(status));
        }
        self.events.watch_children();
        are_left
    }

    /// Ends everything: with SIGTERM, and with SIGKILL what goes on. Returns when nothing is left.
    ///
    /// What a job on a machine detached is spared. A logical node has another host next, which would not know of it.
    fn end_all(&mut self) {
        let now = self.clock.since_boot().unwrap_or(Span::ZERO).as_millis();
        let grace = now.saturating_add(u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX));
        let kill_at = self.lease.map_or(grace, |lease| lease.kill_ms.min(grace));
        let spared = if self.lease.is_some() { Spared::None } else { Spared::Detached };
        let mut is_told = false;
        while self.reap() {
            // Without /proc nothing is found; what is left keeps this process, and its agent sees that.
            let found = descendants(spared);
            if found.as_ref().is_ok_and(|found| found.is_empty()) {
                // What ended meanwhile would be left to whoever is the first process here, which may be the agent.
                self.reap();
                return;
            }
            let found = found.unwrap_or_default();
            let time = left(&self.clock, kill_at);
            let wait = if time.is_zero() {
                signal(&found, Signal::KILL);
                BETWEEN_KILLS
            } else {
                if !is_told {
                    signal(&found, Signal::TERM);
                    is_told = true;
                }
                time.min(LOOK)
            };
            self.events.next(Some(wait));
        }
    }

    fn tell(&self, answer: &GuardAnswer) {
        let Ok(mut line) = serde_json::to_string(answer) else { return };
        line.push('\n');
        // An agent that has ended reads nothing any more.
        drop((&self.socket).write_all(line.as_bytes()));
    }
}

fn answer(status: WaitStatus) -> GuardAnswer {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => GuardAnswer::Exited(code),
        (None, signal) => GuardAnswer::Killed(signal.unwrap_or_default()),
    }
}
