//! Documents: the code map in ARCHITECTURE.md names every room and only paths that are there.

use std::path::Path;

use anyhow::{Context, Result};

/// Documents whose `code` paths must exist.
const DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Rooms that the map must name.
const ROOMS: [&str; 10] = [
    "crates/core",
    "crates/rt",
    "crates/api",
    "crates/store",
    "crates/dns",
    "crates/server",
    "crates/agent",
    "crates/cli",
    "sim",
    "xtask",
];

pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(document))
            .with_context(|| format!("could not read {document}"))?;
        for path in text.split('`').skip(1).step_by(2).filter(|span| is_path(span)) {
            if !root.join(path.trim_end_matches('/')).exists() {
                found.push(format!("{document} names {path}, which is not there"));
            }
        }
        if document == "ARCHITECTURE.md" {
            let missing = ROOMS.iter().filter(|room| !text.contains(&format!("`{room}`")));
            found.extend(missing.map(|room| format!("ARCHITECTURE.md's map misses `{room}`")));
        }
    }
    Ok(found)
}

/// Whether a code span names something in this tree.
fn is_path(span: &str) -> bool {
    let tops = ["crates/", "docs/", "xtask/", "sim/", ".ci/"];
    tops.iter().any(|top| span.starts_with(top)) && !span.contains([' ', '*', '{'])
}
