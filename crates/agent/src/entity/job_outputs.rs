//! Outputs of jobs: what a task wrote, as it is kept, and what later tasks of the run see of it. Runs nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use bellwether_api::number::{inexact, kept_as_text};
use bellwether_core::local::work::WorkMemory;
use bellwether_core::records::job::{MAX_OUTPUT_BYTES, OutputsTooLarge};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::apply::hidden::hide;

/// The outputs that a job wrote to this file: an object in its shortest form, without the values of secrets. `None` if it wrote none.
///
/// # Errors
/// What is wrong with them.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    let Some(text) = text(path)? else { return Ok(None) };
    if let Some(number) = inexact(&text) {
        return Err(hide(format!("its outputs: {}; {}", number.at_place(), kept_as_text(number.number))));
    }
    // What is wrong is said without the text, which may be secret.
    let value = serde_json::from_str(&text).map_err(|error| {
        format!("its outputs are not JSON: line {}, column {}", error.line(), error.column())
    })?;
    match masked(value) {
        Value::Object(outputs) => Ok(Some(Value::Object(outputs).to_string())),
        Value::Null => Err(no_object("null")),
        Value::Bool(_) => Err(no_object("a truth value")),
        Value::Number(_) => Err(no_object("a number")),
        Value::String(_) => Err(no_object("a string")),
        Value::Array(_) => Err(no_object("a list")),
    }
}

/// What templates of a task have as `outputs`: an object for each task before it that is complete or was skipped, which is empty if that wrote none.
/// Of a task that is in the list twice, it is what it wrote last.
pub(super) fn variable(memory: &WorkMemory) -> BTreeMap<String, Map<String, Value>> {
    let mut all: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for job in memory.complete_jobs() {
        let kept = all.entry(job.task.to_string()).or_default();
        if let Some(outputs) = bellwether_api::v1::job::outputs(job) {
            *kept = outputs;
        }
    }
    all
}

/// The text of a file, at most as much as outputs may have. What a job leaves in its place, such as a link or a pipe, is not followed.
fn text(path: &Path) -> Result<Option<String>, String> {
    let cannot = |reason: &dyn std::fmt::Display| format!("cannot read its outputs: {reason}");
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(cannot(&"they are not a file")),
        Err(error) => return Err(cannot(&error)),
    };
    if !file.metadata().map_err(|error| cannot(&error))?.is_file() {
        return Err(cannot(&"they are not a file"));
    }
    let most = u64::try_from(MAX_OUTPUT_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let read = Read::by_ref(&mut file).take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| cannot(&error))?;
    if bytes.len() > MAX_OUTPUT_BYTES {
        return Err(OutputsTooLarge::OfTask.to_string());
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "its outputs are not UTF-8".to_owned())
}

fn no_object(kind: &str) -> String {
    format!("its outputs are {kind}, and not a JSON object")
}

/// A value without the secrets in its texts, numbers and names.
fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(hide(text)),
        Value::Number(number) => {
            let text = number.to_string();
            let hidden = hide(text.clone());
            if hidden == text { Value::Number(number) } else { Value::String(hidden) }
        }
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (hide(name), masked(value))).collect()
        }
        Value::Null | Value::Bool(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use bellwether_core::words::time::Timestamp;
    use bellwether_core::words::version::Version;
    use serde_json::json;

    use super::*;
    use crate::apply::hidden;

    #[expect(clippy::unwrap_in_result, reason = "the result is what the tests are about")]
    fn written(text: impl AsRef<[u8]>) -> Result<Option<String>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("outputs.json");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn outputs_are_one_object_or_none() {
        assert_eq!(read(Path::new("/nonexistent/outputs.json")), Ok(None));
        let shortest = written("{ \"port\": 5432,\n \"address\": \"10.0.0.7\" }\n");
        assert_eq!(shortest.unwrap().as_deref(), Some(r#"{"address":"10.0.0.7","port":5432}"#));
        for (text, reason) in [
            ("", "not JSON: line 1"),
            ("{\"a\": 1}\n{\"b\": 2}", "not JSON: line 2, column 1"),
            ("[1]", "a list, and not a JSON object"),
            ("\"hunter22\"", "a string, and not a JSON object"),
            ("{\"id\": 123456789012345678901}", "id: the number 123456789012345678901 cannot be kept"),
        ] {
            let said = written(text).unwrap_err();
            assert!(said.contains(reason) && !said.contains("hunter"), "{said}");
        }
        assert!(written(b"{\"a\": \"\xff\"}").unwrap_err().contains("not UTF-8"));
    }

    #[test]
    fn outputs_of_more_than_16_kib_are_refused_and_so_is_what_is_no_file() {
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert_eq!(written(sized(16 << 10)).unwrap().unwrap().len(), 16 << 10);
        let large = written(sized((16 << 10) + 1)).unwrap_err();
        assert!(large.contains("more than 16384 bytes"), "{large}");
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().contains("not a file"));
        let link = dir.path().join("link");
        symlink("/etc/hostname", &link).unwrap();
        assert!(read(&link).unwrap_err().contains("not a file"));
    }

    #[test]
    fn secrets_are_masked_in_texts_numbers_and_names() {
        hidden::remember([json!("outputs\"secret"), json!(8_642_975)].iter());
        let text = json!({
            "url": "db://outputs\"secret@host", "pin": 8_642_975, "all": ["outputs\"secret"], "outputs\"secret": true
        });
        let kept = written(text.to_string()).unwrap().unwrap();
        assert_eq!(kept, r#"{"***":true,"all":["***"],"pin":"***","url":"db://***@host"}"#);
    }

    #[test]
    fn later_tasks_see_what_complete_ones_wrote_last() {
        let mut memory = WorkMemory::new(Version::parse("install@7").unwrap());
        let tasks = [("probe", Some(r#"{"port":1}"#)), ("quiet", None), ("probe", Some(r#"{"port":2}"#))];
        for (task, outputs) in tasks {
            memory.created(task.parse().unwrap(), false);
            memory.begins(Timestamp::EPOCH);
            if let Some(outputs) = outputs {
                memory.writes(outputs.into()).unwrap();
            }
            memory.completes(Timestamp::EPOCH);
        }
        memory.created("last".parse().unwrap(), false);
        let seen = serde_json::to_value(variable(&memory)).unwrap();
        assert_eq!(seen, json!({"probe": {"port": 2}, "quiet": {}}));
    }
}
