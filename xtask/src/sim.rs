//! Plays histories under the simulator, optimised: a thousand of them are minutes then.

use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Builds the simulator and tells it `args`.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let args = args.iter().map(String::as_str);
    let cargo = ["run", "--quiet", "--release", "--package", "bellwether-sim", "--"];
    shell::run(root, "cargo", &cargo.into_iter().chain(args).collect::<Vec<_>>())
}
