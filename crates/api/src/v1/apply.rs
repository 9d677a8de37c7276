//! Applying documents: what is sent, and what it changes.

mod conversion;
mod document;
mod entity;
mod ignored;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::document::{Document, FreezeDocument, PauseDocument, ProfileDocument, SlotDocument};
pub use self::entity::EntityDocument;
pub use self::ignored::Ignored;

/// Applies documents in one transaction: all of them, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The objects as they are to be, each at most once; at least one.
    #[serde(default)]
    pub documents: Vec<Document>,
    /// Answer what would change, and change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Delete the namespace's objects that carry all of these labels and are not among the documents. Every document must
    /// carry them too.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<BTreeMap<String, String>>,
}

/// What an apply changed, or would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Applied {
    /// The documents' objects in their order, then those that were pruned.
    pub objects: Vec<AppliedObject>,
    /// Whether nothing was written because only the changes were asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What an apply did to one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AppliedObject {
    /// `kind/name`.
    pub object: String,
    /// Its namespace; absent for a freeze of every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What was done to it.
    pub outcome: ApplyOutcome,
    /// The fields that change, by name; of a pruned object none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// The version that a rollout was requested to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<String>,
    /// What a person may want to know about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What an apply did to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyOutcome {
    /// There was none of this name.
    Created,
    /// Some of its fields changed.
    Changed,
    /// It is as the document has it.
    Unchanged,
    /// It was deleted, because no document names it.
    Pruned,
}

/// One field that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldChange {
    /// Its path, like `policy.batch`.
    pub field: String,
    /// Its value before; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Its value after; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}
