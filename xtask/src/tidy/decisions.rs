//! Decisions: numbered without gaps, and titled alike.

use std::path::Path;

use anyhow::{Context, Result};

const FOLDER: &str = "docs/decisions";

/// Complains about the decisions among the pages, which are in order.
pub(super) fn check(root: &Path, pages: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let decisions = pages.iter().filter_map(|page| page.strip_prefix(FOLDER)?.strip_prefix('/'));
    for (number, name) in (1..).zip(decisions) {
        let number = format!("{number:04}");
        if !name.starts_with(&format!("{number}-")) {
            found.push(format!("{FOLDER}/{name} comes where decision {number} belongs"));
            break;
        }
        let path = root.join(FOLDER).join(name);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if !text.starts_with(&format!("# {number}: ")) {
            found.push(format!("{FOLDER}/{name} does not begin with `# {number}: Title`"));
        }
    }
    Ok(found)
}
