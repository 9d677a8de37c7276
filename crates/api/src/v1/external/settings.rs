//! Settings of an entity with external targets.

use bellwether_core::records::external as core;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read_some};

/// Settings of external targets, which controllers report: after how long without a report a target is
/// unreachable or removed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalSettings {
    /// Time without a report after which a target is unreachable, at least `1s`; `5m` if absent.
    #[schema(example = "5m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable_after: Option<String>,
    /// Time without a report after which a target is removed, longer than `unreachable_after`; `1h` if
    /// absent.
    #[schema(example = "1h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_after: Option<String>,
}

impl From<core::StalenessLimits> for ExternalSettings {
    fn from(from: core::StalenessLimits) -> Self {
        Self {
            unreachable_after: Some(from.unreachable_after.to_string()),
            remove_after: Some(from.remove_after.to_string()),
        }
    }
}

impl TryFrom<&ExternalSettings> for core::StalenessLimits {
    type Error = ShapeError;
    fn try_from(from: &ExternalSettings) -> Result<Self, ShapeError> {
        let default = Self::default();
        let unreachable_after = read_some("unreachable_after", from.unreachable_after.as_deref())?;
        let remove_after = read_some("remove_after", from.remove_after.as_deref())?;
        let patience = Self {
            unreachable_after: unreachable_after.unwrap_or(default.unreachable_after),
            remove_after: remove_after.unwrap_or(default.remove_after),
        };
        patience.check().map_err(|(field, reason)| ShapeError::at(field, reason))
    }
}
