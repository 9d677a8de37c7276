//! Tidy: the walls between rooms, file sizes, names, headers and the map, held by a program instead of good will.

mod circles;
mod decisions;
mod docs;
mod files;
mod glossary;
mod hosts;
mod imports;
mod invariants;
mod layers;
mod modules;
mod table;
mod walls;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::codegen;
use crate::shell::say;

/// Folders with nothing that people wrote.
const NOT_SOURCE: [&str; 2] = ["target", ".git"];

/// A package that is not part of the workspace.
const OUTSIDE: &str = "xtask/codegen";

/// What to show in full instead of checking everything.
#[derive(Args)]
pub(crate) struct Shown {
    /// Show every circle of imports within a crate
    #[arg(long)]
    circles: bool,
    /// Show every import against the layers of core
    #[arg(long)]
    layers: bool,
    /// Show every word that was given up and is still there
    #[arg(long)]
    words: bool,
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
    if shown.layers {
        return layers::show(root);
    }
    if shown.words {
        let (sources, pages) = (files(root, "rs")?, files(root, "md")?);
        return words::show(root, &sources.iter().chain(&pages).collect::<Vec<_>>());
    }
    run(root)
}

/// Checks everything and reports all of what it finds.
pub(crate) fn run(root: &Path) -> Result<()> {
    let sources = files(root, "rs")?;
    let pages = files(root, "md")?;
    let packages = packages(root)?;
    let manifests = files(root, "toml")?;
    let prose: Vec<&String> = sources.iter().chain(&pages).collect();
    let mut found = walls::check(root, &packages)?;
    found.extend(files::check(root, &sources)?);
    found.extend(docs::check(root, &pages)?);
    found.extend(decisions::check(root, &pages)?);
    found.extend(circles::check(root)?);
    found.extend(layers::check(root)?);
    found.extend(glossary::check(root, &sources)?);
    found.extend(invariants::check(root, &sources)?);
    found.extend(words::check(root, &prose)?);
    found.extend(hosts::check(root, &prose.into_iter().chain(&manifests).collect::<Vec<_>>())?);
    found.extend(codegen::check(root)?);
    for line in &found {
        say(&format!("tidy: {line}"));
    }
    if found.is_empty() {
        say(&format!("tidy: {} files in order", sources.len()));
        return Ok(());
    }
    bail!("findings: {}", found.len())
}

/// The folders of the workspace's packages.
fn packages(root: &Path) -> Result<Vec<String>> {
    let manifests = files(root, "toml")?;
    let folders = manifests.iter().filter_map(|path| path.strip_suffix("/Cargo.toml"));
    Ok(folders.filter(|folder| *folder != OUTSIDE).map(str::to_owned).collect())
}

/// Every file of the tree whose name ends so, as a path from its root, in order.
fn files(root: &Path, end: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    walk(root, root, end, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(root: &Path, dir: &Path, end: &str, found: &mut Vec<String>) -> Result<()> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if !NOT_SOURCE.iter().any(|other| name == *other) {
                walk(root, &path, end, found)?;
            }
        } else if path.extension().is_some_and(|other| other == end) {
            found.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    Ok(())
}
