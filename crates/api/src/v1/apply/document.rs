//! Documents: the objects that `apply` takes, each as a file says it is to be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entity::EntityDocument;
use super::ignored::Ignored;
use crate::v1::freeze::FreezeKind;
use crate::v1::profile::Params;

/// An object as it is to be. What a document leaves out takes its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Document {
    /// An entity, and the version that it is to be at.
    Entity(Box<EntityDocument>),
    /// A freeze.
    Freeze(FreezeDocument),
    /// A pause of nodes.
    Pause(PauseDocument),
    /// A profile.
    Profile(ProfileDocument),
    /// A slot.
    Slot(SlotDocument),
}

/// A freeze as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreezeDocument {
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub kind: Ignored,
    /// Its name, a DNS label.
    #[schema(example = "holidays")]
    pub name: String,
    /// Its namespace. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether it is in force in every namespace; for admins, and without a namespace. Default false.
    #[schema(example = true)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_namespaces: bool,
    /// Labels by which `apply --prune` finds it again, at most 64.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The entity it covers; with neither entity nor targets it covers everything.
    #[schema(example = "web")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// A selector of the targets it covers, of every entity.
    #[schema(example = "zone=b")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<String>,
    /// `freeze`: no target starts updating; `stop`: nothing at all is dispatched, rollbacks included. Default freeze.
    #[schema(example = "stop")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<FreezeKind>,
    /// Why, for whoever waits; at most 512 bytes.
    #[schema(example = "the shop is on television")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How long it lasts, like `4h`, at most a year; until a person ends it if absent.
    #[schema(example = "4h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub status: Ignored,
}

/// A pause of nodes as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseDocument {
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub kind: Ignored,
    /// Its name, a DNS label.
    #[schema(example = "disks")]
    pub name: String,
    /// Its namespace. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels by which `apply --prune` finds it again, at most 64.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Which nodes, now and later; `all` for every one of the namespace.
    #[schema(example = "role=db")]
    pub nodes: String,
    /// Why, for whoever waits; at most 512 bytes.
    #[schema(example = "the disks are being replaced")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub status: Ignored,
}

/// A profile as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileDocument {
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub kind: Ignored,
    /// Its name, a DNS label.
    #[schema(example = "greeting")]
    pub name: String,
    /// Its namespace. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels by which `apply --prune` finds it again, at most 64.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// All of its params; others than its newest revision has are a new revision.
    #[schema(value_type = Object, example = json!({"workers": 4}))]
    pub params: Params,
    /// Why, for the new revision's history; it is not compared.
    #[schema(example = "more load")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub status: Ignored,
}

/// A slot as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotDocument {
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub kind: Ignored,
    /// Its name, a DNS label.
    #[schema(example = "reboot")]
    pub name: String,
    /// Its namespace. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels by which `apply --prune` finds it again, at most 64.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How many may hold it at once, 0 to 1,000. Default 1.
    #[schema(example = 2)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// How long each holds it before it ends by itself, like `30m`, at most 30 days. Default 1h.
    #[schema(example = "30m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Passed over.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub status: Ignored,
}

impl Document {
    /// The word for its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Entity(_) => "entity",
            Self::Freeze(_) => "freeze",
            Self::Pause(_) => "pause",
            Self::Profile(_) => "profile",
            Self::Slot(_) => "slot",
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Entity(document) => &document.name,
            Self::Freeze(document) => &document.name,
            Self::Pause(document) => &document.name,
            Self::Profile(document) => &document.name,
            Self::Slot(document) => &document.name,
        }
    }

    /// The namespace that it names, if it does.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Entity(document) => document.namespace.as_deref(),
            Self::Freeze(document) => document.namespace.as_deref(),
            Self::Pause(document) => document.namespace.as_deref(),
            Self::Profile(document) => document.namespace.as_deref(),
            Self::Slot(document) => document.namespace.as_deref(),
        }
    }

    /// Its labels.
    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Entity(document) => &document.labels,
            Self::Freeze(document) => &document.labels,
            Self::Pause(document) => &document.labels,
            Self::Profile(document) => &document.labels,
            Self::Slot(document) => &document.labels,
        }
    }

    /// Whether it is in force in every namespace; freezes only.
    #[must_use]
    pub const fn is_global(&self) -> bool {
        match self {
            Self::Freeze(document) => document.all_namespaces,
            Self::Entity(_) | Self::Pause(_) | Self::Profile(_) | Self::Slot(_) => false,
        }
    }
}
