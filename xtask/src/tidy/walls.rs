//! Walls: which room may import which of ours, by the code map in ARCHITECTURE.md, held against the manifests.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::table;

/// What core must never be able to reach.
const NOT_IN_CORE: [&str; 5] = ["serde", "serde_json", "tokio", "tracing", "getrandom"];

pub(super) fn check(root: &Path, packages: &[String]) -> Result<Vec<String>> {
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("cannot read ARCHITECTURE.md")?;
    let rows = table::rows(&map, "room").context("cannot read ARCHITECTURE.md")?;
    let mut found = Vec::new();
    let mut rooms = Vec::new();
    for row in rows {
        let [folder, .., allowed] = row.as_slice() else {
            bail!("ARCHITECTURE.md: a room has more than one column, not {row:?}");
        };
        let folder = folder.trim_matches('`');
        rooms.push(folder.to_owned());
        if root.join(folder).join("Cargo.toml").is_file() {
            found.extend(imports(root, folder, allowed)?);
        } else {
            found.push(format!("ARCHITECTURE.md's map names the room {folder}, which is not there"));
        }
    }
    let missing = packages.iter().filter(|package| !rooms.contains(package));
    found.extend(missing.map(|package| format!("ARCHITECTURE.md's map misses the room {package}")));
    let core = std::fs::read_to_string(root.join("crates/core/src/lib.rs")).context("cannot read core")?;
    if !core.contains("#![no_std]") {
        found.push("crates/core is not no_std: the compiler no longer holds its wall".to_owned());
    }
    Ok(found)
}

/// What a room imports though it may not; `allowed` is a list of rooms, `none` or `all`.
fn imports(root: &Path, folder: &str, allowed: &str) -> Result<Vec<String>> {
    let path = root.join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: toml::Table =
        toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    let allowed: Vec<&str> = allowed.split(',').map(str::trim).collect();
    let may = |room: &str| allowed == ["all"] || allowed.contains(&room);
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let mut found = Vec::new();
    for name in dependencies.into_iter().flatten().map(|(name, _)| name) {
        if name.strip_prefix("bellwether-").is_some_and(|room| !may(room)) {
            found.push(format!("{folder} imports {name}, which its room may not touch"));
        }
        if folder == "crates/core" && NOT_IN_CORE.contains(&name.as_str()) {
            found.push(format!("crates/core imports {name}: core is pure"));
        }
    }
    Ok(found)
}
