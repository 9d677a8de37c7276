//! Starting other programs, and saying which.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Says something on stderr.
#[expect(clippy::print_stderr, reason = "a chore speaks to the person who started it")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// The folder that cargo builds into.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Runs a program in `dir`; its failure is ours.
pub(crate) fn run(dir: &Path, program: &str, args: &[&str]) -> Result<()> {
    say(&format!("$ {program} {}", args.join(" ")));
    let status = Command::new(program).args(args).current_dir(dir).stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} {} failed: {status}", args.join(" "));
    }
    Ok(())
}

/// Runs a program in `dir` and returns what it prints; its failure is ours.
pub(crate) fn output(dir: &Path, program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program answers at all.
pub(crate) fn has(program: &str, arg: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(arg).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
