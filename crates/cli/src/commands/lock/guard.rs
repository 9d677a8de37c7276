//! The guard of a command that runs under a lock: a small process that is the parent of the command, and ends it when its lease is
//! over, or `lock run` is gone. It decides nothing else, and talks to no server.
//!
//! `lock run` can be stopped or killed at any time without being asked; the guard goes on then, and knows until when the command may
//! run. It is this same program, by an argument that is looked for before anything else: it has neither a runtime nor a log.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use bellwether_agent::guard::{Event, Events, Reaped, Spared, descendants, left, reap, signal};
use bellwether_rt::clock::Clock;
use rustix::process::{Pid, Signal, WaitStatus, getpid, kill_process_group, set_child_subreaper};

use super::message::{GuardAnswer, GuardOrder, GuardedLease};
use super::timing::LAST_GRACE;

/// The argument by which the program becomes a guard.
pub(crate) const COMMAND: &str = "lock-guard";

/// The exit code of a program that is not used as it is meant (`EX_USAGE`).
const MISUSED: u8 = 64;

/// Longest time between two looks at the clock: a machine that was suspended notices within this that a lease is over.
const LOOK: Duration = Duration::from_millis(200);

/// Time between two attempts to kill what is left: what began during one is found by the next.
const BETWEEN_KILLS: Duration = Duration::from_millis(20);

/// Runs the guard until its command has ended. The words are the process id of `lock run`, the descriptors of its ends of the two
/// pipes, the times of the lease, and the command.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    match Guard::start(words) {
        Some(guard) => {
            guard.run();
            ExitCode::SUCCESS
        }
        // Nobody starts it but `lock run`, which sees that it has ended.
        None => ExitCode::from(MISUSED),
    }
}

struct Guard {
    answers: File,
    events: Events<GuardOrder>,
    clock: Clock,
    lease: GuardedLease,
    /// The command, while it has not ended; its process group has the same number.
    command: Option<Pid>,
    is_stopped: bool,
}

impl Guard {
    fn start(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut number = || words.next()?.to_str()?.parse::<u64>().ok();
        let (parent, orders, answers) = (number()?, number()?, number()?);
        let lease = GuardedLease { end_ms: number()?, kill_ms: number()? };
        // The pipes are opened anew, so that the command inherits none. It fails if `lock run` has ended.
        let of_parent = |descriptor: u64| format!("/proc/{parent}/fd/{descriptor}");
        let orders = File::open(of_parent(orders)).ok()?;
        let answers = OpenOptions::new().write(true).open(of_parent(answers)).ok()?;
        set_child_subreaper(Some(getpid())).ok()?;
        let events = Events::start(orders).ok()?;
        let clock = Clock::system();
        let mut guard = Self { answers, events, clock, lease, command: None, is_stopped: false };
        match start_command(words.collect()) {
            Ok(command) => {
                guard.command = Some(command);
                guard.events.watch_children();
                guard.tell(&GuardAnswer::Started(command.as_raw_nonzero().get()));
            }
            Err(error) => guard.tell(&GuardAnswer::NotStarted(error.to_string())),
        }
        Some(guard)
    }

    /// Waits for the end of the command; ends it when it may not go on.
    fn run(mut self) {
        while self.command.is_some() {
            let remaining = left(&self.clock, self.lease.end_ms);
            if remaining.is_zero() {
                self.tell(&GuardAnswer::LeaseOver);
                return self.end(self.lease.kill_ms);
            }
            match self.events.next(Some(remaining.min(LOOK))) {
                Event::Requested(GuardOrder::Lease(lease)) => self.lease = lease,
                Event::Requested(GuardOrder::Signal(number)) => {
                    if let Some(signal) = Signal::from_named_raw(number) {
                        self.signal(signal);
                    }
                }
                Event::Requested(GuardOrder::Stop) => {
                    self.is_stopped = true;
                    self.signal(Signal::STOP);
                }
                // A lease that ended meanwhile is found above, before the next order.
                Event::Requested(GuardOrder::Continue) if !left(&self.clock, self.lease.end_ms).is_zero() => {
                    self.is_stopped = false;
                    self.signal(Signal::CONT);
                }
                Event::Requested(GuardOrder::End) | Event::Closed => {
                    self.tell(&GuardAnswer::Ending);
                    return self.end(self.lease.kill_ms.min(self.in_a_moment()));
                }
                // What it leaves behind goes on.
                Event::ChildEnded => drop(self.reap()),
                Event::Requested(GuardOrder::Continue) | Event::TimeOver => {}
            }
        }
    }

    /// The time since boot after the last grace.
    fn in_a_moment(&self) -> u64 {
        let now = self.clock.since_boot().map_or(0, |now| now.as_millis());
        now.saturating_add(u64::try_from(LAST_GRACE.as_millis()).unwrap_or_default())
    }

    /// Sends a signal to the process group of the command.
    fn signal(&self, signal: Signal) {
        if let Some(command) = self.command {
            // Its number is its own until it is reaped; what is left of it is found below.
            kill_process_group(command, signal).unwrap_or_default();
        }
    }

    /// Reaps children that have ended, and tells how the command did. Returns whether any are left.
    fn reap(&mut self) -> bool {
        let Reaped { are_left, ended } = reap(self.command);
        if let Some(status) = ended {
            self.command = None;
            self.tell(&answer(status));
        }
        self.events.watch_children();
        are_left
    }

    /// Ends the command with everything that it started: with SIGTERM, and with SIGKILL what goes on at this time, or after the
    /// command has ended. A command that is stopped does not go on to be asked. Returns when nothing is left.
    fn end(&mut self, kill_ms: u64) {
        if !self.is_stopped {
            self.signal(Signal::TERM);
        }
        while self.reap() {
            let time = left(&self.clock, kill_ms);
            let wait = if self.is_stopped || self.command.is_none() || time.is_zero() {
                self.signal(Signal::KILL);
                // Without /proc it is the group of the command alone.
                let found = descendants(Spared::None).unwrap_or_default();
                signal(&found, Signal::KILL);
                BETWEEN_KILLS
            } else {
                time.min(LOOK)
            };
            self.events.next(Some(wait));
        }
    }

    fn tell(&self, answer: &GuardAnswer) {
        let Ok(mut line) = serde_json::to_string(answer) else { return };
        line.push('\n');
        // A `lock run` that has ended reads nothing any more.
        drop((&self.answers).write_all(line.as_bytes()));
    }
}

/// Starts the command in a group of its own, so that all of it can be stopped and signalled.
fn start_command(words: Vec<OsString>) -> io::Result<Pid> {
    // This same program, even if its file was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.args(["lock-child", "--parent", &std::process::id().to_string(), "--"]).args(words);
    let child = command.process_group(0).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("its process number is unknown"))
}

fn answer(status: WaitStatus) -> GuardAnswer {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => GuardAnswer::Exited(code),
        (None, signal) => GuardAnswer::Killed(signal.unwrap_or_default()),
    }
}
