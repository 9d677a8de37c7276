//! Layers of core: which part of it may import from which. The table stands in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::imports::{self, Import};
use super::table;
use crate::shell::say;

/// The package that has layers.
const PACKAGE: &str = "crates/core";

/// The layers by name: the modules in each, and the layers that it may import from.
struct Layers<'a> {
    /// The layer of each module at the top of the package.
    layer: BTreeMap<&'a str, &'a str>,
    /// The layers below each.
    below: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let text = read_map(root)?;
    let layers = Layers::read(&text)?;
    let imports = imports::read(root, PACKAGE)?;
    let mut found = layers.unknown(&imports);
    let upward = pairs(&layers.upward(&imports));
    found.extend(upward.into_iter().map(|(from, to)| {
        format!("{from} imports from {to}, which is in a higher layer: cargo xtask tidy --layers")
    }));
    Ok(found)
}

/// Says every import against the layers.
pub(super) fn show(root: &Path) -> Result<()> {
    let text = read_map(root)?;
    let layers = Layers::read(&text)?;
    let imports = imports::read(root, PACKAGE)?;
    let upward = layers.upward(&imports);
    say(&format!("{PACKAGE}: {} pairs of files import against the layers", pairs(&upward).len()));
    for import in upward {
        let (from, to) = (layers.of(&import.from), layers.of(&import.to));
        let names = format!("{} -> {}", from.unwrap_or("?"), to.unwrap_or("?"));
        say(&format!("  {names}: {}:{} {}", import.from, import.line, import.item));
    }
    Ok(())
}

fn read_map(root: &Path) -> Result<String> {
    std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("cannot read ARCHITECTURE.md")
}

fn pairs<'a>(imports: &[&'a Import]) -> BTreeSet<(&'a str, &'a str)> {
    imports.iter().map(|import| (import.from.as_str(), import.to.as_str())).collect()
}

impl<'a> Layers<'a> {
    fn read(text: &'a str) -> Result<Self> {
        let mut layers = Self { layer: BTreeMap::new(), below: BTreeMap::new() };
        for row in table::rows(text, "layer").context("cannot read ARCHITECTURE.md")? {
            let [layer, modules, below] = row.as_slice() else {
                bail!("ARCHITECTURE.md: a layer has three columns, not {row:?}");
            };
            for (_, module) in table::code_spans(modules) {
                layers.layer.insert(module, layer);
            }
            let below = below.split(',').map(str::trim).filter(|name| *name != "none").collect();
            layers.below.insert(layer, below);
        }
        Ok(layers)
    }

    /// The layer of a file, if it is in one; the root of the package is in none.
    fn of(&self, path: &str) -> Option<&'a str> {
        self.layer.get(module(path)?).copied()
    }

    /// Modules that the table does not name.
    fn unknown(&self, imports: &BTreeSet<Import>) -> Vec<String> {
        let files = imports.iter().flat_map(|import| [&import.from, &import.to]);
        let modules: BTreeSet<&str> = files.filter_map(|path| module(path)).collect();
        modules
            .into_iter()
            .filter(|module| *module != "lib" && !self.layer.contains_key(module))
            .map(|module| format!("ARCHITECTURE.md's table of layers misses `{module}` of {PACKAGE}"))
            .collect()
    }

    fn upward<'i>(&self, imports: &'i BTreeSet<Import>) -> Vec<&'i Import> {
        let is_upward = |import: &&Import| match (self.of(&import.from), self.of(&import.to)) {
            (Some(from), Some(to)) => {
                from != to && !self.below.get(from).is_some_and(|below| below.contains(to))
            }
            (None, _) | (_, None) => false,
        };
        imports.iter().filter(is_upward).collect()
    }
}

/// The top module that a file of the package belongs to.
fn module(path: &str) -> Option<&str> {
    let within = path.strip_prefix(PACKAGE)?.strip_prefix("/src/")?;
    let first = within.split('/').next()?;
    Some(first.trim_end_matches(".rs"))
}
