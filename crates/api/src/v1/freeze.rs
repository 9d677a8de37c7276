//! Freezes: requests, answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::freeze as core;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, read, read_some, selector};
use crate::word::words;

words! {
    /// What a freeze prevents.
    FreezeKind = core::FreezeKind {
        /// No further target is updated; rollbacks continue, and targets in flight finish.
        Freeze = "freeze",
        /// No version is assigned at all, rollbacks included, and deadlines do not run.
        Stop = "stop",
    }
}

/// Longest duration of a freeze that ends by itself.
const LONGEST: Span = Span::from_secs(365 * 24 * 60 * 60);

/// Request to create or replace a freeze.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreezeSpec {
    /// The entity that the freeze covers; it covers all targets of all entities if both `entity` and
    /// `targets` are absent.
    #[schema(example = "web")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Selector of the targets that the freeze covers, of all entities. Excludes `entity`.
    #[schema(example = "zone=b")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<String>,
    /// What the freeze prevents; `freeze` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FreezeKind>,
    /// Reason for the freeze, at most 512 bytes; shown to everyone whose rollout waits.
    #[schema(example = "the shop is on television")]
    #[serde(default)]
    pub reason: String,
    /// How long the freeze lasts, such as `4h`, at most 365 days; until it is deleted if absent.
    #[schema(example = "4h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
}

/// A freeze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Freeze {
    /// Freeze name.
    pub name: String,
    /// The entity that the freeze covers; absent if it covers targets or everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Selector of the targets that the freeze covers; absent if it covers an entity or everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<String>,
    /// What the freeze prevents.
    pub kind: FreezeKind,
    /// Name of the token of the person or program that set it.
    pub by: String,
    /// The reason that was given; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Time at which it was set, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Time at which it ends by itself, in milliseconds since the Unix epoch; absent if a person has to
    /// delete it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Labels that `apply` set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A freeze with its present state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FreezeView {
    /// The freeze.
    pub freeze: Freeze,
    /// Whether it is in force in every namespace.
    pub global: bool,
    /// Whether it has ended by itself; it stays listed until it is replaced or deleted.
    pub expired: bool,
    /// Hint for the person who set it, one line; only in the answer to that request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl FreezeView {
    /// The state of a freeze at `now`.
    #[must_use]
    pub fn at(freeze: &core::Freeze, global: bool, now: Timestamp) -> Self {
        Self { freeze: freeze.into(), global, expired: !freeze.is_in_force(now), hint: None }
    }
}

impl FreezeSpec {
    /// Reads the specification: what the freeze covers, what it prevents, and how long it lasts.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn read(&self) -> Result<(core::FreezeScope, core::FreezeKind, Option<Span>), ShapeError> {
        let scope = scope(self.entity.as_deref(), self.targets.as_deref())?;
        let kind = self.kind.unwrap_or(FreezeKind::Freeze).into();
        let lasts: Option<Span> = read_some("lasts", self.lasts.as_deref())?;
        match lasts {
            Some(Span::ZERO) => Err(ShapeError::at("lasts", "must be over 0s")),
            Some(span) if span > LONGEST => {
                let reason = "must be at most 1 year; omit it for a freeze without an end";
                Err(ShapeError::at("lasts", reason))
            }
            Some(_) | None => Ok((scope, kind, lasts)),
        }
    }
}

/// Reads the scope of a freeze.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn scope(entity: Option<&str>, targets: Option<&str>) -> Result<core::FreezeScope, ShapeError> {
    match (entity, targets) {
        (None, None) => Ok(core::FreezeScope::Everything),
        (Some(entity), None) => Ok(core::FreezeScope::Entity(read("entity", entity)?)),
        (None, Some(targets)) => Ok(core::FreezeScope::Targets(selector("targets", targets)?)),
        (Some(_), Some(_)) => Err(ShapeError::at("targets", "entity and targets exclude each other")),
    }
}

impl From<&core::Freeze> for Freeze {
    fn from(from: &core::Freeze) -> Self {
        let (entity, targets) = match &from.scope {
            core::FreezeScope::Everything => (None, None),
            core::FreezeScope::Entity(entity) => (Some(entity.to_string()), None),
            core::FreezeScope::Targets(selector) => (None, Some(selector.to_string())),
        };
        Self {
            name: from.name.to_string(),
            entity,
            targets,
            kind: from.kind.into(),
            by: from.annotation.by.to_string(),
            reason: from.annotation.reason.clone(),
            at_ms: from.annotation.at.as_millis(),
            until_ms: from.until.map(Timestamp::as_millis),
            labels: labels_out(&from.labels),
        }
    }
}

impl TryFrom<Freeze> for core::Freeze {
    type Error = ShapeError;
    fn try_from(from: Freeze) -> Result<Self, ShapeError> {
        Ok(Self {
            name: read("name", &from.name)?,
            scope: scope(from.entity.as_deref(), from.targets.as_deref())?,
            kind: from.kind.into(),
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
            until: from.until_ms.map(Timestamp::from_millis),
            labels: labels_in(&from.labels)?,
        })
    }
}
