//! Holds a lock: runs the command under a guard, renews the lease, forwards signals, and has the command ended before anyone else
//! can hold the lock.

use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::Code;
use bellwether_api::v1::slot::RenewSlot;
use bellwether_rt::signal::{ForwardedSignals, JobControl};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::Instant;

use super::guarded::{CommandEvent, Guarded};
use super::message::GuardOrder;
use super::request::{LockRequest, exit_by};
use super::take::{Taken, release};
use super::timing::{Moment, Timing};
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
    asked: Moment,
    /// Why the lease has ended, if the server reported it.
    over: Option<String>,
}

/// Runs the command while the lock is held, and returns the lock.
pub(super) async fn hold(wanted: &LockRequest<'_>, taken: Taken, signals: ForwardedSignals) -> CommandResult {
    let timing = Timing::of(wanted.run.lease.to_duration());
    let job_control =
        JobControl::listen().map_err(|error| Failure::ours(format!("listen for signals: {error}")))?;
    let guarded = match Guarded::start(wanted, taken.fence, timing.guarded(taken.asked)).await {
        Ok(guarded) => guarded,
        Err(error) => {
            drop(release(wanted, taken.fence).await);
            return Err(Failure::ours(format!("run the command: {error}")));
        }
    };
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
        timing,
        lease: lease.clone(),
    };
    tasks.spawn("renewal", renewal.clone().run(tasks.clone()));
    let lease = lease.subscribe();
    let mut watched = Watched { guarded, lease, renewal, ending: None, signals, job_control };
    let ended = watched.until_it_ends().await;
    if tasks.stop(RELEASE_TIMEOUT).await.is_err() {
        tracing::debug!("a renewal was under way when the command ended");
    }
    watched.guarded.ended().await;
    if let Some(reason) = watched.ending {
        return Err(stopped(wanted, reason).await);
    }
    let exit = match ended {
        CommandEvent::Exited(code) => Ok(Exit::Child(u8::try_from(code).unwrap_or(u8::MAX))),
        CommandEvent::Killed(signal) => Ok(exit_by(signal)),
        CommandEvent::LeaseOver | CommandEvent::Ending | CommandEvent::Unguarded => {
            Err(Failure::ours("guard the command: its guard has ended, and the command was killed"))
        }
    };
    let releasing = tokio::time::timeout(RELEASE_TIMEOUT, release(wanted, taken.fence)).await;
    if !matches!(releasing, Ok(Ok(()))) {
        let (name, lease) = (&wanted.run.name, wanted.run.lease);
        tell(&format!("cannot release lock {name}; it expires within {}", lease.brief()));
    }
    exit
}

/// The renewal of a lease.
#[derive(Clone)]
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
        let mut at = self.lease.borrow().asked.instant + self.timing.renew;
        loop {
            let asked = tokio::select! {
                () = token.cancelled() => return,
                asked = self.once(at) => asked,
            };
            at = match asked {
                Ok(asked) => asked + self.timing.renew,
                Err(CallError::Problem(problem)) if problem.code == Code::Refused => return,
                Err(error) => {
                    tracing::debug!(%error, "cannot renew the lock");
                    Instant::now() + self.timing.again
                }
            };
        }
    }

    /// Renews once at `at`; returns when that was requested, or notes that the lease has ended. A late answer is not waited for beyond
    /// the next renewal.
    async fn once(&self, at: Instant) -> Result<Instant, CallError> {
        tokio::time::sleep_until(at).await;
        let asked = Moment::now();
        let renewing = self.client.renew_slot(&self.namespace, &self.name, &self.renew);
        let server = self.client.server().to_owned();
        let late = |_| {
            self.client.pass_over(&server);
            CallError::Timeout { server, after: self.timing.renew, may_be_made: false }
        };
        let renewed = tokio::time::timeout(self.timing.renew, renewing).await.map_err(late)?;
        match &renewed {
            Ok(_) => self.lease.send_modify(|lease| {
                if lease.asked.instant < asked.instant {
                    lease.asked = asked;
                }
            }),
            Err(CallError::Problem(problem)) if problem.code == Code::Refused => {
                self.lease.send_modify(|lease| lease.over = Some(problem.detail.clone()));
            }
            Err(_) => {}
        }
        renewed?;
        Ok(asked.instant)
    }
}

/// Why a command is stopped.
enum EndReason {
    /// The lease was not renewed in time.
    NotRenewed,
    /// The server reported that the lease has ended, for this reason.
    Over(String),
}

/// The failure of a command that was stopped.
async fn stopped(wanted: &LockRequest<'_>, reason: EndReason) -> Failure {
    let name = &wanted.run.name;
    let hint = format!("bellwether lock describe {name}");
    match reason {
        EndReason::Over(reason) => {
            let end = end_of_hold(wanted).await.unwrap_or_else(|| format!("cannot {}", bare(&reason)));
            Failure::stated(Exit::Conflict, format!("the command was stopped: {end}")).hint(hint)
        }
        EndReason::NotRenewed => {
            let what = format!(
                "renew lock {name} in time: the command was stopped before anyone else could hold it"
            );
            Failure::new(Exit::Unavailable, what).hint(hint)
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
    guarded: Guarded,
    lease: watch::Receiver<Lease>,
    renewal: Renewal,
    /// Why the command is ended, if it is.
    ending: Option<EndReason>,
    signals: ForwardedSignals,
    job_control: JobControl,
}

impl Watched {
    /// Waits until the command has ended. The guard ends it in time; here it is told of each lease, signal and stop.
    async fn until_it_ends(&mut self) -> CommandEvent {
        loop {
            // All arms only wait; what changed is looked at here.
            tokio::select! {
                event = self.guarded.next() => match event {
                    CommandEvent::LeaseOver => self.ending = Some(EndReason::NotRenewed),
                    CommandEvent::Ending => {
                        let reason = self.lease.borrow().over.clone();
                        self.ending = Some(reason.map_or(EndReason::NotRenewed, EndReason::Over));
                    }
                    CommandEvent::Exited(_) | CommandEvent::Killed(_) | CommandEvent::Unguarded => return event,
                },
                signal = self.signals.next() => self.guarded.order(GuardOrder::Signal(signal)),
                () = self.job_control.stop_requested() => self.suspend().await,
                Ok(()) = self.lease.changed(), if self.ending.is_none() => self.pass_on_lease(),
            }
        }
    }

    fn pass_on_lease(&mut self) {
        let lease = self.lease.borrow_and_update().clone();
        self.guarded.order(match lease.over {
            Some(_) => GuardOrder::End,
            None => GuardOrder::Lease(self.renewal.timing.guarded(lease.asked)),
        });
    }

    /// Stops the command and this process, until a shell or a person has both continue. The command continues only with a lease that
    /// is not over: a server is asked first, and the guard, which kills a stopped command at the end of its lease, has the last word.
    async fn suspend(&mut self) {
        self.guarded.order(GuardOrder::Stop);
        if let Err(error) = self.job_control.suspend().await {
            tell(&format!("cannot stop: {error}"));
        }
        if let Err(error) = self.renewal.once(Instant::now()).await {
            tracing::debug!(%error, "cannot renew the lock before the command continues");
        }
        self.pass_on_lease();
        self.guarded.order(GuardOrder::Continue);
    }
}
