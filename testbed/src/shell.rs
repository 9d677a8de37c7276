//! Running a line as an administrator would type it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a line in a shell and returns its output; fails with its error output.
pub(crate) fn sh(line: &str) -> Result<String> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null());
    output(&mut command, line)
}

/// Runs a command and returns its output; fails with its error output.
pub(crate) fn output(command: &mut Command, what: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {what}"))?;
    if !output.status.success() {
        bail!("{what}: {}{}", text(&output.stdout), text(&output.stderr));
    }
    Ok(text(&output.stdout))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
