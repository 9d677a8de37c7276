//! Everything a change must pass, in the order of seconds.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell::{self, has, say};
use crate::tidy;

pub(crate) fn run(root: &Path) -> Result<()> {
    let cargo = |args: &[&str]| shell::run(root, "cargo", args);
    cargo(&["fmt", "--all", "--check"])?;
    tidy::run(root)?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    // Not among all targets, as the usual test run is not to play it; the one check of the feature, too.
    let faults =
        ["--package", "bellwether", "--bins", "--test", "faults", "--features", "failpoints", "--locked"];
    cargo(&[&["clippy"], &faults[..], &["--", "-D", "warnings"]].concat())?;
    if has("cargo-deny", "--version") {
        // The advisory database is not reachable from every network; bans, licences and sources need none.
        cargo(&["deny", "check", "bans", "licenses", "sources"])?;
    } else {
        say("cargo-deny is missing: bans, licences and sources were not checked (cargo install cargo-deny)");
    }
    two_commands(root)
}

/// The README's two commands, as they stand there, in this tree and with nothing else: the second passes every test, the
/// first shows the main thing and exits 0 only if every expectation held.
fn two_commands(root: &Path) -> Result<()> {
    let readme = std::fs::read_to_string(root.join("README.md")).context("could not read README.md")?;
    let blocks: Vec<&str> =
        readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [first, second, ..] = blocks.as_slice() else { bail!("README.md has no two commands") };
    for command in [second, first] {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (program, args) = words.split_first().context("README.md has an empty command")?;
        if *program != "cargo" {
            bail!("README.md's command {command:?} is not one of cargo");
        }
        shell::run(root, program, args)?;
    }
    Ok(())
}
