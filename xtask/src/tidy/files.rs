//! Files: at most 400 lines, a header that says what it owns, no names that mean "anything", facts in one place.

use std::path::Path;

use anyhow::{Context, Result};

use crate::codegen;

/// Longest file, in lines. Split by noun before it gets there.
const MAX_LINES: usize = 400;

/// File names that say nothing about what is in them.
const EMPTY_NAMES: [&str; 9] =
    ["utils", "util", "helpers", "helper", "common", "misc", "manager", "impl", "mod"];

/// A fact, and the only files that may say it.
const ONE_PLACE: [(&str, &[&str]); 5] = [
    ("SystemTime::now()", &["crates/rt/src/clock.rs"]),
    ("tokio::spawn(", &["crates/rt/src/tasks.rs"]),
    (
        "StatusCode::",
        &[
            "crates/server/src/http/problem.rs",
            "crates/agent/src/local/problem.rs",
            "crates/agent/src/http/refusal.rs",
            "crates/cli/src/commands/demo/service.rs",
        ],
    ),
    ("\"/v1/", &["crates/api/src/paths.rs"]),
    ("\"/bw/", &["crates/server/src/records/key_text.rs"]),
];

pub(super) fn check(root: &Path, sources: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for shown in sources {
        let path = root.join(shown);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if codegen::is_generated(shown) {
            continue;
        }
        let lines = text.lines().count();
        if lines > MAX_LINES {
            found.push(format!("{shown} has {lines} lines, {MAX_LINES} at most: split it by noun"));
        }
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if EMPTY_NAMES.contains(&name) {
            found.push(format!("{shown}: the name says nothing about what is in it"));
        }
        let is_test = shown.contains("/tests/") || name == "tests" || shown.contains("/examples/");
        if !is_test && !text.starts_with("//!") {
            found.push(format!("{shown} does not begin with a header that says what it owns"));
        }
        found.extend(misplaced(shown, &text, is_test));
    }
    Ok(found)
}

/// Facts that stand in a second place. Comments, tests and this list may name them.
fn misplaced(shown: &str, text: &str, is_test: bool) -> Vec<String> {
    if is_test || shown.starts_with("xtask/") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let says =
        |needle: &str| code.lines().any(|line| line.contains(needle) && !line.trim_start().starts_with("//"));
    ONE_PLACE
        .iter()
        .filter(|(needle, places)| !places.contains(&shown) && says(needle))
        .map(|(needle, places)| format!("{shown} says {needle}, which belongs in {}", places.join(" or ")))
        .collect()
}
