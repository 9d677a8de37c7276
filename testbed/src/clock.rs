//! Another time of day for a process: only the wall clock, what counts time goes on as it does.

use anyhow::{Context, Result};

/// What the environment says to see a time of day apart from this machine's by `offset`, like `+1h` or `-90s`.
///
/// # Errors
/// When the package faketime is not installed.
pub(crate) fn environment(offset: &str) -> Result<Vec<String>> {
    let places = std::fs::read_dir("/usr/lib").context("could not read /usr/lib")?;
    let library = places
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists())
        .context("the package faketime is not installed")?;
    Ok(vec![
        format!("LD_PRELOAD={}", library.display()),
        format!("FAKETIME={offset}"),
        "DONT_FAKE_MONOTONIC=1".to_owned(),
    ])
}
