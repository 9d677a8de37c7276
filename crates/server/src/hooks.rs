//! Asking the controllers that policies name: while this server leads, between passes of the reconcile loop and never in
//! it. Owns which question is asked when; what an answer is worth is decided by the core, on what is remembered of it.
//!
//! Every call is a task of its own with a deadline, one per entity and hook, so that one that hangs delays nobody else.

mod call;
mod call_table;
mod exchange;
mod keep;
mod prometheus;
mod questions;
mod shape;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::hook_answers::HookPurpose;
use bellwether_core::records::policy::hook::{Hook, MonitorSource};
use bellwether_core::rollout::hook_answer::HookAnswer;
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::counter::{Revision, RolloutNumber, Term};
use bellwether_core::words::name::{Actor, EntityName, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;
use bellwether_core::world::World;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::tasks::Tasks;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::call_table::{CallDue, CallTable};
use self::questions::look;
use crate::metrics::{HookCall, Metrics};
use crate::reconcile::sleep_or_never;
use crate::records::commit::CommitError;
use crate::transactor::Transactor;

/// Most calls under way at once: sockets and memory for so many are nothing, and one controller alone cannot take them.
const AT_ONCE: usize = 64;

/// Most calls under way at once to one address: a controller that hangs leaves room for the others.
const TO_ONE_ADDRESS: usize = 16;

/// Shortest wait before looking again by time alone.
const SHORTEST_NAP: Duration = Duration::from_millis(10);

/// What the configuration says about hooks.
#[derive(Debug, Clone, Default)]
pub struct HookSettings {
    /// By the name that policies use: the file that holds the token.
    pub tokens: BTreeMap<Actor, PathBuf>,
    /// The authorities that hooks behind `https` are trusted by, PEM; the system's own when absent.
    pub ca_file: Option<PathBuf>,
}

/// Who is asked, and for which entity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct HookCallKey {
    namespace: Namespace,
    entity: EntityName,
    asked: HookPurpose,
}

/// A question on its way.
#[derive(Debug, Clone)]
struct HookCallSpec {
    place: HookCallKey,
    rollout: RolloutNumber,
    about: RolloutSubject,
    hook: Hook,
    /// The query, if it is a Prometheus server.
    source: MonitorSource,
    question: HookQuestion,
}

/// What is rolled out.
#[derive(Debug, Clone)]
struct RolloutSubject {
    version: Version,
    from: Option<Version>,
}

/// A question and what came of it.
#[derive(Debug)]
struct FinishedCall {
    asking: HookCallSpec,
    answer: HookAnswer,
}

/// A call's task: nothing comes of it when its level stops.
type Calling = JoinHandle<Option<Option<FinishedCall>>>;

type Calls = FuturesUnordered<Calling>;

/// What asks.
#[derive(Debug)]
pub struct HookCaller {
    /// Where answers are committed.
    pub transactor: Transactor,
    /// The leadership.
    pub term: watch::Receiver<Option<Term>>,
    /// The level on which calls run.
    pub tasks: Tasks,
    /// Tokens and trust.
    pub settings: Arc<HookSettings>,
    /// What is counted.
    pub metrics: Metrics,
}

impl HookCaller {
    /// Runs until asked to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.next_term(&stop).await {
            // What an earlier leader was told is not asked again.
            self.transactor.shown(Revision::new(term.get())).await;
            let level = self.tasks.child();
            self.lead(term, &level, &stop).await;
            level.cancel();
            // Both arms only wait.
            tokio::select! {
                () = stop.cancelled() => {}
                gone = self.term.wait_for(|present| *present != Some(term)) => drop(gone),
            }
        }
    }

    async fn next_term(&mut self, stop: &CancellationToken) -> Option<Term> {
        // Both arms only wait; the value is tested by wait_for.
        tokio::select! {
            () = stop.cancelled() => None,
            term = self.term.wait_for(Option::is_some) => term.ok().and_then(|term| *term),
        }
    }

    async fn lead(&mut self, term: Term, level: &Tasks, stop: &CancellationToken) {
        let mut worlds = self.transactor.follow();
        let mut ledger = CallTable::default();
        let mut calls = Calls::new();
        while *self.term.borrow() == Some(term) {
            let world = worlds.borrow_and_update().clone();
            let sleep = self.ask(&world, level, &mut ledger, &mut calls);
            let sleep = sleep.map(|at| at.since(self.transactor.now()).to_duration().max(SHORTEST_NAP));
            // All arms only wait; a call that is not taken here stays among the calls.
            let done = tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return } else { None },
                _ = self.term.changed() => None,
                Some(done) = calls.next(), if !calls.is_empty() => done.ok().flatten().flatten(),
                () = sleep_or_never(sleep) => None,
            };
            let Some(done) = done else { continue };
            fail::pass(FailPoint::HookAnswered);
            let failed = match self.keep(term, &done).await {
                Ok(failed) => failed,
                Err(CommitError::LostTerm | CommitError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "could not remember what a hook answered");
                    true
                }
            };
            let result = if failed { "trouble" } else { "answered" };
            self.metrics.hook_calls.get_or_create(&HookCall::of(done.asking.place.asked, result)).inc();
            ledger.answered(&done.asking.place, failed, self.transactor.now());
        }
    }

    /// Starts whichever questions are due, and says when to look again.
    fn ask(
        &self,
        world: &World,
        level: &Tasks,
        ledger: &mut CallTable,
        calls: &mut Calls,
    ) -> Option<Timestamp> {
        let now = self.transactor.now();
        let look = look(world, now);
        let mut wake = look.wake;
        let mut under_way = ledger.under_way();
        for (asking, known) in look.questions {
            match ledger.due(&asking, &known, now) {
                CallDue::At(at) if at > now => wake = [wake, Some(at)].into_iter().flatten().min(),
                CallDue::At(_) if calls.len() < AT_ONCE && under_way.take(&asking.hook.url) => {
                    calls.push(self.call(level, asking.clone()));
                    ledger.asking(asking);
                }
                // Looked at again when a call ends.
                CallDue::At(_) | CallDue::InFlight => {}
            }
        }
        ledger.keep_only(&look.live);
        wake
    }

    fn call(&self, level: &Tasks, asking: HookCallSpec) -> Calling {
        let (settings, stop, transactor) = (self.settings.clone(), level.token(), self.transactor.clone());
        level.spawn("hook", async move {
            let answer = call::answer(&transactor, &asking, &settings);
            // Both arms only wait; a call that is given up has changed nothing here.
            tokio::select! {
                () = stop.cancelled() => None,
                answer = answer => Some(FinishedCall { answer, asking }),
            }
        })
    }
}
