//! A shifted wall clock for one process; its monotonic clock is not affected.

use anyhow::{Context, Result};

/// Environment variables that shift a process's wall clock by `offset`, such as `+1h` or `-90s`.
///
/// # Errors
/// If the package faketime is not installed.
pub(crate) fn environment(offset: &str) -> Result<Vec<String>> {
    let places = std::fs::read_dir("/usr/lib").context("cannot read /usr/lib")?;
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
