//! Rollout policies, as people write them and as they are kept: amounts like `5%` or `3`, times like `90s`.

use bellwether_core::records::policy as core;
use bellwether_core::records::policy::{OnFailure, Supersede};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read_some};

/// How carefully an entity's targets change. What is absent takes its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Most targets in flight at once, `5%` or a count; `0` holds. Default 5%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Share of targets that must succeed. Default 100%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<String>,
    /// Failures tolerated, a count or share; one more and the version is bad. Default: what `success` leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<String>,
    /// Silent targets tolerated before the rollout pauses. Default 10%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// Uninterrupted healthy time on the version before a target counts. Default 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<String>,
    /// From assignment to success, else failed; must exceed `soak`. Default 120s + soak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Whether an error or failed check fails a target at once. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_fast: Option<bool>,
    /// Apply attempts per target, after the first, before it is failed. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// `rollback`, `pause` or `continue`. Default rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Most targets in flight on the way back. Default 100%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// What a new version does to a rollout under way: `replace`, `finish` or `refuse`. Default replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersede: Option<String>,
}

const ON_FAILURE: [(OnFailure, &str); 3] =
    [(OnFailure::Rollback, "rollback"), (OnFailure::Pause, "pause"), (OnFailure::Continue, "continue")];

const SUPERSEDE: [(Supersede, &str); 3] =
    [(Supersede::Replace, "replace"), (Supersede::Finish, "finish"), (Supersede::Refuse, "refuse")];

impl From<&core::Policy> for Policy {
    fn from(from: &core::Policy) -> Self {
        let draft = from.to_draft();
        Self {
            batch: draft.batch.map(|amount| amount.to_string()),
            success: draft.success.map(|share| share.to_string()),
            failures: draft.failures.map(|amount| amount.to_string()),
            unreachable: draft.unreachable.map(|amount| amount.to_string()),
            soak: draft.soak.map(|span| span.to_string()),
            deadline: draft.deadline.map(|span| span.to_string()),
            fail_fast: draft.fail_fast,
            retries: draft.retries,
            on_failure: draft.on_failure.and_then(|value| word(&ON_FAILURE, value)),
            rollback: draft.rollback.map(|amount| amount.to_string()),
            supersede: draft.supersede.and_then(|value| word(&SUPERSEDE, value)),
        }
    }
}

impl TryFrom<&Policy> for core::Policy {
    type Error = ShapeError;
    fn try_from(from: &Policy) -> Result<Self, ShapeError> {
        Self::new(core::Draft {
            batch: read_some("batch", from.batch.as_deref())?,
            success: read_some("success", from.success.as_deref())?,
            failures: read_some("failures", from.failures.as_deref())?,
            unreachable: read_some("unreachable", from.unreachable.as_deref())?,
            soak: read_some("soak", from.soak.as_deref())?,
            deadline: read_some("deadline", from.deadline.as_deref())?,
            fail_fast: from.fail_fast,
            retries: from.retries,
            on_failure: choice("on_failure", &ON_FAILURE, from.on_failure.as_deref())?,
            rollback: read_some("rollback", from.rollback.as_deref())?,
            supersede: choice("supersede", &SUPERSEDE, from.supersede.as_deref())?,
        })
        .map_err(|error| ShapeError::at(error.field, error.reason))
    }
}

impl Policy {
    /// This policy with what `over` says in place of its own.
    #[must_use]
    pub fn overlaid(self, over: Self) -> Self {
        Self {
            batch: over.batch.or(self.batch),
            success: over.success.or(self.success),
            failures: over.failures.or(self.failures),
            unreachable: over.unreachable.or(self.unreachable),
            soak: over.soak.or(self.soak),
            deadline: over.deadline.or(self.deadline),
            fail_fast: over.fail_fast.or(self.fail_fast),
            retries: over.retries.or(self.retries),
            on_failure: over.on_failure.or(self.on_failure),
            rollback: over.rollback.or(self.rollback),
            supersede: over.supersede.or(self.supersede),
        }
    }
}

/// The word for a value.
fn word<T: Copy + PartialEq>(words: &[(T, &str)], value: T) -> Option<String> {
    words.iter().find(|(known, _)| *known == value).map(|(_, word)| (*word).to_owned())
}

/// Reads a word of a closed list.
fn choice<T: Copy>(place: &str, words: &[(T, &str)], text: Option<&str>) -> Result<Option<T>, ShapeError> {
    let Some(text) = text else { return Ok(None) };
    let found = words.iter().find(|(_, word)| *word == text).map(|(value, _)| *value);
    let known = words.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| ShapeError::at(place, format!("{text:?} is not one of {known}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_was_never_said_follows_a_new_soak() {
        let text = |text: &str| Some(text.to_owned());
        let first = core::Policy::try_from(&Policy::default()).unwrap();
        let kept = Policy::from(&first);
        let longer = kept.overlaid(Policy { soak: text("10m"), ..Policy::default() });
        assert_eq!(core::Policy::try_from(&longer).unwrap().deadline().to_string(), "12m");
        let said = Policy::from(&first).overlaid(Policy { deadline: text("5m"), ..Policy::default() });
        let kept = Policy::from(&core::Policy::try_from(&said).unwrap());
        let longer = kept.overlaid(Policy { soak: text("10m"), ..Policy::default() });
        assert!(core::Policy::try_from(&longer).is_err(), "a deadline that was said stays");
    }
}
