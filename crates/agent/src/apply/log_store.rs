//! Logs of failed runs: a few per entity and category on disk, the newest of which is sent to the control plane.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::log::NewLog;
use bellwether_core::records::log::MAX_LOG_BYTES;
use bellwether_core::words::name::{Category, EntityName};

use super::job_log::JOBS;
use crate::disk;

/// Logs stored per entity and category: with 64 KiB each, one mebibyte per entity.
const KEPT: usize = 8;

/// Removes every log below `logs` of an entity that this node has no longer.
pub(crate) fn forget(logs: &Path, entity: &EntityName) -> io::Result<()> {
    for file in [format!("{entity}.log"), format!("{entity}.log.1")] {
        disk::remove(&logs.join(file))?;
    }
    for dir in ["failed", JOBS] {
        match fs::remove_dir_all(logs.join(dir).join(entity.as_str())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// The newest log of each category and entity that the control plane does not have yet.
pub(crate) type UnsentLogs = BTreeMap<(Category, EntityName), NewLog>;

/// The log of a run: a headline, and the end of its output.
pub(crate) fn log(run: &str, headline: &str, output: &str) -> NewLog {
    let room = MAX_LOG_BYTES.saturating_sub(headline.len() + 2);
    let from = output.len().saturating_sub(room);
    let start = (from..=output.len()).find(|index| output.is_char_boundary(*index)).unwrap_or(output.len());
    let text = format!("{headline}\n\n{}", output.get(start..).unwrap_or_default());
    NewLog { run: run.to_owned(), text }
}

/// Stores a log below `logs`, and removes the oldest.
pub(crate) fn keep(logs: &Path, category: &Category, entity: &EntityName, log: &NewLog) -> io::Result<()> {
    let dir = logs.join("failed").join(entity.as_str()).join(category.as_str());
    disk::private_dir(&dir)?;
    disk::replace(&dir.join(format!("{}.log", log.run)), &log.text)?;
    let mut all = runs(&dir)?;
    all.truncate(all.len().saturating_sub(KEPT));
    for (_, old) in all {
        fs::remove_file(old)?;
    }
    Ok(())
}

/// The newest log of each category and entity below `logs`. Unreadable ones are skipped with a warning.
pub(crate) fn newest(logs: &Path) -> UnsentLogs {
    let mut waiting = UnsentLogs::new();
    for (entity, of_entity) in named::<EntityName>(&logs.join("failed")) {
        for (category, dir) in named::<Category>(&of_entity) {
            let last = runs(&dir).map(|mut runs| runs.pop());
            let read = last
                .and_then(|last| last.map(|(run, path)| Ok((run, fs::read_to_string(path)?))).transpose());
            match read {
                Ok(Some((run, text))) => {
                    waiting.insert((category, entity.clone()), NewLog { run, text });
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(path = %dir.display(), %error, "cannot read a stored log"),
            }
        }
    }
    waiting
}

/// The logs in a directory, oldest first: a run's name begins with its time.
fn runs(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let run = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".log"));
        found.extend(run.map(str::to_owned).map(|run| (run, path.clone())));
    }
    found.sort();
    Ok(found)
}

fn named<T: std::str::FromStr>(dir: &Path) -> Vec<(T, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_logs_are_kept_and_the_newest_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let (category, entity) = (Category::parse("configure").unwrap(), EntityName::parse("web").unwrap());
        for number in 10..30 {
            keep(dir.path(), &category, &entity, &log(&format!("{number}-1-1"), "it failed", "out")).unwrap();
        }
        let there = runs(&dir.path().join("failed/web/configure")).unwrap();
        assert_eq!((there.len(), there[0].0.as_str()), (KEPT, "22-1-1"));
        let newest = newest(dir.path());
        assert_eq!(newest[&(category, entity)].run, "29-1-1");
        assert_eq!(super::newest(&dir.path().join("nowhere")), UnsentLogs::new());
    }

    #[test]
    fn a_stored_log_is_the_end_of_the_output_within_its_size() {
        let long = format!("{}the end", "\u{fffd}".repeat(40_000));
        let log = log("1-1-1", "web v2: static: exit code 3", &long);
        assert!(log.text.len() <= MAX_LOG_BYTES);
        assert!(log.text.starts_with("web v2: static: exit code 3\n\n") && log.text.ends_with("the end"));
    }
}
