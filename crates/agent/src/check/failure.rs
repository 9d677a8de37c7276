//! A failed probe: its message, and what was said meanwhile.

/// Why a probe failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeFailure {
    pub(crate) message: String,
    /// The beginning of the body of the response, or the end of the output of the command; empty if there was none.
    pub(super) said: String,
}

impl From<String> for ProbeFailure {
    fn from(message: String) -> Self {
        Self { message, said: String::new() }
    }
}
