//! Calls of the hooks that policies name. They run while this server leads, beside the reconcile loop and never within it.
//! This module owns when which question is asked; core decides what an answer means, from the record of answers.
//!
//! Each call is a task of its own with a deadline, one per entity and hook: a hook that hangs delays no other.

mod call;
mod call_spec;
mod call_table;
mod exchange;
mod keep;
mod prometheus;
mod questions;
pub mod settings;
mod shape;
pub mod url_prefix;

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::words::counter::Term;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::tasks::Tasks;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::call_spec::{FinishedCall, HookCallSpec};
use self::call_table::{CallDue, CallTable};
use self::questions::look;
use self::settings::HookSettings;
use crate::leadership::Leadership;
use crate::metrics::{HookCall, Metrics};
use crate::records::commit::CommitError;
use crate::sleep::sleep_or_never;
use crate::transactor::Transactor;
use crate::world::RelistHandle;

/// Most calls in flight: few enough sockets, and more than one hanging controller can occupy.
const AT_ONCE: usize = 64;

/// Shortest sleep until the next time-based check.
const SHORTEST_NAP: Duration = Duration::from_millis(10);

/// The task of a call. It returns none when the leadership ends first.
type Calling = JoinHandle<Option<Option<FinishedCall>>>;

type Calls = FuturesUnordered<Calling>;

/// The task that calls hooks.
#[derive(Debug)]
pub struct HookCaller {
    /// Commits the answers.
    pub transactor: Transactor,
    /// Brings the world up to date with the store.
    pub relist: RelistHandle,
    /// When to call hooks, and under which term to commit.
    pub leadership: Leadership,
    /// Parent of the tasks of the calls.
    pub tasks: Tasks,
    /// Tokens and certificate authority.
    pub settings: Arc<HookSettings>,
    /// Counters.
    pub metrics: Metrics,
}

impl HookCaller {
    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.leadership.won(&stop).await {
            // Questions that an earlier leader recorded answers to are not asked again. The term is no revision of this store:
            // it counts on after the records were moved here from another one.
            if self.relist.bring_up_to_date(&stop).await {
                let level = self.tasks.child();
                self.lead(term, &level, &stop).await;
                level.cancel();
            }
            self.leadership.lost(term, &stop).await;
        }
    }

    async fn lead(&mut self, term: Term, level: &Tasks, stop: &CancellationToken) {
        let mut worlds = self.transactor.follow();
        let mut table = CallTable::default();
        let mut calls = Calls::new();
        while self.leadership.is_in(term) {
            let world = worlds.borrow_and_update().clone();
            let sleep = self.ask(&world, level, &mut table, &mut calls);
            let sleep = sleep.map(|at| at.since(self.transactor.now()).to_duration().max(SHORTEST_NAP));
            // All arms only wait; a call that completes later stays in `calls`.
            let done = tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return } else { None },
                () = self.leadership.changed() => None,
                Some(done) = calls.next(), if !calls.is_empty() => done.ok().flatten().flatten(),
                () = sleep_or_never(sleep) => None,
            };
            let Some(done) = done else { continue };
            fail::pass(FailPoint::HookAnswered);
            let failed = match keep::remember(&self.transactor, term, &done).await {
                Ok(failed) => failed,
                Err(CommitError::LostTerm) => return self.leadership.give_up(term),
                Err(CommitError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot record the answer of a hook");
                    true
                }
            };
            let result = if failed { HookCall::FAILED } else { HookCall::ANSWERED };
            self.metrics.hook_calls.get_or_create(&HookCall::of(done.spec.key.asked, result)).inc();
            table.answered(&done.spec.key, failed, self.transactor.now());
        }
    }

    /// Starts a call for each question that is due. Returns when the next one is.
    fn ask(
        &self,
        world: &World,
        level: &Tasks,
        table: &mut CallTable,
        calls: &mut Calls,
    ) -> Option<Timestamp> {
        let now = self.transactor.now();
        let look = look(world, now);
        let mut wake = look.wake;
        let mut in_flight = table.in_flight();
        for (spec, known) in look.questions {
            match table.due(&spec, &known, now) {
                CallDue::At(at) if at > now => wake = [wake, Some(at)].into_iter().flatten().min(),
                CallDue::At(_) if calls.len() < AT_ONCE && in_flight.take(&spec.hook.url) => {
                    calls.push(self.call(level, spec.clone()));
                    table.started(spec);
                }
                // Considered again when a call ends.
                CallDue::At(_) | CallDue::InFlight => {}
            }
        }
        table.keep_only(&look.live);
        wake
    }

    fn call(&self, level: &Tasks, spec: HookCallSpec) -> Calling {
        let (settings, stop, transactor) = (self.settings.clone(), level.token(), self.transactor.clone());
        level.spawn("hook", async move {
            let answer = call::answer(&transactor, &spec, &settings);
            // Both arms only wait; a cancelled call has changed nothing here.
            tokio::select! {
                () = stop.cancelled() => None,
                answer = answer => Some(FinishedCall { answer, spec }),
            }
        })
    }
}
