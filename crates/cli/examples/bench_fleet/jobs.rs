//! The run of a workflow on all agents: what the control plane writes and does for each job; see `agent_run` for
//! what agents do about it.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bellwether_api::v1::apply::{ApplyRequest, Document, StageDocument, TaskDocument, WorkflowDocument};
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::run::NewRun;
use bellwether_api::v1::workflow::{Script, TaskStep};

use super::crowd::{now, until};
use super::measure::{BOUND, Fleet, Spread};
use super::place::{NAMESPACE, cost};

/// Tasks of the workflow.
const TASKS: u32 = 5;

/// The workflow.
pub(crate) const WORKFLOW: &str = "measured";

/// What a run on all agents cost.
pub(crate) struct RunCost {
    jobs: f64,
    /// Records that were written or deleted.
    keys: f64,
    transactions: f64,
    begun: Spread,
    ended: Spread,
    /// Processor time of the servers.
    processor: Duration,
    /// Memory of the servers at the end, and the most that they had.
    memory_kib: (u64, u64),
    failed_calls: u64,
    first_failure: Option<String>,
}

impl RunCost {
    /// The figures, as they are printed.
    pub(crate) fn figures(&self) -> Vec<String> {
        let each = |all: f64| all / self.jobs;
        let (resident, peak) = self.memory_kib;
        let failure =
            self.first_failure.iter().map(|failure| format!("the first call that failed: {failure}"));
        let figures = [
            format!("jobs {:.0} jobs", self.jobs),
            format!("keys-per-job {:.2} keys (bar 3, ratio {:.2})", each(self.keys), each(self.keys) / 3.0),
            format!("transactions-per-job {:.3} transactions", each(self.transactions)),
            format!("begun-all {:.1} s", self.begun.all.as_secs_f64()),
            format!("ended-all {:.1} s", self.ended.all.as_secs_f64()),
            format!("processor-per-job {:.2} ms", each(self.processor.as_secs_f64()) * 1_000.0),
            format!("memory {} MiB (most {} MiB, bar 1024)", resident / 1_024, peak / 1_024),
            format!("failed-calls {} calls (bar 0)", self.failed_calls),
        ];
        failure.chain(figures).collect()
    }
}

impl Fleet {
    /// Runs a workflow on all agents at once.
    pub(crate) async fn run_workflow(&self) -> Result<RunCost> {
        let person = self.person()?;
        person.apply(NAMESPACE, &workflow()).await?;
        self.quiet().await?;
        let (before, processor) = (self.written().await?, self.processor()?);
        let begun = now();
        let policy =
            Policy { batch: Some("100%".to_owned()), soak: Some("0s".to_owned()), ..Policy::default() };
        let new = NewRun {
            workflow: WORKFLOW.to_owned(),
            on: "all".to_owned(),
            policy,
            reason: "measured".to_owned(),
            ..NewRun::default()
        };
        let run = person.start_run(NAMESPACE, &new).await?.name;
        let agents = u64::try_from(self.agents)?;
        until("the run has succeeded on all agents", BOUND, async || {
            person.run(NAMESPACE, &run).await.is_ok_and(|run| run.succeeded == agents)
        })
        .await?;
        self.quiet().await?;
        let after = self.written().await?;
        let times = &self.crowd.jobs;
        let since = |times: &Mutex<Vec<Instant>>| {
            let times = times.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Spread::of(times.into_iter().map(|at| at.saturating_duration_since(begun)).collect())
        };
        let (mut resident, mut peak) = (0, 0);
        for pid in self.pids()? {
            let cost = cost(pid)?;
            (resident, peak) = (resident + cost.resident_kib, peak + cost.peak_kib);
        }
        Ok(RunCost {
            jobs: f64::from(u32::try_from(self.agents)?) * f64::from(TASKS),
            keys: after.0 - before.0,
            transactions: after.1 - before.1,
            begun: since(&times.begun)?,
            ended: since(&times.ended)?,
            processor: self.processor()?.saturating_sub(processor),
            memory_kib: (resident, peak),
            failed_calls: times.failed_calls.load(Ordering::Relaxed),
            first_failure: times.first_failure.get().cloned(),
        })
    }

    /// Processor time of all servers so far.
    fn processor(&self) -> Result<Duration> {
        self.pids()?.into_iter().map(|pid| Ok(cost(pid)?.processor)).sum()
    }

    /// The records that the first server saw written or deleted, and the revision of the store.
    async fn written(&self) -> Result<(f64, f64)> {
        let page = self.person()?.text("/metrics", BOUND).await?;
        let value = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse().ok()).with_context(|| format!("metric {name}"))
        };
        Ok((value("bellwether_store_changes_total")?, value("bellwether_store_revision")?))
    }
}

pub(crate) fn workflow() -> ApplyRequest {
    let names: Vec<String> = (1..=TASKS).map(|number| format!("task-{number}")).collect();
    let step = TaskStep {
        name: "run".to_owned(),
        script: Some(Script { text: "true\n".to_owned(), ..Script::default() }),
        file: None,
    };
    let tasks = names.iter().map(|name| {
        let steps = vec![step.clone()];
        Document::Task(TaskDocument { name: name.clone(), steps, ..TaskDocument::default() })
    });
    let stage = StageDocument { name: WORKFLOW.to_owned(), tasks: names.clone(), ..StageDocument::default() };
    let stages = vec![stage.name.clone()];
    let workflow = WorkflowDocument { name: WORKFLOW.to_owned(), stages, ..WorkflowDocument::default() };
    let documents = tasks.chain([Document::Stage(stage), Document::Workflow(workflow)]).collect();
    ApplyRequest { documents, ..ApplyRequest::default() }
}
