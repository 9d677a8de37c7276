//! Runs of workflows on a simulated node, by the real agent's decisions: each task is in the ledger before it begins.

use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_api::problem::{Code, Problem};
use bellwether_api::v1::task_list::NextJob;
use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::action::{self, ActionStep};
use bellwether_core::local::memory::{ApplyProgress, EntityMemory, RunOutcome, StepOutcome};
use bellwether_core::local::runs_here::RunsHere;
use bellwether_core::local::work::{ScriptExit, WorkMemory, WorkStep};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::name::EntityName;
use bellwether_core::words::time::Span;
use bellwether_core::words::version::Version;

use super::node::StoredWork;
use super::work::{OrderWorker, WorkTurn};
use crate::executions::ExecutionEnd;
use crate::requests::json;
use crate::rules::DisabledRule;

/// The boot of every machine: none of them reboots.
const BOOT: &str = "first";

/// How long to wait before the inputs of a task are asked for again.
const AGAIN: Span = Span::from_secs(3);

/// Time for the inputs of a task to come.
const DEADLINE: Duration = Duration::from_secs(10);

/// Prefix of tasks that may run again when nobody knows how far they came.
pub const IDEMPOTENT: &str = "again";

impl OrderWorker {
    /// Tells the other runs of the node of those that began before the agent started.
    pub(super) fn recall_runs(&mut self) {
        let disk = self.node.disk();
        for (name, memory) in &disk.memories {
            let goes_on = memory.ran.as_ref().is_some_and(|ran| ran.outcome == RunOutcome::Begun);
            if goes_on && disk.works.get(name).is_some_and(|stored| stored.memory.has_begun()) {
                self.runs_here.begins(name);
            }
        }
    }

    /// Forgets runs that are not assigned any more.
    pub(super) fn forget_runs(&mut self) {
        let mut disk = self.node.disk();
        let Some(order) = disk.order.clone() else { return };
        let is_gone = |name: &&EntityName| !order.content.entities.contains_key(*name);
        let gone: Vec<EntityName> = disk.works.keys().filter(is_gone).cloned().collect();
        for name in gone {
            disk.works.remove(&name);
            disk.memories.remove(&name);
            self.runs_here.forgets(&name);
            self.recalled.remove(&name);
            self.board.send_modify(|board| drop(board.entities.remove(&name)));
        }
    }

    /// Does the one step that follows from the assignment of a run, and from how far it is.
    pub(super) async fn carry_out(
        &mut self,
        name: &EntityName,
        memory: &EntityMemory,
        paused: bool,
    ) -> WorkTurn {
        match memory.ran.as_ref().map(|ran| ran.outcome) {
            Some(RunOutcome::Failed) => drop(self.runs_here.fails(name)),
            Some(RunOutcome::Begun | RunOutcome::Retry) => {}
            Some(RunOutcome::Done | RunOutcome::Lost) | None => drop(self.runs_here.ends(name)),
        }
        let bound = memory.wanted.as_ref().and_then(|wanted| wanted.binding.ledger.clone());
        let ignores_ledger = self.node.without == Some(DisabledRule::LedgerIdentity);
        let ledger = bound.filter(|_| ignores_ledger).unwrap_or_else(|| self.node.ledger());
        let (now, seed) = (self.clock.now(), self.chance.draw());
        match action::next(memory, &ledger, paused) {
            ActionStep::Run(version) => return self.go_on(name, memory, &version).await,
            ActionStep::Lose(version) => self.change(name, |memory| memory.loses(&version, false, now, seed)),
            ActionStep::Acknowledge(version) => self.change(name, |memory| memory.acknowledges(&version)),
            ActionStep::Rest(_) => {
                self.say(name, &AgentActivity::Idle);
                return WorkTurn::Rests(None);
            }
        }
        WorkTurn::Worked
    }

    async fn go_on(&mut self, name: &EntityName, memory: &EntityMemory, version: &Version) -> WorkTurn {
        let is_begun = |memory: &EntityMemory| {
            memory.ran.as_ref().is_some_and(|ran| ran.version == *version && ran.outcome == RunOutcome::Begun)
        };
        if !is_begun(memory) {
            self.change(name, |memory| memory.runs(version));
        }
        let complete = memory.wanted.as_ref().map_or(0, |wanted| wanted.binding.complete);
        let none =
            || StoredWork { memory: WorkMemory::after(version.clone(), complete), is_idempotent: false };
        let mut stored = self.node.disk().works.get(name).cloned().unwrap_or_else(none);
        if self.recalled.insert(name.clone()) {
            stored.memory.started(BOOT);
            self.keep(name, &stored);
        }
        match stored.memory.next(BOOT, self.clock.now()) {
            WorkStep::Create(index) => self.create(name, stored, index).await,
            WorkStep::Begin(index) => self.begin(name, stored, index).await,
            WorkStep::WaitUntil(at) => WorkTurn::Rests(Some(at)),
            // No task of a history asks for another life of the agent, or another boot.
            WorkStep::WaitForStart(_) | WorkStep::EndBoot(_) => WorkTurn::Rests(None),
            WorkStep::Fail(_) if self.node.without == Some(DisabledRule::LostJobs) => WorkTurn::Rests(None),
            WorkStep::Fail(summary) => {
                stored.memory.gives_up();
                self.keep(name, &stored);
                self.fail(name, summary)
            }
        }
    }

    fn keep(&self, name: &EntityName, stored: &StoredWork) {
        self.node.disk().works.insert(name.clone(), stored.clone());
    }

    fn fail(&mut self, name: &EntityName, summary: String) -> WorkTurn {
        let (now, seed) = (self.clock.now(), self.chance.draw());
        let outcome = StepOutcome::Failed(Evidence { summary, ..Evidence::default() });
        self.change(name, |memory| memory.finished(outcome, now, seed));
        self.runs_here.fails(name);
        self.say(name, &AgentActivity::Idle);
        WorkTurn::Worked
    }

    /// Why a run does not begin now; it waits behind those that do.
    fn held(&mut self, name: &EntityName, stored: &StoredWork) -> Option<WorkTurn> {
        let order = self.node.disk().order.clone()?;
        let reason = self.runs_here.hold(name, &order.content, stored.memory.has_begun())?;
        self.runs_here.waits(name);
        self.say(name, &AgentActivity::Held(reason));
        Some(WorkTurn::Rests(None))
    }

    /// Takes the inputs of the next task, and stores them.
    async fn create(&mut self, name: &EntityName, mut stored: StoredWork, index: u32) -> WorkTurn {
        if let Some(held) = self.held(name, &stored) {
            return held;
        }
        let path =
            fill(paths::JOB_INPUTS, &["default", self.node.name.as_str(), name.as_str(), &index.to_string()]);
        let answer = self.line.ask(json("POST", &path, &()), DEADLINE).await;
        let next: Option<NextJob> = match &answer {
            Ok((200..300, body)) => serde_json::from_slice(body).ok(),
            Ok((_, body)) => {
                let problem = serde_json::from_slice::<Problem>(body).ok();
                if let Some(refusal) = problem.filter(|problem| problem.code == Code::Refused) {
                    return self.fail(name, refusal.detail);
                }
                None
            }
            Err(_) => None,
        };
        match next.map(|next| next.job) {
            None => {
                self.say(name, &AgentActivity::Held("waits for the inputs of its next task".to_owned()));
                WorkTurn::Rests(Some(self.clock.now().plus(AGAIN)))
            }
            Some(None) => {
                let (now, seed) = (self.clock.now(), self.chance.draw());
                self.change(name, |memory| memory.finished(StepOutcome::Done, now, seed));
                self.runs_here.ends(name);
                self.say(name, &AgentActivity::Idle);
                WorkTurn::Worked
            }
            Some(Some(inputs)) => {
                let Ok(task) = inputs.task.task.parse() else {
                    return self.fail(name, "no such name".to_owned());
                };
                stored.is_idempotent = inputs.spec.idempotent;
                stored.memory.created(task, inputs.spec.idempotent);
                self.keep(name, &stored);
                WorkTurn::Worked
            }
        }
    }

    /// Runs the task that is next.
    async fn begin(&mut self, name: &EntityName, mut stored: StoredWork, index: u32) -> WorkTurn {
        if let Some(held) = self.held(name, &stored) {
            return held;
        }
        if !self.may_run() {
            // Its lease is not held yet.
            return WorkTurn::Rests(Some(self.clock.now().plus(Span::from_secs(1))));
        }
        self.runs_here.begins(name);
        stored.memory.begins(self.clock.now());
        if self.node.without != Some(DisabledRule::Ledger) {
            self.keep(name, &stored);
        }
        let key = (name.clone(), self.node.name.clone(), index);
        let executions = self.node.executions.clone();
        executions.begin(&key, &self.node.host, self.guard_lease(), stored.is_idempotent);
        self.say(name, &AgentActivity::Step(ApplyProgress::Dynamic));
        // Some on a logical node last longer than another host waits for it.
        let is_long = self.node.lease.is_some() && self.chance.below(8) == 0;
        let longest = if is_long { 60_000 } else { 5_000 };
        let lasts = Duration::from_millis(100 + self.chance.below(longest));
        if !self.lasts(name, lasts).await {
            executions.end(&key, ExecutionEnd::Killed);
            return WorkTurn::Worked;
        }
        if !self.may_run() {
            // Its guard ended it.
            executions.end(&key, ExecutionEnd::Killed);
            return WorkTurn::Rests(Some(self.clock.now().plus(Span::from_secs(1))));
        }
        let exit = match self.chance.below(40) {
            0 => ScriptExit::Failed(1),
            1 => ScriptExit::Incomplete,
            _ => ScriptExit::Complete,
        };
        let is_complete = exit == ScriptExit::Complete;
        executions.end(&key, if is_complete { ExecutionEnd::Complete } else { ExecutionEnd::Other });
        // The agent may die before its end is stored.
        tokio::time::sleep(Duration::from_millis(self.chance.below(20))).await;
        let (now, seed) = (self.clock.now(), self.chance.draw());
        match exit {
            ScriptExit::Failed(code) => stored.memory.fails(Some(code), now),
            ScriptExit::Incomplete => stored.memory.pauses(exit, BOOT, now, seed),
            ScriptExit::Complete | ScriptExit::Stop { .. } | ScriptExit::Boot { .. } => {
                stored.memory.completes(now)
            }
        }
        self.keep(name, &stored);
        if let ScriptExit::Failed(code) = exit {
            return self.fail(name, format!("task {index}: exit code {code}"));
        }
        WorkTurn::Worked
    }

    /// Whether the lease of the node, if it needs one, is held.
    fn may_run(&self) -> bool {
        self.guard_lease().is_none_or(|lease| lease.is_held())
    }

    fn guard_lease(&self) -> Option<crate::executions::HostLease> {
        self.node.lease.clone().filter(|_| self.node.without != Some(DisabledRule::Lease))
    }

    /// Waits while a task runs; false if its run is withdrawn before its end.
    async fn lasts(&self, name: &EntityName, time: Duration) -> bool {
        let mut orders = self.orders.subscribe();
        let mut over = std::pin::pin!(tokio::time::sleep(time));
        loop {
            orders.borrow_and_update();
            let order = self.node.disk().order.clone();
            if order.is_some_and(|order| !order.content.entities.contains_key(name)) {
                return false;
            }
            // Both arms only wait.
            tokio::select! {
                biased;
                () = &mut over => return true,
                changed = orders.changed() => if changed.is_err() { return false },
            }
        }
    }
}

impl OrderWorker {
    /// Runs that keep others from beginning, before any did.
    pub(super) fn no_runs() -> RunsHere {
        RunsHere::default()
    }
}
