//! Runs of workflows in the ledger: how far each is, and the inputs of its present job, in a directory of its own that is removed
//! with the run.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bellwether_api::v1::job::ReportedJob;
use bellwether_api::v1::run::JobInputs;
use bellwether_core::local::work::{BootEnd, JobMemory, JobState, WorkMemory};
use bellwether_core::words::name::EntityName;
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;
use bellwether_rt::tasks::Tasks;
use serde::{Deserialize, Serialize};

use super::error::{LedgerError, damaged, file, read};
use super::identity;
use crate::disk;
use crate::facts::MachineFacts;

/// The schema version written, and the newest one read.
const SCHEMA: u32 = 1;

/// The directory with an empty file for each run that began here and was forgotten.
const FORGOTTEN: &str = "forgotten";

/// Most of these files: servers keep 200 runs of a node, and a backup is rarely older than as many more.
const MOST_FORGOTTEN: usize = 1000;

/// What a job is made from, as it was when the job was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrozenInputs {
    /// What the control plane answered.
    pub(crate) inputs: JobInputs,
    /// The facts of this machine; none on a logical node.
    pub(crate) facts: MachineFacts,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkFile {
    schema: u32,
    version: String,
    /// Number of tasks, in what agents wrote that did not ask for changes of the list. Ignored.
    #[serde(default, rename = "tasks", skip_serializing)]
    _tasks: Option<u32>,
    complete: u32,
    boots: u32,
    job: Option<JobFile>,
    /// The jobs so far, as they are reported.
    #[serde(default)]
    jobs: Vec<ReportedJob>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    task: String,
    idempotent: bool,
    attempts: u32,
    state: StateFile,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
enum StateFile {
    Created,
    Running,
    Incomplete { at_ms: u64 },
    Stopped { again: bool },
    Reboot { boot: String, again: bool },
    PowerOff { boot: String, again: bool },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputsFile {
    schema: u32,
    inputs: JobInputs,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    facts: MachineFacts,
}

/// The runs in a ledger.
#[derive(Debug, Clone)]
pub(crate) struct RunStore {
    dir: PathBuf,
    tasks: Tasks,
}

impl RunStore {
    /// The runs in the ledger of this directory.
    pub(super) fn new(dir: &Path, tasks: &Tasks) -> Self {
        Self { dir: dir.to_owned(), tasks: tasks.clone() }
    }

    fn run_dir(&self, run: &EntityName) -> PathBuf {
        self.dir.join("runs").join(run.as_str())
    }

    /// What is stored of a run; `None` before its first task.
    pub(crate) async fn work(&self, run: &EntityName) -> Result<Option<WorkMemory>, LedgerError> {
        let path = self.run_dir(run).join("work.json");
        let Some(text) = self.off(path.clone(), read).await? else { return Ok(None) };
        work(&text).map(Some).map_err(|reason| damaged(&path, reason))
    }

    /// Stores how far a run is.
    pub(crate) async fn keep_work(&self, run: &EntityName, stored: &WorkMemory) -> Result<(), LedgerError> {
        let path = self.run_dir(run).join("work.json");
        self.keep_in_dir(path, &shape(stored)).await
    }

    /// The inputs of the present job of a run.
    pub(crate) async fn inputs(&self, run: &EntityName) -> Result<Option<FrozenInputs>, LedgerError> {
        let path = self.run_dir(run).join("job.json");
        let Some(text) = self.off(path.clone(), read).await? else { return Ok(None) };
        let form: InputsFile =
            serde_json::from_str(&text).map_err(|error| damaged(&path, error.to_string()))?;
        if form.schema != SCHEMA {
            return Err(damaged(&path, format!("schema {} is not known", form.schema)));
        }
        Ok(Some(FrozenInputs { inputs: form.inputs, facts: form.facts }))
    }

    /// Stores the inputs of a job, before it begins.
    pub(crate) async fn keep_inputs(
        &self,
        run: &EntityName,
        frozen: &FrozenInputs,
    ) -> Result<(), LedgerError> {
        let path = self.run_dir(run).join("job.json");
        self.keep_in_dir(
            path,
            &InputsFile { schema: SCHEMA, inputs: frozen.inputs.clone(), facts: frozen.facts.clone() },
        )
        .await
    }

    /// Whether a run was forgotten here that had begun.
    pub(crate) async fn has_forgotten(&self, run: &EntityName) -> Result<bool, LedgerError> {
        let path = self.dir.join(FORGOTTEN).join(run.as_str());
        self.off(path, |path| path.try_exists().map_err(|source| file("read", path, source))).await
    }

    /// Removes everything of a run that this node has no longer, but that it had begun.
    pub(crate) async fn forget(&self, run: &EntityName, had_begun: bool) -> Result<(), LedgerError> {
        let forgotten = had_begun.then(|| self.dir.join(FORGOTTEN).join(run.as_str()));
        let (dir, begun) = (self.run_dir(run), self.dir.join(identity::BEGUN).join(run.as_str()));
        let entry = self.dir.join("entities").join(format!("{run}.json"));
        self.off(entry, move |entry| {
            if let Some(forgotten) = forgotten {
                remember(&forgotten)?;
            }
            // The mark first: it says that the entry must be there.
            disk::remove(&begun).map_err(|source| file("remove", &begun, source))?;
            disk::remove(entry).map_err(|source| file("remove", entry, source))?;
            match std::fs::remove_dir_all(&dir) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => Err(file("remove", &dir, source)),
                Ok(()) | Err(_) => Ok(()),
            }
        })
        .await
    }

    async fn keep_in_dir<T: Serialize>(&self, path: PathBuf, form: &T) -> Result<(), LedgerError> {
        let text = serde_json::to_string(form).map_err(|error| damaged(&path, error.to_string()))?;
        self.off(path, move |path| {
            if let Some(dir) = path.parent() {
                disk::private_dir(dir).map_err(|source| file("create", dir, source))?;
            }
            disk::replace(path, &text).map_err(|source| file("write", path, source))
        })
        .await
    }

    /// Touches a file on a thread for that.
    async fn off<T: Send + 'static>(
        &self,
        path: PathBuf,
        work: impl FnOnce(&Path) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let at = path.clone();
        let done = self.tasks.spawn_blocking(move || work(&path)).await;
        done.unwrap_or_else(|error| Err(file("use", &at, io::Error::other(error))))
    }
}

/// Leaves an empty file for a run that is forgotten: a control plane that was restored from a backup may assign it again. The oldest go
/// when there are too many.
fn remember(run: &Path) -> Result<(), LedgerError> {
    let Some(dir) = run.parent() else { return Ok(()) };
    disk::private_dir(dir).map_err(|source| file("create", dir, source))?;
    disk::replace(run, "").map_err(|source| file("write", run, source))?;
    let reading = |source| file("read", dir, source);
    let entries: Vec<_> = std::fs::read_dir(dir).and_then(Iterator::collect).map_err(reading)?;
    let aged = |entry: std::fs::DirEntry| Ok((entry.metadata()?.modified()?, entry.path()));
    let mut marks: Vec<(SystemTime, PathBuf)> =
        entries.into_iter().map(aged).collect::<io::Result<_>>().map_err(reading)?;
    marks.sort();
    let many = marks.len().saturating_sub(MOST_FORGOTTEN);
    for (_, mark) in marks.into_iter().filter(|(_, mark)| mark != run).take(many) {
        disk::remove(&mark).map_err(|source| file("remove", &mark, source))?;
    }
    Ok(())
}

fn work(text: &str) -> Result<WorkMemory, String> {
    let form: WorkFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if form.schema != SCHEMA {
        return Err(format!("schema {} is not known", form.schema));
    }
    let job = form.job.map(|job| {
        Ok::<_, String>(JobMemory {
            task: job.task.parse().map_err(|error| format!("{error}"))?,
            idempotent: job.idempotent,
            attempts: job.attempts,
            state: match job.state {
                StateFile::Created => JobState::Created,
                StateFile::Running => JobState::Running,
                StateFile::Incomplete { at_ms } => JobState::Incomplete(Timestamp::from_millis(at_ms)),
                StateFile::Stopped { again } => JobState::Stopped { again },
                StateFile::Reboot { boot, again } => JobState::Boot { boot, how: BootEnd::Reboot, again },
                StateFile::PowerOff { boot, again } => JobState::Boot { boot, how: BootEnd::PowerOff, again },
            },
        })
    });
    let jobs = form.jobs.into_iter().map(|job| job.try_into().map_err(|error| format!("{error}")));
    Ok(WorkMemory {
        version: Version::parse(&form.version).map_err(|error| error.to_string())?,
        complete: form.complete,
        job: job.transpose()?,
        boots: form.boots,
        jobs: jobs.collect::<Result<_, String>>()?,
    })
}

fn shape(stored: &WorkMemory) -> WorkFile {
    let WorkMemory { version, complete, job, boots, jobs } = stored;
    let job = job.as_ref().map(|job| JobFile {
        task: job.task.to_string(),
        idempotent: job.idempotent,
        attempts: job.attempts,
        state: match &job.state {
            JobState::Created => StateFile::Created,
            JobState::Running => StateFile::Running,
            JobState::Incomplete(at) => StateFile::Incomplete { at_ms: at.as_millis() },
            JobState::Stopped { again } => StateFile::Stopped { again: *again },
            JobState::Boot { boot, how: BootEnd::Reboot, again } => {
                StateFile::Reboot { boot: boot.clone(), again: *again }
            }
            JobState::Boot { boot, how: BootEnd::PowerOff, again } => {
                StateFile::PowerOff { boot: boot.clone(), again: *again }
            }
        },
    });
    WorkFile {
        schema: SCHEMA,
        version: version.to_string(),
        _tasks: None,
        complete: *complete,
        boots: *boots,
        job,
        jobs: jobs.iter().map(Into::into).collect(),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::job::Job;
    use bellwether_core::words::name::TaskName;

    use super::*;

    #[test]
    fn every_state_of_a_job_survives_the_disk() {
        let at = Timestamp::from_millis(7);
        let boot = |how, again| JobState::Boot { boot: "b".to_owned(), how, again };
        let states = [
            JobState::Created,
            JobState::Running,
            JobState::Incomplete(at),
            JobState::Stopped { again: true },
            boot(BootEnd::Reboot, false),
            boot(BootEnd::PowerOff, true),
        ];
        for state in states {
            let task: TaskName = "install-db".parse().unwrap();
            let told = Job { attempts: 2, ..Job::created(2, task.clone()) };
            let job = Some(JobMemory { task, idempotent: true, attempts: 3, state });
            let version = Version::parse("install@7").unwrap();
            let stored = WorkMemory { version, complete: 2, job, boots: 1, jobs: vec![told] };
            let text = serde_json::to_string(&shape(&stored)).unwrap();
            assert_eq!(work(&text).unwrap(), stored);
        }
    }
}
