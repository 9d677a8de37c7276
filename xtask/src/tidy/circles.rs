//! Circles: within a crate, no file may import, over any number of others, from one that imports from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::imports::{self, Import};
use crate::shell::say;

/// The packages that are checked.
const PACKAGES: [&str; 11] = [
    "crates/core",
    "crates/rt",
    "crates/api",
    "crates/store",
    "crates/dns",
    "crates/server",
    "crates/agent",
    "crates/cli",
    "sim",
    "testbed",
    "xtask",
];

/// Files that all reach each other by imports, at least two.
struct Circle {
    files: BTreeSet<String>,
    imports: Vec<Import>,
}

pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for package in PACKAGES {
        let circles = circles(imports::read(root, package)?).len();
        if circles > 0 {
            found.push(format!("{package} has {circles} circles of imports: cargo xtask tidy --circles"));
        }
    }
    Ok(found)
}

/// Says every circle with its files and imports.
pub(super) fn show(root: &Path) -> Result<()> {
    for package in PACKAGES {
        let circles = circles(imports::read(root, package)?);
        say(&format!("{package}: {} circles", circles.len()));
        for circle in circles {
            say(&text(&circle));
        }
    }
    Ok(())
}

fn circles(imports: BTreeSet<Import>) -> Vec<Circle> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in &imports {
        next.entry(&import.from).or_default().insert(&import.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|file| (*file, reached(file, &next))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let mut circles: Vec<Circle> = Vec::new();
    for file in next.keys().filter(|file| reaches(file, file)) {
        if circles.iter().any(|circle| circle.files.contains(*file)) {
            continue;
        }
        let both = next.keys().filter(|other| reaches(file, other) && reaches(other, file));
        let files: BTreeSet<String> = both.map(|file| (*file).to_owned()).collect();
        let within = |import: &&Import| files.contains(&import.from) && files.contains(&import.to);
        let imports = imports.iter().filter(within).cloned().collect();
        circles.push(Circle { files, imports });
    }
    circles
}

/// Every file that one gets to by at least one import.
fn reached<'a>(file: &str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = next.get(file).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(next.get(file).into_iter().flatten());
        }
    }
    reached
}

fn text(circle: &Circle) -> String {
    let mut lines = vec![format!("  circle of {} files", circle.files.len())];
    lines.extend(circle.files.iter().map(|file| format!("    {file}")));
    let mut edges: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for import in &circle.imports {
        let edge = edges.entry((&import.from, &import.to)).or_default();
        edge.push(format!("      {}:{} {}", import.from, import.line, import.item));
    }
    for ((from, to), imports) in edges {
        lines.push(format!("    {from} -> {to}"));
        lines.extend(imports);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_import_each_other_over_a_third_are_a_circle_and_who_only_imports_them_is_not() {
        let import = |(from, to): (&str, &str)| {
            let (from, to, item) = (from.to_owned(), to.to_owned(), String::new());
            Import { from, to, line: 1, item }
        };
        let imports = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("a", "e")];
        let circles = circles(imports.into_iter().map(import).collect());
        let [circle] = circles.as_slice() else { panic!("{} circles", circles.len()) };
        assert_eq!(circle.files, ["a", "b", "c"].map(str::to_owned).into());
        assert_eq!(circle.imports.len(), 3);
    }
}
