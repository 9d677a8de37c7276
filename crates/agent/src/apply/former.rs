//! Processes of a former agent of this data directory, of which the ledger was lost: nobody supervises them any more, and they hold
//! the ports of their successors. They are found by the names in their environment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::words::name::{EntityName, LedgerId};
use bellwether_rt::observed::TimeLimit;
use bellwether_rt::tasks::Tasks;
use rustix::process::{Pid, Signal, kill_process_group};

use super::process_stat::{group_of, seen};
use crate::disk;

/// The variable with the data directory of the agent that started a process.
const DATA_DIR: &str = "BELLWETHER_DATA_DIR";

/// The variable with the ledger of the agent that started a process.
const LEDGER: &str = "BELLWETHER_LEDGER";

/// The variable with the entity of a process.
const ENTITY: &str = "BELLWETHER_ENTITY";

/// Interval between two looks at processes that are to end: each reads all of `/proc`.
const LOOK: Duration = Duration::from_millis(50);

/// Time for the kernel to end a process after SIGKILL; one that takes longer hangs in a system call.
const KILLED: Duration = Duration::from_secs(5);

/// The agent as its processes name it. Cheap enough to clone per step.
#[derive(Debug, Clone)]
pub(crate) struct ProcessOwner {
    data_dir: PathBuf,
    /// `None` before there is one: then every process of the data directory is a former agent's.
    ledger: Option<LedgerId>,
}

/// Numbers of process groups by entity.
pub(crate) type FormerGroups = BTreeMap<EntityName, BTreeSet<i32>>;

impl ProcessOwner {
    /// The agent of a data directory, which exists.
    pub(crate) fn new(data_dir: &Path, ledger: Option<LedgerId>) -> Self {
        Self { data_dir: fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned()), ledger }
    }

    /// The variables that each of its processes carries.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> + use<> {
        let ledger = self.ledger.as_ref().map(|ledger| (LEDGER, OsString::from(ledger.as_str())));
        [(DATA_DIR, self.data_dir.clone().into_os_string())].into_iter().chain(ledger)
    }

    /// The process groups that former agents left running. Reads all of `/proc`; not for the runtime's threads.
    pub(crate) fn former(&self) -> io::Result<FormerGroups> {
        let mut groups = FormerGroups::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let pid = name.to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw);
            let Some(pid) = pid else { continue };
            let Some(entity) = self.entity_of(pid)? else { continue };
            if let Some(group) = group_of(pid)? {
                groups.entry(entity).or_default().insert(group.as_raw_nonzero().get());
            }
        }
        Ok(groups)
    }

    /// The entity of a process of a former agent; `None` for any other process.
    fn entity_of(&self, pid: Pid) -> io::Result<Option<EntityName>> {
        let root = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        let environment = seen(fs::read(root.join("environ")))?;
        Ok(environment.and_then(|environment| self.entity_in(&root, &environment)))
    }

    /// The entity that the environment of a process names, if a former agent of this directory started it.
    fn entity_in(&self, root: &Path, environment: &[u8]) -> Option<EntityName> {
        let variable = |name: &str| {
            let mut all = environment.split(|byte| *byte == 0);
            all.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        };
        if variable(DATA_DIR)? != self.data_dir.as_os_str().as_bytes() {
            return None;
        }
        let ledger = variable(LEDGER)?;
        if self.ledger.as_ref().is_some_and(|own| own.as_str().as_bytes() == ledger) {
            return None;
        }
        // In another container, the same path is another directory, with an agent of its own.
        let id = |path: &Path| fs::metadata(path).map(|of| (of.dev(), of.ino())).ok();
        let there = root.join("root").join(self.data_dir.strip_prefix("/").ok()?);
        if id(&there)? != id(&self.data_dir)? {
            return None;
        }
        EntityName::parse(std::str::from_utf8(variable(ENTITY)?).ok()?).ok()
    }

    /// Ends all processes that former agents left running for the entity: with SIGTERM, and with SIGKILL after `grace`. Returns
    /// how many process groups there were. The error fits after "cannot ".
    pub(crate) async fn end_former(
        &self,
        entity: &EntityName,
        grace: Duration,
        tasks: &Tasks,
    ) -> Result<usize, String> {
        let first = self.former_of(entity, tasks).await?;
        let mut left = first.clone();
        for (what, limit) in [(Signal::TERM, grace), (Signal::KILL, KILLED)] {
            let mut limit = TimeLimit::new(limit);
            for group in &left {
                signal(*group, what)?;
            }
            while !left.is_empty() && !limit.left().is_zero() {
                let look = async {
                    tokio::time::sleep(LOOK).await;
                    self.former_of(entity, tasks).await
                };
                left = limit.count_during(look).await?;
            }
        }
        match left.first() {
            None => Ok(first.len()),
            Some(group) => Err(format!(
                "end process {group}, which a former agent of this machine started: it goes on after SIGKILL"
            )),
        }
    }

    async fn former_of(&self, entity: &EntityName, tasks: &Tasks) -> Result<BTreeSet<i32>, String> {
        let (owner, entity) = (self.clone(), entity.clone());
        let look = move || {
            let found = owner.former();
            found.map_err(|error| format!("look for processes of a former agent in /proc: {error}"))
        };
        disk::off_runtime(tasks, look).await.map(|mut groups| groups.remove(&entity).unwrap_or_default())
    }
}

fn signal(group: i32, signal: Signal) -> Result<(), String> {
    let Some(pid) = Pid::from_raw(group) else { return Ok(()) };
    match kill_process_group(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => {
            Err(format!("signal process {group}, which a former agent of this machine started: {error}"))
        }
    }
}
