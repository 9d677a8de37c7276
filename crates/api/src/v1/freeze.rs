//! Freezes, as they travel and are kept.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::freeze as core;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, read, read_some};
use crate::word::words;

words! {
    /// What a freeze holds back.
    FreezeKind = core::FreezeKind {
        /// No further target is updated; rollbacks continue, and targets in flight finish.
        Freeze = "freeze",
        /// No version is dispatched at all, rollbacks included, and deadlines do not run.
        Stop = "stop",
    }
}

/// Longest time that a freeze may last by itself.
const LONGEST: Span = Span::from_secs(365 * 24 * 60 * 60);

/// Asks for a freeze.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreezeSpec {
    /// The entity it covers; with neither entity nor targets it covers everything.
    #[schema(example = "web")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// A selector of the targets it covers, of every entity.
    #[schema(example = "zone=b")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<String>,
    /// What the freeze holds back; `freeze` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FreezeKind>,
    /// Why, for whoever waits.
    #[schema(example = "the shop is on television")]
    #[serde(default)]
    pub reason: String,
    /// How long it lasts, like `4h`, at most a year; until a person ends it if absent.
    #[schema(example = "4h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
}

/// A freeze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Freeze {
    /// Its name.
    pub name: String,
    /// The entity it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// A selector of the targets it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<String>,
    /// What the freeze holds back.
    pub kind: FreezeKind,
    /// Whose it is.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Since when.
    pub at_ms: u64,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A freeze, with what the server knows of it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FreezeView {
    /// The freeze.
    pub freeze: Freeze,
    /// Whether it holds in every namespace.
    pub global: bool,
    /// Whether it ended by itself; it stays listed until it is replaced or deleted.
    pub expired: bool,
    /// What may have been forgotten; told when it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl FreezeView {
    /// A freeze as it is at `now`.
    #[must_use]
    pub fn at(freeze: &core::Freeze, global: bool, now: Timestamp) -> Self {
        Self { freeze: freeze.into(), global, expired: !freeze.is_in_force(now), hint: None }
    }
}

impl FreezeSpec {
    /// Reads it: what it covers, how strict it is, and how long it lasts.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn read(&self) -> Result<(core::FreezeScope, core::FreezeKind, Option<Span>), ShapeError> {
        let scope = scope(self.entity.as_deref(), self.targets.as_deref())?;
        let kind = self.kind.unwrap_or(FreezeKind::Freeze).into();
        let lasts: Option<Span> = read_some("lasts", self.lasts.as_deref())?;
        match lasts {
            Some(Span::ZERO) => Err(ShapeError::at("lasts", "a freeze lasts longer than nothing")),
            Some(span) if span > LONGEST => {
                let reason = "a freeze lasts at most a year by itself; without it, until a person ends it";
                Err(ShapeError::at("lasts", reason))
            }
            Some(_) | None => Ok((scope, kind, lasts)),
        }
    }
}

/// Reads what a freeze covers.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn scope(entity: Option<&str>, targets: Option<&str>) -> Result<core::FreezeScope, ShapeError> {
    match (entity, targets) {
        (None, None) => Ok(core::FreezeScope::Everything),
        (Some(entity), None) => Ok(core::FreezeScope::Entity(read("entity", entity)?)),
        (None, Some(targets)) => Ok(core::FreezeScope::Targets(read("targets", targets)?)),
        (Some(_), Some(_)) => {
            Err(ShapeError::at("targets", "a freeze covers an entity or targets, not both"))
        }
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
            kind: from.strength.into(),
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
            strength: from.kind.into(),
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
