//! The next step of a node that carries out the run of a workflow: its tasks in order, each begun at most once unless it is
//! idempotent or says itself that it is to run again. Decides; never acts.

mod complete;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::delay;
use crate::records::job::{self, Job, JobExit};
use crate::words::name::TaskName;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// Most times that one run may reboot the machine, or power it off.
pub const MAX_BOOTS: u32 = 16;

/// What an agent remembers about a run across restarts: on disk before each job begins and after it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkMemory {
    /// The version that the run is, as it was assigned.
    pub version: Version,
    /// Number of tasks that are complete: the index of the one that is next.
    pub complete: u32,
    /// The job of the task that is next; `None` before it is created.
    pub job: Option<JobMemory>,
    /// Times that the run ended a boot of the machine.
    pub boots: u32,
    /// The jobs so far, each index once, for reports.
    pub jobs: Vec<Job>,
}

/// What an agent remembers about the execution of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobMemory {
    /// The task.
    pub task: TaskName,
    /// Whether it may run again when nobody knows how far it came.
    pub idempotent: bool,
    /// Times that it was begun.
    pub attempts: u32,
    /// What became of it.
    pub state: JobState,
}

/// What became of a job that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Its inputs are on disk; nothing has begun, or it is to begin again.
    Created,
    /// A step of it runs, or the agent ended while one did.
    Running,
    /// It is to begin again at this time, by the agent's clock.
    Incomplete(Timestamp),
    /// The run goes on in another life of the agent.
    Stopped {
        /// Whether the job is to begin again; it is complete otherwise.
        again: bool,
    },
    /// The run goes on in another boot of the machine than this one.
    Boot {
        /// Identity of the boot that ends.
        boot: String,
        /// How it ends.
        how: BootEnd,
        /// Whether the job is to begin again; it is complete otherwise.
        again: bool,
    },
}

/// How a boot of a machine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootEnd {
    /// The machine reboots.
    Reboot,
    /// The machine is powered off.
    PowerOff,
}

/// How a script ended, by its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptExit {
    /// 0: the step is complete.
    Complete,
    /// 128: the task is to begin again.
    Incomplete,
    /// 16 or 144: the run is to go on in another life of the agent.
    Stop {
        /// Whether the task is to begin again then.
        again: bool,
    },
    /// 32, 64, 160 or 192: the run is to go on in another boot.
    Boot {
        /// How this one ends.
        how: BootEnd,
        /// Whether the task is to begin again then.
        again: bool,
    },
    /// Any other code.
    Failed(i32),
}

impl ScriptExit {
    /// The meaning of an exit code.
    #[must_use]
    pub const fn of(code: i32) -> Self {
        match code {
            0 => Self::Complete,
            128 => Self::Incomplete,
            16 | 144 => Self::Stop { again: code == 144 },
            32 | 160 => Self::Boot { how: BootEnd::PowerOff, again: code == 160 },
            64 | 192 => Self::Boot { how: BootEnd::Reboot, again: code == 192 },
            other => Self::Failed(other),
        }
    }

    /// Whether the task is complete with it.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        match self {
            Self::Complete | Self::Stop { again: false } | Self::Boot { again: false, .. } => true,
            Self::Incomplete
            | Self::Stop { again: true }
            | Self::Boot { again: true, .. }
            | Self::Failed(_) => false,
        }
    }

    /// The exit code that has this meaning.
    #[must_use]
    pub const fn code(self) -> Option<i32> {
        Some(match self {
            Self::Complete => 0,
            Self::Incomplete => 128,
            Self::Stop { again: false } => 16,
            Self::Stop { again: true } => 144,
            Self::Boot { how: BootEnd::PowerOff, again: false } => 32,
            Self::Boot { how: BootEnd::PowerOff, again: true } => 160,
            Self::Boot { how: BootEnd::Reboot, again: false } => 64,
            Self::Boot { how: BootEnd::Reboot, again: true } => 192,
            Self::Failed(code) => code,
        })
    }
}

/// The next step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkStep {
    /// Take the inputs of the task of this index, store them, and remember its job; if no such task follows, the run is complete. The
    /// control plane knows: tasks may have been added meanwhile.
    Create(u32),
    /// Begin the job of the task of this index, whose inputs are on disk.
    Begin(u32),
    /// Do nothing until this time.
    WaitUntil(Timestamp),
    /// Wait until the agent starts again, for this reason.
    WaitForStart(String),
    /// End the boot of the machine, and wait.
    EndBoot(BootEnd),
    /// The run has failed, for this reason.
    Fail(String),
}

impl WorkMemory {
    /// The memory of a run before its first task.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self { version, complete: 0, job: None, boots: 0, jobs: Vec::new() }
    }

    /// The memory of a run of which this many tasks are complete elsewhere.
    #[must_use]
    pub fn after(version: Version, complete: u32) -> Self {
        Self { complete, ..Self::new(version) }
    }

    /// The next step of a run, in this boot of the machine.
    #[must_use]
    pub fn next(&self, boot: &str, now: Timestamp) -> WorkStep {
        let Some(job) = &self.job else { return WorkStep::Create(self.complete) };
        match &job.state {
            JobState::Created => WorkStep::Begin(self.complete),
            JobState::Incomplete(at) if *at > now => WorkStep::WaitUntil(*at),
            JobState::Incomplete(_) => WorkStep::Begin(self.complete),
            // The agent that remembers this is not the one that runs it.
            JobState::Running => WorkStep::Fail(lost(&job.task)),
            JobState::Stopped { .. } => WorkStep::WaitForStart(format!(
                "task {} stopped the run; it goes on when the agent starts again",
                job.task
            )),
            JobState::Boot { boot: ended, how, .. } if ended == boot => {
                if self.boots > MAX_BOOTS {
                    let reason = format!(
                        "task {} ended {MAX_BOOTS} boots of the machine, which is the most for one run",
                        job.task
                    );
                    WorkStep::Fail(reason)
                } else {
                    WorkStep::EndBoot(*how)
                }
            }
            // It is another boot: `started` goes on from here.
            JobState::Boot { .. } => WorkStep::Begin(self.complete),
        }
    }

    /// Whether a job of the run was ever begun on this node: other runs that fail here do not hold it then.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.complete > 0 || self.jobs.iter().any(|job| job.attempts > 0)
    }

    /// How the run wants this boot of the machine to end, if it does: nothing else is to begin before.
    #[must_use]
    pub fn boot_to_end(&self, boot: &str) -> Option<BootEnd> {
        match self.job.as_ref().map(|job| &job.state) {
            Some(JobState::Boot { boot: ended, how, .. }) if ended == boot => Some(*how),
            Some(
                JobState::Boot { .. }
                | JobState::Created
                | JobState::Running
                | JobState::Incomplete(_)
                | JobState::Stopped { .. },
            )
            | None => None,
        }
    }

    /// Called when an agent starts, in this boot of the machine: what waited for that goes on, and a job that was running is begun
    /// again if it may be.
    pub fn started(&mut self, boot: &str) {
        let Some(job) = &mut self.job else { return };
        match &job.state {
            JobState::Running if job.idempotent => job.state = JobState::Created,
            // Its time is by the clock of the agent before, which may have been another one.
            JobState::Incomplete(_) => job.state = JobState::Created,
            JobState::Stopped { again: true } => job.state = JobState::Created,
            JobState::Stopped { again: false } => self.advances(),
            JobState::Boot { boot: ended, again, .. } if ended != boot => {
                if *again {
                    job.state = JobState::Created;
                } else {
                    self.advances();
                }
            }
            JobState::Created | JobState::Running | JobState::Boot { .. } => {}
        }
    }

    /// Called when the inputs of the next task are on disk.
    pub fn created(&mut self, task: TaskName, idempotent: bool) {
        let index = self.complete;
        match self.jobs.iter_mut().find(|job| job.index == index) {
            Some(known) => *known = Job { attempts: known.attempts, ..Job::created(index, task.clone()) },
            None => self.jobs.push(Job::created(index, task.clone())),
        }
        self.job = Some(JobMemory { task, idempotent, attempts: 0, state: JobState::Created });
    }

    /// Called before a job begins.
    pub fn begins(&mut self, now: Timestamp) {
        if let Some(job) = &mut self.job {
            job.attempts = job.attempts.saturating_add(1);
            job.state = JobState::Running;
        }
        if let Some(job) = self.present() {
            job.attempts = job.attempts.saturating_add(1);
            (job.state, job.exit, job.exit_code) = (job::JobState::Running, None, None);
            (job.started, job.ended, job.outputs) = (Some(now), None, None);
        }
    }

    /// Called when the task that is next is complete.
    pub fn completes(&mut self, now: Timestamp) {
        self.ends((job::JobState::Finished, JobExit::Complete), ScriptExit::Complete.code(), now);
        self.advances();
    }

    /// Called when the condition of the task that is next does not hold: it is not begun, and the next one follows.
    pub fn skips(&mut self, now: Timestamp) {
        if let Some(job) = self.present() {
            (job.state, job.ended) = (job::JobState::Skipped, Some(now));
        }
        self.advances();
    }

    /// Called when the task that is next failed; `code` is its exit code, if it has one.
    pub fn fails(&mut self, code: Option<i32>, now: Timestamp) {
        self.ends((job::JobState::Failed, JobExit::Failed), code, now);
    }

    /// Called when the run fails without an end of a job: one that was running is lost.
    pub fn gives_up(&mut self) {
        if let Some(job) = self.present().filter(|job| job.state == job::JobState::Running) {
            job.state = job::JobState::Lost;
        }
    }

    /// Called when a job ended that neither completed nor failed.
    pub fn pauses(&mut self, exit: ScriptExit, boot: &str, now: Timestamp, seed: u64) {
        let Some(job) = &mut self.job else { return };
        let (again, how) = match exit {
            ScriptExit::Incomplete => {
                job.state = JobState::Incomplete(now.plus(delay::after(job.attempts, seed)));
                (true, JobExit::Complete)
            }
            ScriptExit::Stop { again } => {
                job.state = JobState::Stopped { again };
                (again, JobExit::Stop)
            }
            ScriptExit::Boot { how, again } => {
                self.boots = self.boots.saturating_add(1);
                job.state = JobState::Boot { boot: boot.to_string(), how, again };
                (again, how.into())
            }
            ScriptExit::Complete | ScriptExit::Failed(_) => return,
        };
        let state = if again { job::JobState::Incomplete } else { job::JobState::Finished };
        self.ends((state, how), exit.code(), now);
    }

    /// Called when a person wants the task that failed to be run again: with fresh inputs, and the boots of a new run.
    pub fn retried(&mut self) {
        (self.job, self.boots) = (None, 0);
    }

    /// Called when the task that is next failed, and is to begin again by itself.
    pub fn begins_again(&mut self, code: Option<i32>, now: Timestamp, seed: u64) {
        if let Some(job) = &mut self.job {
            job.state = JobState::Incomplete(now.plus(delay::after(job.attempts, seed)));
        }
        self.ends((job::JobState::Incomplete, JobExit::Failed), code, now);
    }

    /// Goes on with the next task.
    fn advances(&mut self) {
        self.complete = self.complete.saturating_add(1);
        self.job = None;
    }

    /// The job of the task that is next, as it is reported.
    fn present(&mut self) -> Option<&mut Job> {
        let index = self.complete;
        self.jobs.iter_mut().find(|job| job.index == index)
    }

    fn ends(&mut self, (state, exit): (job::JobState, JobExit), code: Option<i32>, now: Timestamp) {
        if let Some(job) = self.present() {
            (job.state, job.exit, job.exit_code, job.ended) = (state, Some(exit), code, Some(now));
        }
    }
}

impl From<BootEnd> for JobExit {
    fn from(how: BootEnd) -> Self {
        match how {
            BootEnd::Reboot => Self::Reboot,
            BootEnd::PowerOff => Self::PowerOff,
        }
    }
}

/// Why a run failed whose job was running when its agent ended.
fn lost(task: &TaskName) -> String {
    format!(
        "task {task} is lost: the agent ended while it ran, and it is not marked as idempotent; not run again"
    )
}

#[cfg(test)]
mod tests;
