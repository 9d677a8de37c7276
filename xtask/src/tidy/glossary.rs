//! The glossary: each of its words lives in the code where it says.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::table;

const PAGE: &str = "docs/glossary.md";

/// What begins the definition of a type.
const DEFINITIONS: [&str; 4] = ["struct", "enum", "trait", "type"];

/// Complains about rows that name no type of `sources` and no path of the tree.
pub(super) fn check(root: &Path, sources: &[String]) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let types = types(root, sources)?;
    let mut found = Vec::new();
    for row in table::rows(&page, "word").with_context(|| format!("cannot read {PAGE}"))? {
        let [word, _, code] = row.as_slice() else { bail!("{PAGE}: a word has three columns, not {row:?}") };
        let names = table::code_spans(code);
        if names.is_empty() {
            found.push(format!("{PAGE}: {word} does not say where it is in the code"));
        }
        for (_, name) in names {
            let exists = if name.contains('/') { root.join(name).exists() } else { types.contains(name) };
            if !exists {
                found.push(format!("{PAGE}: {word} is said to be `{name}`, which is not there"));
            }
        }
    }
    Ok(found)
}

/// The names of all types that the crates define.
fn types(root: &Path, sources: &[String]) -> Result<BTreeSet<String>> {
    let mut types = BTreeSet::new();
    for path in sources.iter().filter(|path| path.starts_with("crates/") && path.contains("/src/")) {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        for line in text.lines() {
            let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
            if words.next().is_some_and(|word| DEFINITIONS.contains(&word)) {
                let name = words.next().unwrap_or_default();
                let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
                types.extend(name.get(..end).map(str::to_owned));
            }
        }
    }
    Ok(types)
}
