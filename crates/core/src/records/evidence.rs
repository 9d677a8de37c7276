//! Evidence: output, exit code and failing checks of a failure on a node. Part of reports and target states.

use alloc::string::String;
use alloc::vec::Vec;

/// Longest kept tail of output, in bytes: enough for a stack trace, small enough for every report.
pub const MAX_TAIL_BYTES: usize = 2_048;

/// Details of a failure on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// One line for a person: "static: exit code 1", "check http failing: status 500".
    pub summary: String,
    /// The exit code of the step that failed, if one ran to its end.
    pub exit_code: Option<i32>,
    /// The last output lines of the failing step, at most [`MAX_TAIL_BYTES`].
    pub tail: String,
    /// Names of the checks that fail, in order.
    pub failing_checks: Vec<String>,
}

impl Evidence {
    /// Evidence that consists of a summary only.
    #[must_use]
    pub fn of(summary: String) -> Self {
        Self { summary, ..Self::default() }
    }
}
