//! Holds a lock: runs the command, renews the lease, forwards signals, and stops the command before anyone else can hold
//! the lock.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::Code;
use bellwether_api::v1::slot::RenewSlot;
use bellwether_rt::signal::ForwardedSignals;
use bellwether_rt::tasks::Tasks;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::Instant;

use super::request::{LockRequest, exit_by};
use super::take::{Taken, release};
use super::timing::{LAST_GRACE, Timing};
use crate::exit::{CommandResult, Exit, Failure, bare};
use crate::show::tell;

/// Longest time to return the lock; after that its lease ends by itself.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Newest events read for the end of a hold that ended a moment ago.
const EVENTS: u32 = 200;

/// The lease as it is now.
#[derive(Debug, Clone)]
struct Lease {
    /// When the newest granted lease was requested.
    asked: Instant,
    /// Why the lease has ended, if the server reported it.
    over: Option<String>,
}

/// Runs the command while the lock is held, and returns the lock.
pub(super) async fn hold(wanted: &LockRequest<'_>, taken: Taken, signals: ForwardedSignals) -> CommandResult {
    let child = start(wanted, taken.fence).await?;
    let tasks = Tasks::new();
    let lease = watch::Sender::new(Lease { asked: taken.asked, over: None });
    let renewal = Renewal {
        client: wanted.context.client.clone(),
        namespace: wanted.context.namespace.clone(),
        name: wanted.run.name.clone(),
        renew: RenewSlot {
            holder: wanted.holder.clone(),
            fence: taken.fence,
            lease: Some(wanted.run.lease.to_string()),
        },
        timing: Timing::of(wanted.run.lease.to_duration()),
        lease: lease.clone(),
    };
    let timing = renewal.timing;
    tasks.spawn("renewal", renewal.run(tasks.clone()));
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let lease = lease.subscribe();
    let mut watched = Watched { child, group, lease, timing, stopped: None, signals };
    let status = watched.until_it_ends().await;
    if tasks.stop(RELEASE_TIMEOUT).await.is_err() {
        tracing::debug!("a renewal was under way when the command ended");
    }
    let status = status.map_err(|error| Failure::ours(format!("wait for the command: {error}")))?;
    if let Some(stopped) = &watched.stopped {
        // Processes that the command left behind would go on without the lock.
        watched.kill(Signal::KILL);
        return Err(stopped.failure(wanted).await);
    }
    let releasing = tokio::time::timeout(RELEASE_TIMEOUT, release(wanted, taken.fence)).await;
    if !matches!(releasing, Ok(Ok(()))) {
        let (name, lease) = (&wanted.run.name, wanted.run.lease);
        tell(&format!("cannot release lock {name}; it expires within {}", lease.brief()));
    }
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Child(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => exit_by(signal.unwrap_or_default()),
    })
}

/// Starts the command in a group of its own, so that all of it can be stopped.
async fn start(wanted: &LockRequest<'_>, fence: u64) -> Result<Child, Failure> {
    // This same program, even if its file was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.args(["lock-child", "--parent", &std::process::id().to_string(), "--"]);
    command.args(&wanted.run.command).process_group(0);
    command.env("BELLWETHER_LOCK", &wanted.run.name).env("BELLWETHER_FENCE", fence.to_string());
    // A background process group that reads from the terminal is stopped by the kernel, while the lock is held.
    if std::io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    match command.spawn() {
        Ok(child) => Ok(child),
        Err(error) => {
            drop(release(wanted, fence).await);
            Err(Failure::ours(format!("run the command: {error}")))
        }
    }
}

/// The renewal of a lease.
struct Renewal {
    client: Client,
    namespace: String,
    name: String,
    renew: RenewSlot,
    timing: Timing,
    lease: watch::Sender<Lease>,
}

impl Renewal {
    /// Renews until the tasks are stopped, or the lease has ended.
    async fn run(self, level: Tasks) {
        let token = level.token();
        let mut at = self.lease.borrow().asked + self.timing.renew;
        loop {
            let asked = tokio::select! {
                () = token.cancelled() => return,
                asked = self.once(at) => asked,
            };
            at = match asked {
                Ok(asked) => asked + self.timing.renew,
                Err(CallError::Problem(problem)) if problem.code == Code::Refused => {
                    self.lease.send_modify(|lease| lease.over = Some(problem.detail));
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot renew the lock");
                    Instant::now() + self.timing.again
                }
            };
        }
    }

    /// Renews once at `at`; returns when that was requested. A late answer is not waited for beyond the next renewal.
    async fn once(&self, at: Instant) -> Result<Instant, CallError> {
        tokio::time::sleep_until(at).await;
        let asked = Instant::now();
        let renewing = self.client.renew_slot(&self.namespace, &self.name, &self.renew);
        let server = self.client.server().to_owned();
        let late = |_| {
            self.client.pass_over(&server);
            CallError::Timeout { server, after: self.timing.renew, may_be_made: false }
        };
        tokio::time::timeout(self.timing.renew, renewing).await.map_err(late)??;
        self.lease.send_modify(|lease| lease.asked = asked);
        Ok(asked)
    }
}

/// Why the command was stopped.
struct Stopped {
    /// Why the lease has ended; `None` if the server cannot be reached.
    over: Option<String>,
    /// When the command is killed, if it has not ended by itself.
    kill_at: Instant,
    killed: bool,
}

impl Stopped {
    async fn failure(&self, wanted: &LockRequest<'_>) -> Failure {
        let name = &wanted.run.name;
        let hint = format!("bellwether lock describe {name}");
        match &self.over {
            Some(reason) => {
                let end = end_of_hold(wanted).await.unwrap_or_else(|| format!("cannot {}", bare(reason)));
                let message = format!("the command was stopped: {end}");
                Failure::stated(Exit::Conflict, message).hint(hint)
            }
            None => {
                let what = format!(
                    "renew lock {name} in time: the command was stopped before anyone else could hold it"
                );
                Failure::new(Exit::Unavailable, what).hint(hint)
            }
        }
    }
}

/// How the newest hold of the lock ended, by the events; `None` if they cannot be read or contain nothing of it.
async fn end_of_hold(wanted: &LockRequest<'_>) -> Option<String> {
    let (context, name) = (wanted.context, &wanted.run.name);
    let events = context.client.events(&context.namespace, None, EVENTS, Duration::ZERO);
    let events = tokio::time::timeout(RELEASE_TIMEOUT, events).await.ok()?.ok()?.items;
    let subject = format!("slot/{name}");
    let mut ends = events.iter().rev().filter(|event| event.subject == subject);
    ends.find_map(|event| match event.kind.as_str() {
        "slot.forced" => {
            let taken = format!("taken from {}: ", wanted.holder);
            let reason = event.cause.strip_prefix(&taken)?;
            Some(format!("lock {name} was released by {}: {reason}", event.actor))
        }
        "slot.expired" if event.cause.starts_with(&format!("{} ", wanted.holder)) => {
            Some(format!("lock {name} was not renewed within its lease"))
        }
        _ => None,
    })
}

/// The running command.
struct Watched {
    child: Child,
    /// Its process group.
    group: Option<Pid>,
    lease: watch::Receiver<Lease>,
    timing: Timing,
    stopped: Option<Stopped>,
    signals: ForwardedSignals,
}

impl Watched {
    /// Waits until the command has ended, and stops it in time.
    async fn until_it_ends(&mut self) -> std::io::Result<ExitStatus> {
        loop {
            let lease = self.lease.borrow_and_update().clone();
            let now = Instant::now();
            let due = match &self.stopped {
                None if lease.over.is_some() => now,
                None => lease.asked + self.timing.stop,
                Some(stopped) => stopped.kill_at,
            };
            let finished = self.stopped.as_ref().is_some_and(|stopped| stopped.killed);
            if due <= now && !finished {
                self.proceed_to_stop(&lease, now);
                continue;
            }
            // All arms only wait; everything is evaluated again above. `wait` reaps the process that it reports.
            tokio::select! {
                status = self.child.wait() => return status,
                signal = self.signals.next() => self.pass_on(signal),
                _ = self.lease.changed(), if self.stopped.is_none() => {}
                () = tokio::time::sleep_until(due), if !finished => {}
            }
        }
    }

    /// Asks the command to end, or kills it.
    fn proceed_to_stop(&mut self, lease: &Lease, now: Instant) {
        match &mut self.stopped {
            None => {
                let kill_at = match &lease.over {
                    Some(_) => now + LAST_GRACE,
                    None => lease.asked + self.timing.kill,
                };
                self.stopped = Some(Stopped { over: lease.over.clone(), kill_at, killed: false });
                self.kill(Signal::TERM);
            }
            Some(stopped) => {
                stopped.killed = true;
                self.kill(Signal::KILL);
            }
        }
    }

    fn pass_on(&self, number: i32) {
        match Signal::from_named_raw(number) {
            Some(signal) => self.kill(signal),
            None => tracing::debug!(number, "no such signal to pass on"),
        }
    }

    /// Sends a signal to the whole process group.
    fn kill(&self, signal: Signal) {
        let Some(pid) = self.group else { return };
        match kill_process_group(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tell(&format!("cannot send {signal:?} to the command: {error}")),
        }
    }
}
