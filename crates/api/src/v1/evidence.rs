//! Evidence of a failure, as it travels.

use bellwether_core::records::evidence as core;
use serde::{Deserialize, Serialize};

/// What a failure looked like on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// One line for a person.
    pub summary: String,
    /// The failing step's exit code, if it ran to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Last output lines, at most 2,048 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// Names of failing checks.
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
    /// Cuts over-long texts; evidence is for reading, and a long one is no reason to lose a report.
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
