//! Tidy: the walls between rooms, file sizes, names, headers and the map, held by a program instead of good will.

mod circles;
mod docs;
mod files;
mod imports;
mod modules;
mod walls;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::codegen;
use crate::shell::say;

/// What to show in full instead of checking everything.
#[derive(Args)]
pub(crate) struct Shown {
    /// Show every circle of imports within a crate
    #[arg(long)]
    circles: bool,
    /// Check the tree in this folder instead of this one
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
}

/// Checks everything, or shows what was asked for.
pub(crate) fn run_or_show(root: &Path, shown: &Shown) -> Result<()> {
    let root = shown.tree.as_deref().unwrap_or(root);
    if shown.circles {
        return circles::show(root);
    }
    run(root)
}

/// Checks everything and reports all of what it finds.
pub(crate) fn run(root: &Path) -> Result<()> {
    let sources = sources(root)?;
    let mut found = walls::check(root)?;
    found.extend(files::check(root, &sources)?);
    found.extend(docs::check(root)?);
    found.extend(circles::check(root)?);
    found.extend(codegen::check(root)?);
    for line in &found {
        say(&format!("tidy: {line}"));
    }
    if found.is_empty() {
        say(&format!("tidy: {} files in order", sources.len()));
        return Ok(());
    }
    bail!("{} thing(s) are not in order", found.len())
}

/// Every Rust file of the workspace.
fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for top in ["crates", "sim", "testbed", "xtask"] {
        walk(&root.join(top), &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("could not read {}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                walk(&path, found)?;
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    Ok(())
}
