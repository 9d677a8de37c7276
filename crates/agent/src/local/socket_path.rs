//! Where the socket of a data directory is.

use std::path::{Path, PathBuf};

/// The socket's name in the data directory.
const SOCKET: &str = "agent.sock";

/// Where the socket of a data directory is.
#[must_use]
pub fn socket(data_dir: &Path) -> PathBuf {
    data_dir.join(SOCKET)
}
