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

    /// The summary, with the failing checks and the last line of output that it does not contain.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = self.summary.clone();
        if self.failing_checks.iter().any(|check| !line.contains(check.as_str())) {
            line.push_str(&alloc::format!("; failing checks: {}", self.failing_checks.join(", ")));
        }
        let last = self.tail.lines().map(str::trim).rfind(|text| !text.is_empty());
        if let Some(last) = last.filter(|last| !self.summary.contains(last)) {
            line.push_str(&alloc::format!("; last output: {last}"));
        }
        line
    }
}
