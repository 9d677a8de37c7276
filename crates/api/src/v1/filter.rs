//! Saved filters: requests, answers and stored records.

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::filter as core;
use bellwether_core::words::counter::FilterRevision;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// What a saved filter is of unless it says another list.
pub const DEFAULT_LIST: &str = "nodes";

/// Request to save a filter, or to change a saved one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
    /// The list that it is of, as its path ends: `nodes`, `entities`, `rollouts` and so on. Default `nodes`.
    #[serde(default = "nodes")]
    #[schema(default = "nodes")]
    pub of: String,
    /// The filter, over the fields of that list; it may name other saved filters as `@NAME`. At most 4 KiB.
    pub filter: String,
    /// What it is for, at most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A saved filter, as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Filter {
    /// Its name: filters of its list name it as `@NAME`.
    pub name: String,
    /// Number of its last change, from 1.
    pub revision: u64,
    /// The list that it is of.
    pub of: String,
    /// The filter.
    pub filter: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
}

fn nodes() -> String {
    DEFAULT_LIST.to_owned()
}

impl From<&core::SavedFilter> for Filter {
    fn from(from: &core::SavedFilter) -> Self {
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            of: from.of.to_string(),
            filter: from.text.clone(),
            description: from.description.clone(),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
        }
    }
}

impl TryFrom<Filter> for core::SavedFilter {
    type Error = ShapeError;
    fn try_from(from: Filter) -> Result<Self, ShapeError> {
        Ok(Self {
            name: read("name", &from.name)?,
            revision: FilterRevision::new(from.revision),
            of: read("of", &from.of)?,
            text: from.filter,
            description: from.description,
            annotation: Annotation::of(read("by", &from.by)?, Timestamp::from_millis(from.at_ms)),
        })
    }
}
