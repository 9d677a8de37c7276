//! What really runs on the machines, whatever ledgers and records say of it: begun and ended tasks, and on which host. Checks that no task
//! begins twice that may not, and that no two hosts run one logical node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_core::words::name::{EntityName, NodeName};
use tokio::time::Instant;

use crate::trace::Trace;

/// A task of a run on a node.
pub type TaskKey = (EntityName, NodeName, u32);

/// The lease of a logical node by its host's clock, shared with what renews it. Clones are the same lease.
#[derive(Debug, Clone, Default)]
pub struct HostLease(Arc<Mutex<Option<Instant>>>);

impl HostLease {
    /// Its end; `None` before it is held.
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds it until this time at least.
    pub fn extend(&self, to: Instant) {
        let mut end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *end = Some(end.map_or(to, |end| end.max(to)));
    }

    /// Whether it is held now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.end().is_some_and(|end| Instant::now() < end)
    }
}

/// One execution of a task.
#[derive(Debug, Clone)]
struct Execution {
    host: NodeName,
    /// Where its guard ends it, on a logical node.
    lease: Option<HostLease>,
    end: Option<ExecutionEnd>,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// The task is complete.
    Complete,
    /// The task failed, or is to begin again.
    Other,
    /// It was killed, with its agent or by its guard.
    Killed,
}

/// All executions of a history. Clones are the same.
#[derive(Debug, Clone)]
pub struct Executions {
    trace: Trace,
    all: Arc<Mutex<BTreeMap<TaskKey, Vec<Execution>>>>,
}

impl Executions {
    /// None yet.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self { trace: trace.clone(), all: Arc::default() }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Vec<Execution>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task begins on a node, whose host is another one if it is logical.
    pub fn begin(&self, key: &TaskKey, host: &NodeName, lease: Option<HostLease>, is_idempotent: bool) {
        let (run, node, index) = key;
        self.trace.say(&format!("{node} on {host} begins task {index} of {run}"));
        let mut all = self.all();
        let runs_elsewhere =
            all.iter().filter(|((_, of, _), _)| of == node).find_map(|((other, _, _), executions)| {
                let elsewhere = executions.iter().find(|one| one.host != *host && one.is_alive())?;
                Some((other.clone(), elsewhere.host.clone()))
            });
        if let Some((other, at)) = runs_elsewhere {
            self.trace.breaks(&format!("{run} begins on {node} at {host} while {other} runs there at {at}"));
        }
        let executions = all.entry(key.clone()).or_default();
        let before = executions.iter().filter(|one| one.end != Some(ExecutionEnd::Other)).count();
        if before > 0 && !is_idempotent {
            self.trace.breaks(&format!("task {index} of {run} runs again on {node}, and may not"));
        }
        executions.push(Execution { host: host.clone(), lease, end: None });
    }

    /// The last execution of a task ended.
    pub fn end(&self, key: &TaskKey, end: ExecutionEnd) {
        if let Some(last) = self.all().get_mut(key).and_then(|all| all.last_mut()) {
            last.end.get_or_insert(end);
        }
    }

    /// All that runs on a machine, or on what it hosts, was killed with its agent.
    pub fn host_dies(&self, host: &NodeName) {
        for one in self.all().values_mut().flatten().filter(|one| one.host == *host) {
            one.end.get_or_insert(ExecutionEnd::Killed);
        }
    }

    /// All that a host runs on a logical node ended.
    pub fn end_all(&self, host: &NodeName, node: &NodeName, end: ExecutionEnd) {
        let mut all = self.all();
        let of_node = all.iter_mut().filter(|((_, of, _), _)| of == node);
        for one in of_node.flat_map(|(_, all)| all).filter(|one| one.host == *host) {
            one.end.get_or_insert(end);
        }
    }

    /// The tasks that were begun, each with the end of its last execution.
    #[must_use]
    pub fn ends(&self) -> BTreeMap<TaskKey, Option<ExecutionEnd>> {
        let last = |all: &Vec<Execution>| all.last().and_then(|last| last.end);
        self.all().iter().map(|(key, all)| (key.clone(), last(all))).collect()
    }
}

impl Execution {
    fn is_alive(&self) -> bool {
        self.end.is_none() && self.lease.as_ref().is_none_or(HostLease::is_held)
    }
}
