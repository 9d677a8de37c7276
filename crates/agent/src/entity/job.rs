//! One job: the steps of a task from the inputs in the ledger, in a working directory of its own that is removed afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_api::v1::run::JobInputs;
use bellwether_api::v1::workflow::TaskStep;
use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::local::work::{ScriptExit, WorkMemory};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::report::RunningStep;
use bellwether_core::words::time::Span;
use minijinja::value::Serde;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::job_environment::{JobEnvironment, OUTPUTS};
use super::job_outputs;
use super::rest::{HOLD, NextStep};
use super::task::EntityTask;
use crate::apply::exec::CommandExit;
use crate::apply::guarded::{JobGuard, ScriptEnd};
use crate::config::recipe::Command;
use crate::disk;
use crate::ledger::FrozenInputs;
use crate::renderer::draw;

/// Default timeout of a task.
const DEFAULT_TIMEOUT: Span = Span::from_secs(60 * 60);

/// Default interpreter of a script.
const SHELL: [&str; 2] = ["/bin/sh", "-eu"];

/// Mode of a file of a task that says none.
const FILE_MODE: u32 = 0o644;

/// Mode of a script.
const SCRIPT_MODE: u32 = 0o700;

/// Time for what hosts a logical node to see that its lease is over, after the guard of a job has: it looks every second.
const LEASE_SEEN: Duration = Duration::from_secs(5);

/// How a job ended.
enum JobEnd {
    /// By the exit code of a script, or after its last step.
    Exit(ScriptExit, Evidence),
    /// The run was aborted.
    Cancelled,
    /// The agent stops.
    AgentStops,
}

impl EntityTask {
    /// Runs the job of the task of this index, and remembers how it ended.
    pub(super) async fn run_job(&mut self, stored: WorkMemory, index: u32, boot: &str) -> NextStep {
        let frozen = match self.context.ledger.runs().inputs(&self.name).await {
            Ok(Some(frozen)) if frozen.inputs.index == index => frozen,
            // The inputs of a job are on disk before it is remembered.
            Ok(_) => return self.hold(format!("find the inputs of task {index} of this run")).await,
            Err(error) => return self.hold(error.to_string()).await,
        };
        let turn = match self.turn_of_run().await {
            Ok(turn) => turn,
            Err(next) => return next,
        };
        let mut stored = match self.unless_skipped(&frozen, stored).await {
            Ok(stored) => stored,
            Err(next) => return next,
        };
        let Some(_running) = self.context.steps.begin() else { return self.rest(None).await };
        let run_name = match self.begin_job(&mut stored).await {
            Ok(run_name) => run_name,
            Err(reason) => return self.hold(reason).await,
        };
        let (exit, evidence) = match self.steps(&frozen, &run_name, &mut stored).await {
            JobEnd::Exit(exit, evidence) => (Some(exit), evidence),
            JobEnd::Cancelled => (None, Evidence::default()),
            JobEnd::AgentStops => return NextStep::Stop,
        };
        (self.entry.run, self.running_step) = (None, None);
        let inputs = frozen.inputs;
        let Some(exit) = exit else {
            tracing::info!(run = %self.name, task = inputs.task.task, "cancelled: the run was aborted");
            return NextStep::Observe;
        };
        let now = self.now();
        match exit {
            ScriptExit::Complete => stored.completes(now),
            ScriptExit::Failed(_) if may_begin_again(&inputs, &stored) => {
                tracing::warn!(run = %self.name, reason = evidence.summary, "failed; the task begins again");
                let seed = self.seed();
                stored.begins_again(evidence.exit_code, now, seed);
            }
            ScriptExit::Failed(_) => {
                let code = evidence.exit_code;
                self.note_work(stored.clone(), |memory| memory.fails(code, now)).await;
                let outcome = StepOutcome::Failed(evidence);
                let version = stored.version.clone();
                self.keep_log(ApplyProgress::Dynamic, &version, &run_name, &outcome).await;
                self.end_run(outcome);
                return NextStep::Observe;
            }
            ScriptExit::Incomplete | ScriptExit::Stop { .. } | ScriptExit::Boot { .. } => {
                tracing::info!(run = %self.name, task = inputs.task.task, ?exit, "the task says how the run goes on");
                let seed = self.seed();
                stored.pauses(exit, boot, now, seed);
                // Before another job or action has its turn: it would be lost.
                if let Some(how) = stored.boot_to_end(boot) {
                    self.hold_boot(turn, how);
                }
            }
        }
        // What was seen of its end is kept until it can be written.
        self.stored_work = Some(stored);
        self.work_is_unkept = true;
        NextStep::Observe
    }

    /// Writes that the job begins; the name of this attempt.
    async fn begin_job(&mut self, stored: &mut WorkMemory) -> Result<String, String> {
        let run_name = self.next_run();
        self.entry.run = Some(run_name.clone());
        self.keep().await?;
        // The last write before it begins: a job that is running in the ledger, and is not, would be lost.
        stored.begins(self.now());
        self.keep_work(stored.clone()).await?;
        self.recent.clear();
        Ok(run_name)
    }

    /// Waits for the turn of a job, and looks then whether its run may begin; what follows instead if it may not.
    async fn turn_of_run(&mut self) -> Result<OwnedSemaphorePermit, NextStep> {
        let turn = self.turn_unless_withdrawn().await?;
        if let Some(reason) = self.held_run() {
            drop(turn);
            return Err(self.rest_held(reason).await);
        }
        self.begins_here();
        Ok(turn)
    }

    /// Waits for the turn of a job; what follows instead if its run is aborted, or the agent stops.
    async fn turn_unless_withdrawn(&mut self) -> Result<OwnedSemaphorePermit, NextStep> {
        let withdrawn = self.withdrawn();
        // Both arms only wait.
        tokio::select! {
            biased;
            () = withdrawn => Err(NextStep::Observe),
            turn = self.turn() => turn.ok_or(NextStep::Stop),
        }
    }

    /// Does the steps of the task in a directory of its own, and ends what they left running: it is part of the task, and on a logical
    /// node nothing may go on after this.
    async fn steps(&mut self, frozen: &FrozenInputs, run_name: &str, stored: &mut WorkMemory) -> JobEnd {
        let inputs = &frozen.inputs;
        let dir = self.context.work.join(self.name.as_str());
        let environment = match self.prepare(&dir, inputs).await {
            Ok(environment) => environment,
            Err(error) => return failed(format!("cannot prepare {}: {error}", dir.display())),
        };
        let lease = self.context.lease.clone();
        let end = match JobGuard::start(&dir, lease, &self.context.tasks) {
            Ok(mut guard) => {
                let end =
                    self.steps_in_order(frozen, &mut guard, (&dir, &environment), run_name.to_owned()).await;
                guard.end(self.job_log()).await;
                // Its guard may have been killed. What cannot be looked at may go on, and the next job must not begin beside it.
                while let Err(reason) = self.end_job(run_name.to_owned()).await {
                    tracing::error!(run = %self.name, "cannot {reason}; trying again");
                    tokio::time::sleep(HOLD).await;
                }
                self.with_outputs(end, inputs, (&dir, stored)).await
            }
            Err(error) => failed(format!("cannot start the guard of the job: {error}")),
        };
        let removed = self.context.tasks.spawn_blocking(move || fs::remove_dir_all(&dir)).await;
        if let Err(error) = removed.map_err(io::Error::other).flatten() {
            tracing::warn!(run = %self.name, %error, "cannot remove the working directory of a job");
        }
        end
    }

    /// How a job ended, after its outputs were read: one that is complete but for them has failed.
    async fn with_outputs(
        &self,
        end: JobEnd,
        inputs: &JobInputs,
        (dir, stored): (&Path, &mut WorkMemory),
    ) -> JobEnd {
        if !matches!(&end, JobEnd::Exit(exit, _) if exit.is_complete()) {
            return end;
        }
        let path = dir.join(OUTPUTS);
        let read = self.context.tasks.spawn_blocking(move || job_outputs::read(&path)).await;
        let read = read.unwrap_or_else(|error| Err(format!("cannot read its outputs: {error}")));
        let kept = read.and_then(|outputs| match outputs {
            Some(outputs) => stored.writes(outputs.into()).map_err(|error| error.to_string()),
            None => Ok(()),
        });
        match kept {
            Ok(()) => end,
            Err(reason) => failed(format!(
                "task {} ({} of {}): {reason}",
                inputs.task.task,
                inputs.index.saturating_add(1),
                inputs.tasks
            )),
        }
    }

    /// Does the steps of the task in order, until one says something else than that it is complete.
    async fn steps_in_order(
        &mut self,
        frozen: &FrozenInputs,
        guard: &mut JobGuard,
        (dir, environment): (&Path, &JobEnvironment),
        run_name: String,
    ) -> JobEnd {
        let inputs = &frozen.inputs;
        let timeout = inputs.spec.timeout.as_deref().and_then(|text| text.parse().ok());
        let timeout: Span = timeout.unwrap_or(DEFAULT_TIMEOUT);
        let ends = Instant::now() + timeout.to_duration();
        for step in &inputs.spec.steps {
            let line = format!(
                "task {} ({} of {}), step {}",
                inputs.task.task,
                inputs.index.saturating_add(1),
                inputs.tasks,
                step.name
            );
            self.running_step = Some(RunningStep::new("job", &line, self.now(), timeout));
            self.report(&AgentActivity::Step(ApplyProgress::Dynamic));
            let written = self.write_step(frozen, step, (dir, &line)).await;
            let end = match written {
                Ok(None) => continue,
                Ok(Some(argv)) => {
                    let command =
                        Command { argv, workdir: dir.to_owned(), env: environment.variables(), stdin: None };
                    let left = ends.saturating_duration_since(Instant::now());
                    self.script(guard, &command, &line, (&run_name, left)).await
                }
                Err(end) => end,
            };
            if !matches!(end, JobEnd::Exit(ScriptExit::Complete, _)) {
                return end;
            }
        }
        JobEnd::Exit(ScriptExit::Complete, Evidence::default())
    }

    /// Makes the working directory of a job, and its environment.
    async fn prepare(&self, dir: &Path, inputs: &JobInputs) -> io::Result<JobEnvironment> {
        let made = dir.to_owned();
        let prepared = self.context.tasks.spawn_blocking(move || {
            match fs::remove_dir_all(&made) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            disk::private_dir(&made)
        });
        prepared.await.map_err(io::Error::other).flatten()?;
        JobEnvironment::open(&self.context, inputs, dir).await
    }

    /// Writes the file of a step, or its script; answers how that is run.
    async fn write_step(
        &self,
        frozen: &FrozenInputs,
        step: &TaskStep,
        (dir, line): (&Path, &str),
    ) -> Result<Option<Vec<String>>, JobEnd> {
        let text =
            step.script.as_ref().map(|script| &script.text).or(step.file.as_ref().map(|file| &file.text));
        let text = text.ok_or_else(|| failed(format!("{line}: it has neither a script nor a file")))?;
        let variables = minijinja::Value::from(Serde(self.variables(frozen)));
        let (name, source) = (step.name.clone(), text.clone());
        let drawn = move || draw(&name, &source, variables, UNDEFINED);
        let rendered = disk::off_runtime(&self.context.tasks, drawn)
            .await
            .map_err(|reason| failed(format!("task {}: {reason}", frozen.inputs.task.task)))?;
        let (path, mode) = match &step.file {
            Some(file) => {
                let mode = file.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok());
                (dir.join(&file.path), mode.unwrap_or(FILE_MODE))
            }
            None => (dir.join(&step.name), SCRIPT_MODE),
        };
        let written = self.write(path.clone(), rendered, mode).await;
        written.map_err(|error| failed(format!("{line}: cannot write {}: {error}", path.display())))?;
        let interpreter = step.script.as_ref().map(|script| script.interpreter.clone());
        Ok(interpreter.map(|interpreter| {
            let interpreter =
                if interpreter.is_empty() { SHELL.map(str::to_owned).to_vec() } else { interpreter };
            interpreter.into_iter().chain([path.display().to_string()]).collect()
        }))
    }

    async fn script(
        &mut self,
        guard: &mut JobGuard,
        command: &Command,
        line: &str,
        (run_name, left): (&str, Duration),
    ) -> JobEnd {
        let version = self.entry.memory.ran.as_ref().map(|ran| ran.version.clone());
        let Some(version) = version else { return JobEnd::AgentStops };
        let (facts, mut log) = (self.facts(&version, run_name.to_owned()), self.job_log());
        let token = self.context.tasks.token();
        // If the agent ends here, the job is in its ledger: the next agent runs it again only if it may. Its guard ends it.
        let ended = tokio::select! {
            ended = guard.run(command, &facts, left, &mut log) => ended,
            () = token.cancelled() => return JobEnd::AgentStops,
            () = self.withdrawn() => return JobEnd::Cancelled,
        };
        let ended = match ended {
            ScriptEnd::Ended(ended) => ended,
            ScriptEnd::WithoutGuard(how) => return failed(format!("{line}: {how}")),
            ScriptEnd::LeaseOver => {
                // What hosts this node knows it by the same clock.
                let stops = tokio::time::timeout(LEASE_SEEN, token.cancelled()).await;
                return match stops {
                    Ok(()) => JobEnd::AgentStops,
                    Err(_) => failed(format!("{line}: the lease of this logical node was over")),
                };
            }
        };
        let exit = match &ended.exit {
            CommandExit::Success => ScriptExit::Complete,
            other @ (CommandExit::NotYet | CommandExit::Code(_)) => {
                other.code().map_or(ScriptExit::Failed(-1), ScriptExit::of)
            }
            CommandExit::Signal(_) | CommandExit::TimedOut(_) | CommandExit::NotStarted(_) => {
                ScriptExit::Failed(-1)
            }
        };
        let summary = format!("{line}: {}", ended.exit);
        let evidence =
            Evidence { summary, exit_code: ended.exit.code(), tail: ended.tail, failing_checks: Vec::new() };
        JobEnd::Exit(exit, evidence)
    }

    /// Writes a file of a job, complete or not at all.
    async fn write(&self, path: PathBuf, text: String, mode: u32) -> io::Result<()> {
        let written = self.context.tasks.spawn_blocking(move || {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".new");
            let new = path.with_file_name(name);
            fs::write(&new, text)?;
            fs::set_permissions(&new, fs::Permissions::from_mode(mode))?;
            fs::rename(&new, &path)
        });
        written.await.map_err(io::Error::other).flatten()
    }
}

/// Whether a task that failed begins again by itself.
fn may_begin_again(inputs: &JobInputs, stored: &WorkMemory) -> bool {
    let attempts = stored.job.as_ref().map_or(0, |job| job.attempts);
    inputs.spec.idempotent && inputs.spec.retry.as_ref().is_some_and(|retry| attempts < retry.attempts)
}

/// The reason given for an undefined variable.
const UNDEFINED: &str = "no level of params has it, and no task before this one wrote it; see bellwether param explain NODE, and job get RUN/NODE/INDEX";

fn failed(summary: String) -> JobEnd {
    JobEnd::Exit(ScriptExit::Failed(-1), Evidence { summary, ..Evidence::default() })
}
