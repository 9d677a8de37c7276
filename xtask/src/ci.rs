//! Everything a change must pass, in the order of seconds.

use std::path::Path;

use anyhow::Result;

use crate::shell::{self, has, say};
use crate::{test, tidy};

pub(crate) fn run(root: &Path) -> Result<()> {
    let cargo = |args: &[&str]| shell::run(root, "cargo", args);
    cargo(&["fmt", "--all", "--check"])?;
    tidy::run(root)?;
    cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--locked", "--", "-D", "warnings"])?;
    if has("cargo-deny", "--version") {
        // The advisory database is not reachable from every network; bans, licences and sources need none.
        cargo(&["deny", "check", "bans", "licenses", "sources"])?;
    } else {
        say("cargo-deny is missing: bans, licences and sources were not checked (cargo install cargo-deny)");
    }
    test::run(root, None)
}
