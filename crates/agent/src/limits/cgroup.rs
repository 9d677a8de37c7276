//! The cgroup of one run: made before its program is started, and removed after its end. Uses the files of cgroup v2 alone.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Access, access};

/// The period in which processor time is counted, in microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;

/// Numbers the runs of this process.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// The cgroups of runs of this process.
static LIVE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What a cgroup limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct CgroupLimits {
    /// Memory, in bytes.
    pub(super) memory_bytes: Option<u64>,
    /// Processor time, in percent of one processor.
    pub(super) cpu_percent: Option<u32>,
}

/// The cgroup of one run. Dropping this removes it, unless what the run left running is in it; then a later run removes it.
#[derive(Debug)]
pub(crate) struct CgroupScope {
    dir: PathBuf,
}

impl CgroupScope {
    /// The cgroup of a run of `entity`, below `base`; `None` if its limits need none.
    ///
    /// # Errors
    /// What is missing, with its path.
    pub(super) fn new(base: &Path, limits: CgroupLimits, entity: &str) -> io::Result<Option<Self>> {
        let wanted = [("memory", limits.memory_bytes.is_some()), ("cpu", limits.cpu_percent.is_some())];
        let wanted: Vec<&str> =
            wanted.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        if let Some(reason) = wanted.iter().find_map(|name| missing(base, name)) {
            return Err(io::Error::other(reason));
        }
        if let Some(parent) = base.parent() {
            enable(parent, &wanted)?;
        }
        make(base)?;
        enable(base, &wanted)?;
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        sweep(base, &live);
        let (agent, run) = (std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let scope = Self { dir: base.join(format!("{agent}-{run}-{entity}")) };
        make(&scope.dir)?;
        live.insert(scope.dir.clone());
        drop(live);
        if let Some(bytes) = limits.memory_bytes {
            write(&scope.dir.join("memory.max"), &bytes.to_string())?;
            // The run ends as one: a program without one of its processes is of no use.
            write(&scope.dir.join("memory.oom.group"), "1")?;
        }
        if let Some(percent) = limits.cpu_percent {
            let quota = PERIOD_US.saturating_mul(percent.into()).checked_div(100).unwrap_or(PERIOD_US);
            write(&scope.dir.join("cpu.max"), &format!("{quota} {PERIOD_US}"))?;
        }
        Ok(Some(scope))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Has this process join the cgroup at `dir`, with all that it starts from now on.
    ///
    /// # Errors
    /// Those of the kernel, with the path.
    pub(super) fn join(dir: &Path) -> io::Result<()> {
        write(&dir.join("cgroup.procs"), "0")
    }
}

impl Drop for CgroupScope {
    fn drop(&mut self) {
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        live.remove(&self.dir);
        if let Err(error) = fs::remove_dir(&self.dir) {
            tracing::debug!(dir = %self.dir.display(), %error, "a cgroup is removed by a later run");
        }
    }
}

/// What is missing below `base` for limits by a controller, and what to do; `None` if nothing is.
pub(super) fn missing(base: &Path, controller: &str) -> Option<String> {
    let parent = base.parent().unwrap_or(base);
    let (shown, controllers) = (parent.display(), parent.join("cgroup.controllers"));
    let Ok(listed) = fs::read_to_string(&controllers) else {
        return Some(format!(
            "there is no cgroup v2 at {shown}: start the machine with systemd.unified_cgroup_hierarchy=1, or set cgroup in [agent]"
        ));
    };
    if !listed.split_whitespace().any(|name| name == controller) {
        return Some(format!(
            "{} does not list {controller}: it is not enabled there",
            controllers.display()
        ));
    }
    let written = if base.exists() { base } else { parent };
    if access(written, Access::WRITE_OK).is_err() {
        return Some(format!(
            "{} cannot be written: run the agent as root, or set cgroup in [agent] to a directory below one that is delegated to it",
            written.display()
        ));
    }
    None
}

/// Has the children of `dir` limited by these controllers.
fn enable(dir: &Path, wanted: &[&str]) -> io::Result<()> {
    let path = dir.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
    let lacking = wanted.iter().filter(|name| !enabled.split_whitespace().any(|one| one == **name));
    let lacking: Vec<String> = lacking.map(|name| format!("+{name}")).collect();
    if lacking.is_empty() { Ok(()) } else { write(&path, &lacking.join(" ")) }
}

/// Removes the cgroups of runs that have ended: of this process those that are not live, and of agents that have ended all. One in which
/// something still runs cannot be removed.
fn sweep(base: &Path, live: &BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(agent) = name.split('-').next().and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        let is_over = agent == std::process::id() || !Path::new(&format!("/proc/{agent}")).exists();
        if is_over && !live.contains(&path) && fs::remove_dir(&path).is_ok() {
            tracing::debug!(dir = %path.display(), "removed the cgroup of a run that has ended");
        }
    }
}

fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(at(dir, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files that the kernel would have there.
    fn hierarchy(controllers: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(dir.path().join("cgroup.subtree_control"), "").unwrap();
        fs::create_dir(dir.path().join("runs")).unwrap();
        fs::write(dir.path().join("runs/cgroup.subtree_control"), "memory\n").unwrap();
        dir
    }

    const LIMITS: CgroupLimits = CgroupLimits { memory_bytes: Some(64 << 20), cpu_percent: Some(150) };

    fn scope(dir: &Path, limits: CgroupLimits) -> io::Result<Option<CgroupScope>> {
        CgroupScope::new(&dir.join("runs"), limits, "web")
    }

    #[test]
    fn a_run_has_a_cgroup_with_its_limits() {
        let dir = hierarchy("cpuset cpu io memory pids\n");
        let run = scope(dir.path(), LIMITS).unwrap().unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(run.dir.join("memory.max")), "67108864");
        assert_eq!(read(run.dir.join("memory.oom.group")), "1");
        assert_eq!(read(run.dir.join("cpu.max")), "150000 100000");
        assert_eq!(read(dir.path().join("cgroup.subtree_control")), "+memory +cpu");
        assert_eq!(read(dir.path().join("runs/cgroup.subtree_control")), "+cpu");
        CgroupScope::join(&run.dir).unwrap();
        assert_eq!(read(run.dir.join("cgroup.procs")), "0");
        let none = CgroupLimits { memory_bytes: None, cpu_percent: None };
        assert!(scope(dir.path(), none).unwrap().is_none());
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = hierarchy("memory\n");
        let said = missing(&dir.path().join("runs"), "cpu").unwrap();
        assert!(said.contains("cgroup.controllers does not list cpu"), "{said}");
        assert_eq!(missing(&dir.path().join("runs"), "memory"), None);
        let said = scope(dir.path(), LIMITS).unwrap_err().to_string();
        assert!(said.contains("does not list cpu"), "{said}");
        let none = tempfile::tempdir().unwrap();
        let said = missing(&none.path().join("runs"), "cpu").unwrap();
        assert!(
            said.contains("there is no cgroup v2 at") && said.contains("set cgroup in [agent]"),
            "{said}"
        );
    }

    #[test]
    fn cgroups_of_runs_that_have_ended_are_removed_and_others_stay() {
        let dir = hierarchy("");
        let runs = dir.path().join("runs");
        let own = std::process::id();
        let named = |name: String| runs.join(name);
        // No process has this number.
        let [ended, old, live, other, foreign] = [
            named(format!("{own}-0-web")),
            named("4294967295-7-web".to_owned()),
            named(format!("{own}-1-web")),
            named("1-3-web".to_owned()),
            named("theirs".to_owned()),
        ];
        for path in [&ended, &old, &live, &other, &foreign] {
            fs::create_dir(path).unwrap();
        }
        sweep(&runs, &BTreeSet::from([live.clone()]));
        let there: Vec<bool> = [ended, old, live, other, foreign].iter().map(|path| path.exists()).collect();
        assert_eq!(there, [false, false, true, true, true]);
    }
}
