//! One part of an apply: its commands one after the other, within one deadline, and what came of them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use bellwether_core::local::memory::Outcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_rt::tasks::Tasks;
use tokio::time::Instant;

use super::Facts;
use super::exec::{Exit, run};
use super::log::Log;
use crate::config::recipe::{Command, Validation};

/// Runs `commands` in order until one does not succeed. `what` names the part in evidence.
///
/// Dropping this kills the command that runs.
pub(crate) async fn run_all(
    what: &str,
    commands: &[Command],
    facts: &Facts,
    deadline: Duration,
    log: &mut Log,
) -> Outcome {
    let ends = Instant::now() + deadline;
    for (number, command) in (1_usize..).zip(commands) {
        let left = ends.saturating_duration_since(Instant::now());
        let ended = run(command, facts, left, Some(log)).await;
        let which = if commands.len() == 1 { what.to_owned() } else { format!("{what}, command {number}") };
        let summary = match &ended.exit {
            // The limit is the part's, not what was left of it for this command.
            Exit::TimedOut(_) => format!("{which}: killed, because the part took longer than {deadline:?}"),
            exit @ (Exit::Done | Exit::NotYet | Exit::Code(_) | Exit::Signal(_) | Exit::NotStarted(_)) => {
                format!("{which}: {exit}")
            }
        };
        let evidence =
            Evidence { summary, exit_code: ended.exit.code(), tail: ended.tail, failing_checks: Vec::new() };
        match ended.exit {
            Exit::Done => {}
            Exit::NotYet => return Outcome::NotYet(evidence),
            Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut(_) | Exit::NotStarted(_) => {
                return Outcome::Failed(evidence);
            }
        }
    }
    Outcome::Done
}

/// The commands of a validation; for a directory, what is executable in it now, in name order.
///
/// # Errors
/// What a person needs to know when the directory cannot be read.
pub(crate) async fn validation(validation: &Validation, tasks: &Tasks) -> Result<Vec<Command>, String> {
    match validation {
        Validation::Commands(commands) => Ok(commands.clone()),
        Validation::Directory { path, workdir, env } => {
            let dir = path.clone();
            let found = tasks.spawn_blocking(move || executables(&dir)).await;
            let found = found.unwrap_or_else(|error| Err(io::Error::other(error)));
            let found = found.map_err(|error| format!("read {}: {error}", path.display()))?;
            let command = |argv| Command { argv: vec![argv], workdir: workdir.clone(), env: env.clone() };
            Ok(found.into_iter().map(command).collect())
        }
    }
}

/// Files that somebody may execute, but for hidden ones and an editor's copies.
fn executables(dir: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.is_empty() || name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        let about = fs::metadata(&path)?;
        if let (true, true, Some(path)) =
            (about.is_file(), about.permissions().mode() & 0o111 != 0, path.to_str())
        {
            found.push(path.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gives_its_executables_in_name_order() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in
            [("20-b", 0o755), ("10-a", 0o755), ("README", 0o644), (".x", 0o755), ("a~", 0o755)]
        {
            let path = dir.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let found = executables(dir.path()).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["10-a", "20-b"]);
    }
}
