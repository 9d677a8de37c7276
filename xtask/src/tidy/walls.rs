//! Walls: which room may import which of ours. The same table stands in ARCHITECTURE.md.

use std::path::Path;

use anyhow::{Context, Result};

/// Folder, and the rooms it may import.
const ROOMS: [(&str, &[&str]); 11] = [
    ("crates/core", &[]),
    ("crates/rt", &["core"]),
    ("crates/api", &["core"]),
    ("crates/store", &["rt"]),
    ("crates/dns", &["core", "rt"]),
    ("crates/server", &["core", "rt", "api", "store", "dns"]),
    ("crates/agent", &["core", "rt", "api", "dns"]),
    ("crates/cli", &["core", "rt", "api", "server", "agent"]),
    ("sim", &["core", "rt", "api", "store", "dns", "server", "agent", "cli"]),
    ("testbed", &["rt"]),
    ("xtask", &[]),
];

/// What core must never be able to reach.
const NOT_IN_CORE: [&str; 5] = ["serde", "serde_json", "tokio", "tracing", "getrandom"];

pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (folder, allowed) in ROOMS {
        let path = root.join(folder).join("Cargo.toml");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        let manifest: toml::Table =
            toml::from_str(&text).with_context(|| format!("could not read {}", path.display()))?;
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for name in dependencies.into_iter().flatten().map(|(name, _)| name) {
            let ours = name.strip_prefix("bellwether-");
            if ours.is_some_and(|room| !allowed.contains(&room)) {
                found.push(format!("{folder} imports {name}, which its room may not touch"));
            }
            if folder == "crates/core" && NOT_IN_CORE.contains(&name.as_str()) {
                found.push(format!("crates/core imports {name}: core is pure"));
            }
        }
    }
    let core = std::fs::read_to_string(root.join("crates/core/src/lib.rs")).context("could not read core")?;
    if !core.contains("#![no_std]") {
        found.push("crates/core is not no_std: the compiler no longer holds its wall".to_owned());
    }
    Ok(found)
}
