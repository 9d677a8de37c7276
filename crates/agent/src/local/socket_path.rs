//! The path of the agent's socket.

use std::path::{Path, PathBuf};

/// The socket's name in the data directory.
const SOCKET: &str = "agent.sock";

/// The path of the socket in a data directory.
#[must_use]
pub fn socket(data_dir: &Path) -> PathBuf {
    data_dir.join(SOCKET)
}
