//! Evidence of a failure, as agents and controllers report it.

use bellwether_core::records::evidence as core;
use serde::{Deserialize, Serialize};

/// Evidence of a failure on a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Summary, one line; longer than 512 characters is cut.
    pub summary: String,
    /// Exit code of the step that failed; absent if it did not exit by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// End of the output, at most 2,048 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// Names of the failing checks, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing_checks: Vec<String>,
}

impl From<&core::Evidence> for Evidence {
    fn from(from: &core::Evidence) -> Self {
        Self {
            summary: from.summary.clone(),
            exit_code: from.exit_code,
            tail: from.tail.clone(),
            failing_checks: from.failing_checks.clone(),
        }
    }
}

impl From<Evidence> for core::Evidence {
    /// Shortens texts that are too long; a report is not rejected because its evidence is long.
    fn from(from: Evidence) -> Self {
        Self {
            summary: cut(&from.summary, 512),
            exit_code: from.exit_code,
            tail: keep_end(&from.tail, core::MAX_TAIL_BYTES),
            failing_checks: from.failing_checks.into_iter().take(16).map(|name| cut(&name, 64)).collect(),
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

fn keep_end(text: &str, most: usize) -> String {
    let from = text.len().saturating_sub(most);
    let start = (from..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    text.get(start..).unwrap_or_default().to_owned()
}
