//! Everything a change must pass, in the order of seconds.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::fuzz;
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
    fuzz::is_locked(root)?;
    dependencies(root)?;
    two_commands(root)?;
    fuzz::run(root, &fuzz::Fuzz { seconds: 60, runs: None, target: None })
}

/// What may come in from outside, by `deny.toml`. A person may do without cargo-deny, CI may not.
fn dependencies(root: &Path) -> Result<()> {
    if has("cargo-deny", "--version") {
        // The advisory database is not reachable from every network; bans, licences and sources need none.
        return shell::run(root, "cargo", &["deny", "check", "bans", "licenses", "sources"]);
    }
    let unchecked = "bans, licenses and sources of dependencies were not checked: cargo-deny is missing \
                     (cargo install cargo-deny --locked)";
    if is_ci() {
        bail!("{unchecked}");
    }
    say(unchecked);
    Ok(())
}

/// Whether this is CI, which says so by `CI=true`.
#[expect(clippy::disallowed_methods, reason = "no part of the product: a chore asks who started it")]
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// The README's two commands, as they stand there, in this tree and with nothing else: the second passes every test, the
/// first shows the main thing and exits 0 only if every expectation held.
fn two_commands(root: &Path) -> Result<()> {
    let readme = std::fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
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
