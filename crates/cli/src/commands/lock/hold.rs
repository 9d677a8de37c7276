//! Holding a lock: the command runs, the lease is renewed beside it, signals are passed on, and the command is stopped while
//! nobody else can have the lock yet.

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

use super::take::give_back;
use super::timing::{LAST_GRACE, Timing};
use super::{Taken, Wanted, exit_by};
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::tell;

/// How long giving back is tried; after that the lease ends by itself.
const GIVING_BACK: Duration = Duration::from_secs(5);

/// How the lock is held right now.
#[derive(Debug, Clone)]
struct Lease {
    /// When the newest lease that was given was asked for.
    asked: Instant,
    /// Why there is none any more, if somebody said so.
    over: Option<String>,
}

/// Runs the command while the lock is held, and gives it back.
pub(super) async fn hold(wanted: &Wanted<'_>, taken: Taken, signals: ForwardedSignals) -> CommandResult {
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
    if tasks.stop(GIVING_BACK).await.is_err() {
        tracing::debug!("a renewal was under way when the command ended");
    }
    let status = status.map_err(|error| Failure::ours(format!("wait for the command: {error}")))?;
    if let Some(stopped) = &watched.stopped {
        // What the command left behind would go on without the lock.
        watched.kill(Signal::KILL);
        return Err(stopped.failure(&wanted.run.name));
    }
    let giving = tokio::time::timeout(GIVING_BACK, give_back(wanted, taken.fence)).await;
    if !matches!(giving, Ok(Ok(()))) {
        let (name, lease) = (&wanted.run.name, wanted.run.lease);
        tell(&format!("could not give lock {name} back; it ends by itself within {lease}"));
    }
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Child(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => exit_by(signal.unwrap_or_default()),
    })
}

/// Starts the command in a group of its own, so that all of it can be stopped.
async fn start(wanted: &Wanted<'_>, fence: u64) -> Result<Child, Failure> {
    // This very program, also when another version has taken its place meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.args(["lock-child", "--parent", &std::process::id().to_string(), "--"]);
    command.args(&wanted.run.command).process_group(0);
    command.env("BELLWETHER_LOCK", &wanted.run.name).env("BELLWETHER_FENCE", fence.to_string());
    // A group of its own may not read from a terminal: it would stand still, and the lock be held for nothing.
    if std::io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    match command.spawn() {
        Ok(child) => Ok(child),
        Err(error) => {
            drop(give_back(wanted, fence).await);
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
    /// Renews until the level stops, or there is nothing to renew any more.
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
                    tracing::debug!("could not {error}");
                    Instant::now() + self.timing.again
                }
            };
        }
    }

    /// Renews once, when it is time; answers when that was asked for. An answer that does not come is not waited for longer
    /// than the lease is worth.
    async fn once(&self, at: Instant) -> Result<Instant, CallError> {
        tokio::time::sleep_until(at).await;
        let asked = Instant::now();
        let renewing = self.client.renew_slot(&self.namespace, &self.name, &self.renew);
        let late =
            |_| CallError::Timeout { server: "the control plane".to_owned(), after: self.timing.renew };
        tokio::time::timeout(self.timing.renew, renewing).await.map_err(late)??;
        self.lease.send_modify(|lease| lease.asked = asked);
        Ok(asked)
    }
}

/// Why the command was stopped.
struct Stopped {
    /// Why there is no lock any more; none if nobody could be asked.
    over: Option<String>,
    /// When it is ended, if it has not by itself.
    kill_at: Instant,
    killed: bool,
}

impl Stopped {
    fn failure(&self, name: &str) -> Failure {
        let hint = format!("bellwether lock describe {name}");
        match &self.over {
            Some(reason) => {
                let reason = reason.strip_prefix("could not ").unwrap_or(reason);
                let what = format!("go on, so the command was stopped: could not {reason}");
                Failure::new(Exit::LostRace, what).hint(hint)
            }
            None => {
                let what = format!(
                    "renew lock {name} in time: the command was stopped before another could have it"
                );
                Failure::new(Exit::Unavailable, what).hint(hint)
            }
        }
    }
}

/// The command at work.
struct Watched {
    child: Child,
    /// All that it started, unless that went its own way.
    group: Option<Pid>,
    lease: watch::Receiver<Lease>,
    timing: Timing,
    stopped: Option<Stopped>,
    signals: ForwardedSignals,
}

impl Watched {
    /// Waits until the command has ended, and sees to it that it does in time.
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
                self.go_on_stopping(&lease, now);
                continue;
            }
            // All only wait; everything is looked at again above. A process that has ended is reaped by the wait that says so.
            tokio::select! {
                status = self.child.wait() => return status,
                signal = self.signals.next() => self.pass_on(signal),
                _ = self.lease.changed(), if self.stopped.is_none() => {}
                () = tokio::time::sleep_until(due), if !finished => {}
            }
        }
    }

    /// Asks the command to end, or ends it.
    fn go_on_stopping(&mut self, lease: &Lease, now: Instant) {
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

    /// Sends a signal to all of the command.
    fn kill(&self, signal: Signal) {
        let Some(pid) = self.group else { return };
        match kill_process_group(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tell(&format!("could not send {signal:?} to the command: {error}")),
        }
    }
}
