//! Documents: the desired state of the objects that `apply` creates and changes.

mod one_of;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cluster::ClusterDocument;
use super::data::{FilterDocument, NodeDocument, ParamDocument};
use super::ensemble::EnsembleDocument;
use super::entity::EntityDocument;
use super::ignored::Ignored;
use super::reaction::ReactionDocument;
use super::schedule::ScheduleDocument;
use super::schema;
use super::sink::SinkDocument;
use super::work::{StageDocument, TaskDocument, WorkflowDocument};
use crate::v1::freeze::FreezeKind;
use crate::v1::profile::Params;

/// The desired state of an object. Absent fields take their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Document {
    /// A cluster.
    Cluster(ClusterDocument),
    /// An ensemble.
    Ensemble(Box<EnsembleDocument>),
    /// An entity and its desired version.
    Entity(Box<EntityDocument>),
    /// A saved filter.
    Filter(FilterDocument),
    /// A freeze.
    Freeze(FreezeDocument),
    /// The params of a node, and the profiles that it reads.
    Node(NodeDocument),
    /// A declared param.
    Param(ParamDocument),
    /// A pause of nodes.
    Pause(PauseDocument),
    /// A profile.
    Profile(ProfileDocument),
    /// A schedule of a workflow.
    Schedule(Box<ScheduleDocument>),
    /// A reaction to conditions.
    Reaction(Box<ReactionDocument>),
    /// A sink of events.
    Sink(Box<SinkDocument>),
    /// A slot.
    Slot(SlotDocument),
    /// A stage of workflows.
    Stage(StageDocument),
    /// A task.
    Task(TaskDocument),
    /// A workflow.
    Workflow(WorkflowDocument),
}

/// The desired state of a freeze.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreezeDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::freeze, required)]
    pub kind: Ignored,
    /// Freeze name, a DNS label.
    #[schema(example = "holidays")]
    pub name: String,
    /// Namespace of the freeze. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether the freeze is in force in every namespace; it requires the role `admin` and no `namespace`.
    /// Default false.
    #[schema(example = true)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_namespaces: bool,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The entity that the freeze covers; it covers all targets of all entities if both `entity` and
    /// `targets` are absent.
    #[schema(example = "web")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Selector of the targets that the freeze covers, of all entities. Excludes `entity`.
    #[schema(example = "zone=b")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<String>,
    /// `freeze`: no further target is updated; `stop`: no version is assigned, rollbacks included. Default
    /// freeze.
    #[schema(example = "stop")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_kind: Option<FreezeKind>,
    /// Reason for the freeze, at most 512 bytes; shown to everyone whose rollout waits.
    #[schema(example = "the shop is on television")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How long the freeze lasts, such as `4h`, at most 365 days; until it is deleted if absent.
    #[schema(example = "4h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

/// The desired state of a pause of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::pause, required)]
    pub kind: Ignored,
    /// Pause name, a DNS label.
    #[schema(example = "disks")]
    pub name: String,
    /// Namespace of the pause. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Selector of the nodes that are paused, nodes that match later included; `all` for every node of the
    /// namespace.
    #[schema(example = "role=db")]
    pub nodes: String,
    /// Reason for the pause, at most 512 bytes; shown to everyone whose rollout waits.
    #[schema(example = "the disks are being replaced")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

/// The desired state of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::profile, required)]
    pub kind: Ignored,
    /// Profile name, a DNS label.
    #[schema(example = "greeting")]
    pub name: String,
    /// Namespace of the profile. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether a change reaches the nodes that read the profile at once, without a rollout.
    #[schema(example = false)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// All params of the profile; if they differ from the newest revision, a new revision is created.
    #[schema(value_type = Object, example = json!({"workers": 4}))]
    pub params: Params,
    /// Reason for the new revision, recorded in its history; it is not compared.
    #[schema(example = "more load")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

/// The desired state of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::slot, required)]
    pub kind: Ignored,
    /// Slot name, a DNS label.
    #[schema(example = "reboot")]
    pub name: String,
    /// Namespace of the slot. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Number of holders at the same time, 0 to 1,000. Default 1.
    #[schema(example = 2)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// How long a holder keeps the slot without renewing it, such as `30m`, at most 30 days. Default 1h.
    #[schema(example = "30m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl Document {
    /// The object's kind, as it is written.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cluster(_) => "cluster",
            Self::Ensemble(_) => "ensemble",
            Self::Entity(_) => "entity",
            Self::Filter(_) => "filter",
            Self::Freeze(_) => "freeze",
            Self::Node(_) => "node",
            Self::Param(_) => "param",
            Self::Pause(_) => "pause",
            Self::Profile(_) => "profile",
            Self::Schedule(_) => "schedule",
            Self::Reaction(_) => "reaction",
            Self::Sink(_) => "sink",
            Self::Slot(_) => "slot",
            Self::Stage(_) => "stage",
            Self::Task(_) => "task",
            Self::Workflow(_) => "workflow",
        }
    }

    /// Name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cluster(document) => &document.name,
            Self::Ensemble(document) => &document.name,
            Self::Entity(document) => &document.name,
            Self::Filter(document) => &document.name,
            Self::Freeze(document) => &document.name,
            Self::Node(document) => &document.name,
            Self::Param(document) => &document.name,
            Self::Pause(document) => &document.name,
            Self::Profile(document) => &document.name,
            Self::Schedule(document) => &document.name,
            Self::Reaction(document) => &document.name,
            Self::Sink(document) => &document.name,
            Self::Slot(document) => &document.name,
            Self::Stage(document) => &document.name,
            Self::Task(document) => &document.name,
            Self::Workflow(document) => &document.name,
        }
    }

    /// Namespace that the document names; `None` if it names none.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Cluster(document) => document.namespace.as_deref(),
            Self::Ensemble(document) => document.namespace.as_deref(),
            Self::Entity(document) => document.namespace.as_deref(),
            Self::Filter(document) => document.namespace.as_deref(),
            Self::Freeze(document) => document.namespace.as_deref(),
            Self::Node(document) => document.namespace.as_deref(),
            Self::Param(document) => document.namespace.as_deref(),
            Self::Pause(document) => document.namespace.as_deref(),
            Self::Profile(document) => document.namespace.as_deref(),
            Self::Schedule(document) => document.namespace.as_deref(),
            Self::Reaction(document) => document.namespace.as_deref(),
            Self::Sink(document) => document.namespace.as_deref(),
            Self::Slot(document) => document.namespace.as_deref(),
            Self::Stage(document) => document.namespace.as_deref(),
            Self::Task(document) => document.namespace.as_deref(),
            Self::Workflow(document) => document.namespace.as_deref(),
        }
    }

    /// Labels of the object, which `apply --prune` selects by; `None` if its kind has none and is never pruned.
    #[must_use]
    pub const fn labels(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Cluster(document) => Some(&document.labels),
            Self::Ensemble(document) => Some(&document.labels),
            Self::Entity(document) => Some(&document.labels),
            Self::Freeze(document) => Some(&document.labels),
            Self::Filter(_) | Self::Node(_) | Self::Param(_) => None,
            Self::Pause(document) => Some(&document.labels),
            Self::Profile(document) => Some(&document.labels),
            Self::Schedule(document) => Some(&document.labels),
            Self::Reaction(document) => Some(&document.labels),
            Self::Sink(document) => Some(&document.labels),
            Self::Slot(document) => Some(&document.labels),
            Self::Stage(document) => Some(&document.labels),
            Self::Task(document) => Some(&document.labels),
            Self::Workflow(document) => Some(&document.labels),
        }
    }

    /// Whether it says which version is to run, so that applying it may start a rollout.
    #[must_use]
    pub const fn has_version(&self) -> bool {
        matches!(self, Self::Entity(document) if document.version.is_some())
    }

    /// Whether it is a freeze that is in force in every namespace.
    #[must_use]
    pub const fn is_global(&self) -> bool {
        match self {
            Self::Freeze(document) => document.all_namespaces,
            Self::Cluster(_)
            | Self::Ensemble(_)
            | Self::Entity(_)
            | Self::Filter(_)
            | Self::Node(_)
            | Self::Param(_)
            | Self::Pause(_)
            | Self::Profile(_)
            | Self::Schedule(_)
            | Self::Reaction(_)
            | Self::Sink(_)
            | Self::Slot(_)
            | Self::Stage(_)
            | Self::Task(_)
            | Self::Workflow(_) => false,
        }
    }
}
