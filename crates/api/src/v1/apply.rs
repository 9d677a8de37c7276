//! Requests and answers of `apply`.

mod cluster;
mod conversion;
mod data;
mod document;
mod ensemble;
mod entity;
mod ignored;
mod limit;
mod reaction;
mod schedule;
mod schema;
mod sink;
mod work;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::cluster::ClusterDocument;
pub use self::data::{FilterDocument, NodeDocument, ParamDocument};
pub use self::document::{Document, FreezeDocument, PauseDocument, ProfileDocument, SlotDocument};
pub use self::ensemble::EnsembleDocument;
pub use self::entity::EntityDocument;
pub use self::ignored::Ignored;
pub use self::reaction::ReactionDocument;
pub use self::schedule::ScheduleDocument;
pub use self::sink::SinkDocument;
pub use self::work::{StageDocument, TaskDocument, WorkflowDocument};

/// Largest request to apply documents, in bytes: 16 MiB.
pub const MAX_APPLY_BYTES: usize = 16 << 20;

/// Most documents in one request: a transaction takes far fewer, and what all of them change is held in memory until they are answered.
pub const MAX_APPLY_DOCUMENTS: usize = 10_000;

/// Request to apply documents, at most 16 MiB. Nothing is changed unless all of them can be applied. Changes that one
/// transaction takes are made all at once; more are made in several transactions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The desired state of each object; at least one document, at most 10,000, and each object at most once.
    #[serde(default, deserialize_with = "limit::documents")]
    pub documents: Vec<Document>,
    /// Whether to answer only what would change, without changing anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Labels of the objects to prune: objects of the namespace that carry all of these labels and are not
    /// among the documents are deleted. Every document must carry these labels too.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<BTreeMap<String, String>>,
}

/// The changes that an apply made, or would make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Applied {
    /// The objects of the documents in their order, followed by the pruned objects.
    pub objects: Vec<AppliedObject>,
    /// Whether this was a dry run: nothing was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Number of transactions that made the changes, or would make them; 0 if nothing changes. Each is made as a whole,
    /// and an object is never divided.
    #[serde(default)]
    pub transactions: u32,
}

/// The change of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AppliedObject {
    /// Kind and name of the object, as `kind/name`.
    pub object: String,
    /// Namespace of the object; absent for a freeze of all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What was done to the object.
    pub outcome: ApplyOutcome,
    /// The fields that change, ordered by name; empty for a pruned object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// The version of the rollout that was requested; absent if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<String>,
    /// Remark for a person, one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What an apply does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyOutcome {
    /// The object did not exist.
    Created,
    /// Some of its fields changed.
    Changed,
    /// The object already matches the document.
    Unchanged,
    /// The object was deleted because it carries the labels to prune and no document contains it.
    Pruned,
}

/// The change of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldChange {
    /// Path of the field, such as `policy.batch`.
    pub field: String,
    /// Value before the change; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Value after the change; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}
