//! A directory of executables: run in name order until one does not succeed.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;

use super::context::PartContext;
use crate::config::recipe::{Command, ScriptDirectory};

/// Runs every executable of the directory; evidence names it.
pub(super) async fn run(what: &str, directory: &ScriptDirectory, job: &mut PartContext<'_>) -> StepOutcome {
    let dir = directory.path.clone();
    let found = job.tasks.spawn_blocking(move || executables(&dir)).await;
    let found = match found.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(found) => found,
        Err(reason) => return StepOutcome::Failed(Evidence::of(format!("{what}: cannot {reason}"))),
    };
    for path in found {
        let which = format!("{what}: {path}");
        let command = Command {
            argv: vec![path],
            workdir: directory.workdir.clone(),
            env: directory.env.clone(),
            stdin: None,
        };
        match job.exec(&which, &command).await {
            StepOutcome::Done => {}
            other @ (StepOutcome::NotYet(_) | StepOutcome::Failed(_)) => return other,
        }
    }
    StepOutcome::Done
}

/// Executable files, without hidden ones and editor backups. A link counts as its target. A link without a target, and a
/// file that others than its owner may write, is refused rather than skipped: a validation must not be left out silently,
/// nor be writable by anyone.
///
/// # Errors
/// The reason with the file's name; fits after "cannot ".
fn executables(dir: &Path) -> Result<Vec<String>, String> {
    let read = |path: &Path, error: io::Error| format!("read {}: {error}", path.display());
    let about = fs::metadata(dir).map_err(|error| read(dir, error))?;
    owned_safely(dir, &about)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| read(dir, error))? {
        let path = entry.map_err(|error| read(dir, error))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.is_empty() || name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        let about = fs::metadata(&path).map_err(|error| read(&path, error))?;
        if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
            continue;
        }
        owned_safely(&path, &about)?;
        found.extend(path.to_str().map(str::to_owned));
    }
    found.sort();
    Ok(found)
}

/// Refuses a file that users other than root and the agent's own can write. The error fits after "cannot ".
pub(crate) fn owned_safely(path: &Path, about: &fs::Metadata) -> Result<(), String> {
    let (mode, path) = (about.permissions().mode(), path.display());
    if about.uid() != 0 && about.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!(
            "run {path}: its owner is user {}, neither root nor the user of this agent",
            about.uid()
        ));
    }
    if mode & 0o002 != 0 || (mode & 0o020 != 0 && about.gid() != 0) {
        return Err(format!(
            "run {path}: users other than its owner can write it (mode {:04o})",
            mode & 0o7777
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_gives_its_executables_in_name_order() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("20-b", 0o755),
            ("10-a", 0o755),
            ("README", 0o644),
            (".x", 0o755),
            ("a~", 0o755),
            ("note", 0o666),
        ];
        for (name, mode) in files {
            make(&dir.path().join(name), mode);
        }
        fs::create_dir(dir.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("10-a", dir.path().join("30-link")).unwrap();
        let found = executables(dir.path()).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["10-a", "20-b", "30-link"]);
    }

    #[test]
    fn a_dangling_link_or_a_file_that_others_can_write_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let refusal = |dir: &Path| executables(dir).unwrap_err();
        let missing = refusal(&dir.path().join("validate.d"));
        assert!(missing.contains("validate.d: No such file"), "{missing}");
        let link = dir.path().join("10-link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let dangling = refusal(dir.path());
        assert!(dangling.contains("10-link: No such file"), "{dangling}");
        fs::remove_file(link).unwrap();
        make(&dir.path().join("20-open"), 0o757);
        let open = refusal(dir.path());
        assert!(open.contains("20-open: users other than its owner can write it (mode 0757)"), "{open}");
        fs::remove_file(dir.path().join("20-open")).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(refusal(dir.path()).contains("(mode 1777)"));
    }
}
