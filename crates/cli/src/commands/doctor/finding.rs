//! What was found by one check.

use serde::Serialize;

/// Whether a check passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingState {
    /// It passed.
    Ok,
    /// It works, and may not for long, or not as it should.
    Warning,
    /// It does not work.
    Failed,
}

/// What was found by one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The part and what of it: `server/disk`.
    pub(crate) check: String,
    pub(crate) state: FindingState,
    /// A statement of fact.
    pub(crate) detail: String,
    /// What to do next, as an imperative; none if it passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { check: check.into(), state: FindingState::Ok, detail: detail.into(), next: None }
    }

    pub(super) fn warning(
        check: impl Into<String>,
        detail: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            check: check.into(),
            state: FindingState::Warning,
            detail: detail.into(),
            next: Some(next.into()),
        }
    }

    pub(super) fn failed(
        check: impl Into<String>,
        detail: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { state: FindingState::Failed, ..Self::warning(check, detail, next) }
    }
}
