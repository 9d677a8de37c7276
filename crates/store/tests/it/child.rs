//! Tests that need a process of their own to kill or to limit: this test program again, told to be a child.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The variable that tells a child which directory to work in. Without it a child's entry does nothing, as
/// then it is only the test runner passing by.
const DIRECTORY: &str = "BELLWETHER_STORE_TEST_CHILD";

/// Starts this program as the child whose entry is the test `entry`, through `shell` if one is given: a line
/// that must end in running its arguments.
pub(crate) fn start(entry: &str, directory: &Path, shell: Option<&str>) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match shell {
        Some(line) => {
            let mut command = Command::new("sh");
            command.args(["-c", line, "sh"]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(["--exact", entry, "--nocapture"]).env(DIRECTORY, directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The directory to work in, if this process is a child.
pub(crate) fn directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}
