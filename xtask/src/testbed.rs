//! Starts the testbed: several hosts on this machine, with the program as it is in this tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Builds the program and the testbed, and lets the person talk to it with `args`.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    shell::run(root, "cargo", &["build", "--quiet", "--workspace"])?;
    // Where this chore was built everything else is too.
    let own = std::env::current_exe().context("cannot find this program")?;
    let built = own.parent().context("this program has no folder")?;
    let mut command = Command::new(built.join("bellwether-testbed"));
    command.arg("--program").arg(built.join("bellwether")).args(args);
    let status = command.status().context("cannot start the testbed")?;
    if !status.success() {
        bail!("the testbed failed: {status}");
    }
    Ok(())
}
