//! The run of a workflow on a simulated agent: it takes the inputs of each task and reports its job as the real one does; the task itself
//! takes no time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bellwether_api::client::{CallError, Client};
use bellwether_api::v1::job::{JobExit, JobState, ReportedJob};
use bellwether_api::v1::order::Assignment;
use bellwether_api::v1::report::{EntityReport, RunningStep, TargetActivity, TargetHealth};
use bellwether_api::v1::run::JobInputs;
use bellwether_core::local::delay;

use super::crowd::{Agent, now};
use super::place::NAMESPACE;

/// What all agents did about runs.
#[derive(Debug, Default)]
pub(crate) struct JobTimes {
    /// When each agent began the first task of its run.
    pub(crate) begun: Mutex<Vec<Instant>>,
    /// When each agent had reported the last one.
    pub(crate) ended: Mutex<Vec<Instant>>,
    pub(crate) failed_calls: AtomicU64,
    /// Why the first of them failed.
    pub(crate) first_failure: OnceLock<String>,
}

/// The run of a workflow on one agent.
pub(crate) struct AgentRun {
    pub(crate) agent: Agent,
    pub(crate) client: Client,
    /// Name of the run.
    pub(crate) name: String,
    pub(crate) assignment: Assignment,
    pub(crate) generation: u64,
    pub(crate) times: Arc<JobTimes>,
}

impl AgentRun {
    /// Carries it out, task by task.
    pub(crate) async fn carry_out(self) {
        let mut jobs: Vec<ReportedJob> = Vec::new();
        for index in 0.. {
            let Some(inputs) = self.next(index).await else { break };
            if index == 0 {
                note(&self.times.begun);
            }
            jobs.push(job(index, inputs.task.task.clone()));
            let step = RunningStep {
                part: "job".to_owned(),
                command: format!("task {} ({} of {}), step run", inputs.task.task, index + 1, inputs.tasks),
                for_ms: Some(0),
                limit_ms: 3_600_000,
                ..RunningStep::default()
            };
            let activity = TargetActivity::Applying { attempt: 1, waiting_for: None };
            self.report(EntityReport { activity, step: Some(step), ..self.entity(&jobs) }).await;
            let ended = jobs.last_mut().into_iter();
            ended.for_each(|job| (job.state, job.exit, job.exit_code) = finished());
        }
        let running = Some(self.assignment.version.clone());
        self.report(EntityReport { running, healthy_for_ms: Some(0), ..self.entity(&jobs) }).await;
        note(&self.times.ended);
    }

    fn entity(&self, jobs: &[ReportedJob]) -> EntityReport {
        EntityReport {
            answering: self.assignment.number,
            health: TargetHealth::NoChecks,
            jobs: Some(jobs.to_vec()),
            ..EntityReport::default()
        }
    }

    async fn report(&self, entity: EntityReport) {
        let mut report = self.agent.report(None);
        report.generation = self.generation;
        report.entities = BTreeMap::from([(self.name.clone(), entity)]);
        let mut failed = 0;
        while let Err(error) = self.client.report(NAMESPACE, &report).await {
            failed = self.rests(failed, &error).await;
        }
    }

    /// The inputs of the next task; `None` if there is none.
    async fn next(&self, index: u32) -> Option<JobInputs> {
        let mut failed = 0;
        loop {
            match self.client.next_job(NAMESPACE, (&self.agent.name, &self.name), index).await {
                Ok(next) => return next.job,
                Err(error) => failed = self.rests(failed, &error).await,
            }
        }
    }

    /// Counts a call that failed, and waits as an agent does before the next; answers how many failed so far.
    async fn rests(&self, failed: u32, error: &CallError) -> u32 {
        self.times.first_failure.get_or_init(|| error.to_string());
        self.times.failed_calls.fetch_add(1, Ordering::Relaxed);
        let failed = failed.saturating_add(1);
        tokio::time::sleep(delay::before_call(failed, self.agent.seed()).to_duration()).await;
        failed
    }
}

fn note(times: &Mutex<Vec<Instant>>) {
    times.lock().unwrap_or_else(PoisonError::into_inner).push(now());
}

fn job(index: u32, task: String) -> ReportedJob {
    let state = JobState::Running;
    ReportedJob {
        index,
        task,
        state,
        exit: None,
        exit_code: None,
        attempts: 1,
        started_ms: Some(1),
        ended_ms: None,
        outputs: None,
    }
}

const fn finished() -> (JobState, Option<JobExit>, Option<i32>) {
    (JobState::Finished, Some(JobExit::Complete), Some(0))
}
