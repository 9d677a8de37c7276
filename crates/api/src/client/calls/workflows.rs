//! Calls about tasks, stages and workflows.

use std::time::Duration;

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::job::Job;
use crate::v1::job_log::{EnsembleLog, JobLog, LogChunk};
use crate::v1::node::Reason;
use crate::v1::page::Page;
use crate::v1::process_log::ProcessLog;
use crate::v1::run::{NewRun, Run, UndoRun};
use crate::v1::task_list::{NextJob, TaskList, TaskListEdit};
use crate::v1::workflow::{Stage, Task, Workflow};

/// Time for the network and for a node that does not answer at once, in addition to the requested wait.
const LOG_DEADLINE: Duration = Duration::from_secs(25);

impl Client {
    /// Lists the tasks of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn tasks(&self, namespace: &str) -> Result<Page<Task>, CallError> {
        self.list(&fill(paths::TASKS, &[namespace])).await
    }

    /// Reads a task.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn task(&self, namespace: &str, task: &str) -> Result<Task, CallError> {
        self.get(&fill(paths::TASK, &[namespace, task]), DEFAULT_DEADLINE).await
    }

    /// Deletes a task.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_task(&self, namespace: &str, task: &str) -> Result<(), CallError> {
        let path = fill(paths::TASK, &[namespace, task]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists the stages of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn stages(&self, namespace: &str) -> Result<Page<Stage>, CallError> {
        self.list(&fill(paths::STAGES, &[namespace])).await
    }

    /// Reads a stage.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn stage(&self, namespace: &str, stage: &str) -> Result<Stage, CallError> {
        self.get(&fill(paths::STAGE, &[namespace, stage]), DEFAULT_DEADLINE).await
    }

    /// Deletes a stage.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_stage(&self, namespace: &str, stage: &str) -> Result<(), CallError> {
        let path = fill(paths::STAGE, &[namespace, stage]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists the workflows of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn workflows(&self, namespace: &str) -> Result<Page<Workflow>, CallError> {
        self.list(&fill(paths::WORKFLOWS, &[namespace])).await
    }

    /// Reads a workflow.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn workflow(&self, namespace: &str, workflow: &str) -> Result<Workflow, CallError> {
        self.get(&fill(paths::WORKFLOW, &[namespace, workflow]), DEFAULT_DEADLINE).await
    }

    /// Deletes a workflow.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_workflow(&self, namespace: &str, workflow: &str) -> Result<(), CallError> {
        let path = fill(paths::WORKFLOW, &[namespace, workflow]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists the runs of workflows of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn runs(&self, namespace: &str) -> Result<Page<Run>, CallError> {
        self.list(&fill(paths::RUNS, &[namespace])).await
    }

    /// Reads a run.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn run(&self, namespace: &str, run: &str) -> Result<Run, CallError> {
        self.get(&fill(paths::RUN, &[namespace, run]), DEFAULT_DEADLINE).await
    }

    /// Runs a workflow.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn start_run(&self, namespace: &str, run: &NewRun) -> Result<Run, CallError> {
        self.send(Method::POST, &fill(paths::RUNS, &[namespace]), run, DEFAULT_DEADLINE).await
    }

    /// Undoes a run; answers the run that does it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn undo_run(&self, namespace: &str, run: &str, undo: &UndoRun) -> Result<Run, CallError> {
        self.send(Method::POST, &fill(paths::RUN_UNDO, &[namespace, run]), undo, DEFAULT_DEADLINE).await
    }

    /// Deletes a run that has ended.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_run(&self, namespace: &str, run: &str) -> Result<(), CallError> {
        let path = fill(paths::RUN, &[namespace, run]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists the jobs of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn jobs(&self, namespace: &str) -> Result<Page<Job>, CallError> {
        self.list(&fill(paths::JOBS, &[namespace])).await
    }

    /// Reads the job of the task of this index of a run on a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn job(
        &self,
        namespace: &str,
        (run, node): (&str, &str),
        index: u32,
    ) -> Result<Job, CallError> {
        let path = fill(paths::JOB, &[namespace, run, node, &index.to_string()]);
        self.get(&path, DEFAULT_DEADLINE).await
    }

    /// Has a node begin the task of a run again that failed there.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn retry_job(
        &self,
        namespace: &str,
        (run, node): (&str, &str),
        reason: &str,
    ) -> Result<(), CallError> {
        let path = fill(paths::JOB_RETRY, &[namespace, run, node]);
        let because = Reason { reason: reason.to_owned() };
        self.send::<_, Nothing>(Method::POST, &path, &because, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Reads the log of a job from this byte on; waits as long for output, if there is none.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn job_log(
        &self,
        namespace: &str,
        (run, node, index): (&str, &str, u32),
        offset: u64,
        wait: Duration,
    ) -> Result<JobLog, CallError> {
        let path = fill(paths::JOB_LOG, &[namespace, run, node, &index.to_string()]);
        let path = format!("{path}?offset={offset}&wait={}ms", wait.as_millis());
        self.get(&path, wait + LOG_DEADLINE).await
    }

    /// Reads the output of the process of an entity on a node from this byte on, or its end; waits as long for output, if there is none.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn process_log(
        &self,
        namespace: &str,
        (node, entity): (&str, &str),
        offset: Option<u64>,
        wait: Duration,
    ) -> Result<ProcessLog, CallError> {
        let path = fill(paths::PROCESS_LOG, &[namespace, node, entity]);
        let offset = offset.map_or_else(String::new, |offset| format!("&offset={offset}"));
        let path = format!("{path}?wait={}ms{offset}", wait.as_millis());
        self.get(&path, wait + LOG_DEADLINE).await
    }

    /// Reads the output of what a node has of an ensemble, in the same way.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn member_log(
        &self,
        namespace: &str,
        (node, log): (&str, &EnsembleLog),
        offset: Option<u64>,
        wait: Duration,
    ) -> Result<ProcessLog, CallError> {
        let path = fill(paths::MEMBER_LOG, &[namespace, node, &log.ensemble]);
        let offset = offset.map_or_else(String::new, |offset| format!("&offset={offset}"));
        let osd = log.osd.map_or_else(String::new, |osd| format!("&osd={osd}"));
        let manager = if log.manager { "&manager=true" } else { "" };
        let path = format!("{path}?wait={}ms{offset}{osd}{manager}", wait.as_millis());
        self.get(&path, wait + LOG_DEADLINE).await
    }

    /// Sends a part of a log that the server asked for.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn send_log(&self, namespace: &str, node: &str, chunk: &LogChunk) -> Result<(), CallError> {
        let path = fill(paths::NODE_JOB_LOGS, &[namespace, node]);
        self.send::<_, Nothing>(Method::POST, &path, chunk, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Takes what a node needs to run the task of this index of a run, which is begun from then on.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn next_job(
        &self,
        namespace: &str,
        (node, run): (&str, &str),
        index: u32,
    ) -> Result<NextJob, CallError> {
        let path = fill(paths::JOB_INPUTS, &[namespace, node, run, &index.to_string()]);
        self.send(Method::POST, &path, &(), DEFAULT_DEADLINE).await
    }

    /// Reads the tasks of a run on one node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn task_list(&self, namespace: &str, (run, node): (&str, &str)) -> Result<TaskList, CallError> {
        self.get(&fill(paths::TASK_LIST, &[namespace, run, node]), DEFAULT_DEADLINE).await
    }

    /// Changes the tasks of a run on one node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn edit_task_list(
        &self,
        namespace: &str,
        (run, node): (&str, &str),
        edit: &TaskListEdit,
    ) -> Result<TaskList, CallError> {
        let path = fill(paths::TASK_LIST, &[namespace, run, node]);
        self.send(Method::POST, &path, edit, DEFAULT_DEADLINE).await
    }

    /// Lists the runs that have not ended on a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn runs_of_node(&self, namespace: &str, node: &str) -> Result<Page<Run>, CallError> {
        let node = paths::encode(node);
        self.list(&format!("{}?node={node}", fill(paths::RUNS, &[namespace]))).await
    }
}
