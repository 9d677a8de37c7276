//! Entities, as they travel and are kept.

use std::collections::BTreeMap;

use crate::v1::annotation::Annotation;
use bellwether_core::records::annotation::Annotation as CoreAnnotation;
use bellwether_core::records::entity as core;
use bellwether_core::words::counter::{RequestNumber, RolloutNumber};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::external::settings::ExternalSettings;
use super::labels::{labels_in, labels_out};
use super::policy::Policy;
use crate::shape::{ShapeError, one_line, read};
use crate::word::words;

words! {
    /// What the versions of an entity are.
    EntityKind {
        /// Whatever is requested: a tag, a commit, a number.
        Version = "version",
        /// Revisions of a profile.
        Profile = "profile",
        /// Runs of an action.
        Action = "action",
    }
}

words! {
    /// The kind of a request for a version.
    RequestKind = core::RequestKind {
        /// Roll out a version.
        Start = "start",
        /// Roll back to the last known good version.
        Undo = "undo",
        /// Roll out a known bad version again.
        Retry = "retry",
    }
}

/// Asks for an entity to be: which nodes, what changes, and how carefully.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntitySpec {
    /// Which nodes are its targets, like `role=web`; `all` for every node.
    #[schema(example = "role=web")]
    #[serde(default)]
    pub selector: String,
    /// Instead of a selector: its targets are what controllers report. An entity never turns from one into the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSettings>,
    /// The profile whose revisions are its versions. With neither this nor an action, versions are whatever is asked for,
    /// and an entity that is there stays what it is.
    #[schema(example = "greeting")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The action, of each node's own catalogue, that its versions are runs of.
    #[schema(example = "backup")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// How carefully they change.
    #[serde(default)]
    pub policy: Policy,
    /// Who is responsible for the entity: one line of at most 256 bytes. Empty or absent: it has no owner.
    #[schema(example = "shop team")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// What the entity is: one line of at most 1,000 bytes. Empty or absent: it has no description.
    #[schema(example = "the shop's web servers")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// An entity as people made it, and what was asked of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Entity {
    /// Its name, a DNS label.
    pub name: String,
    /// Which nodes are its targets; empty when controllers report them.
    pub selector: String,
    /// Present when controllers report its targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSettings>,
    /// What its versions are.
    pub kind: EntityKind,
    /// With kind `profile`: which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// With kind `action`: which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// How carefully.
    pub policy: Policy,
    /// The last version asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<VersionRequest>,
    /// A person's pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Annotation>,
    /// How often a person said resume.
    #[serde(default)]
    pub resumes: u64,
    /// The last abort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<Abort>,
    /// The last approval of a stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Who is responsible for it; absent if nobody is named.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// What it is; absent if it is not described.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A person's request for a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct VersionRequest {
    /// Which request it is, from 1.
    pub request: u64,
    /// The version.
    pub version: String,
    /// The kind of request.
    pub kind: RequestKind,
    /// Who asked.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// The policy of the rollout that answers this request, in place of the entity's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// When.
    pub at_ms: u64,
}

/// A person's abort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Abort {
    /// The newest request it ends.
    pub request: u64,
    /// Who.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// When.
    pub at_ms: u64,
}

/// A person's approval of a stage of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Approval {
    /// Which rollout.
    pub rollout: u64,
    /// Which stage, from 1.
    pub stage: u32,
    /// Who.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// When.
    pub at_ms: u64,
}

impl From<&core::Entity> for Entity {
    fn from(from: &core::Entity) -> Self {
        let (kind, profile, action) = match &from.kind {
            core::EntityKind::Version => (EntityKind::Version, None, None),
            core::EntityKind::Profile(profile) => (EntityKind::Profile, Some(profile.to_string()), None),
            core::EntityKind::Action(action) => (EntityKind::Action, None, Some(action.to_string())),
        };
        let (selector, external) = match &from.source {
            core::TargetSource::Nodes(selector) => (selector.to_string(), None),
            core::TargetSource::External(patience) => {
                (String::new(), Some(ExternalSettings::from(*patience)))
            }
        };
        let core::EntityInfo { owner, description } = from.info.clone();
        Self {
            name: from.name.to_string(),
            selector,
            external,
            kind,
            profile,
            action,
            policy: (&from.policy).into(),
            requested: from.wanted.as_ref().map(VersionRequest::from),
            hold: from.hold.as_ref().map(Annotation::from),
            resumes: from.resumes,
            abort: from.abort.as_ref().map(|abort| Abort {
                request: abort.request.get(),
                by: abort.annotation.by.to_string(),
                reason: abort.annotation.reason.clone(),
                at_ms: abort.annotation.at.as_millis(),
            }),
            approval: from.approval.as_ref().map(|approval| Approval {
                rollout: approval.rollout.get(),
                stage: approval.stage,
                by: approval.annotation.by.to_string(),
                reason: approval.annotation.reason.clone(),
                at_ms: approval.annotation.at.as_millis(),
            }),
            labels: labels_out(&from.labels),
            owner,
            description,
        }
    }
}

impl TryFrom<Entity> for core::Entity {
    type Error = ShapeError;
    fn try_from(from: Entity) -> Result<Self, ShapeError> {
        let kind = kind(&from)?;
        Ok(Self {
            name: read("name", &from.name)?,
            source: source(&from.selector, from.external.as_ref())?,
            kind,
            policy: (&from.policy).try_into().map_err(|error: ShapeError| error.within("policy"))?,
            wanted: from.requested.map(TryInto::try_into).transpose()?,
            hold: from.hold.map(TryInto::try_into).transpose()?,
            resumes: from.resumes,
            abort: from.abort.map(TryInto::try_into).transpose()?,
            approval: from.approval.map(TryInto::try_into).transpose()?,
            labels: labels_in(&from.labels)?,
            info: info(&from.owner, &from.description)?,
        })
    }
}

/// What people write about an entity.
fn info(owner: &str, description: &str) -> Result<core::EntityInfo, ShapeError> {
    Ok(core::EntityInfo {
        owner: one_line("owner", owner, core::MAX_OWNER)?,
        description: one_line("description", description, core::MAX_DESCRIPTION)?,
    })
}

/// Where targets come from.
fn source(selector: &str, external: Option<&ExternalSettings>) -> Result<core::TargetSource, ShapeError> {
    let Some(external) = external else { return Ok(core::TargetSource::Nodes(read("selector", selector)?)) };
    if !selector.is_empty() {
        let reason = "an entity picks nodes, or its targets are external; leave one of them out";
        return Err(ShapeError::at("selector", reason));
    }
    let patience = external.try_into().map_err(|error: ShapeError| error.within("external"))?;
    Ok(core::TargetSource::External(patience))
}

fn kind(from: &Entity) -> Result<core::EntityKind, ShapeError> {
    match (from.kind, &from.profile, &from.action) {
        (EntityKind::Version, None, None) => Ok(core::EntityKind::Version),
        (EntityKind::Profile, Some(profile), None) => {
            Ok(core::EntityKind::Profile(read("profile", profile)?))
        }
        (EntityKind::Action, None, Some(action)) => Ok(core::EntityKind::Action(read("action", action)?)),
        (EntityKind::Version | EntityKind::Profile | EntityKind::Action, _, _) => {
            let reason =
                "set `profile` with kind profile, `action` with kind action, and neither with kind version";
            Err(ShapeError::at("kind", reason))
        }
    }
}

impl EntitySpec {
    /// Where targets are to come from.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn source(&self) -> Result<core::TargetSource, ShapeError> {
        if self.external.is_some() && (self.profile.is_some() || self.action.is_some()) {
            let reason = "profiles and actions are for nodes; external targets have versions";
            return Err(ShapeError::at("external", reason));
        }
        source(&self.selector, self.external.as_ref())
    }

    /// What people write about it.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn info(&self) -> Result<core::EntityInfo, ShapeError> {
        info(&self.owner, &self.description)
    }

    /// The kind that is asked for; `None` when the entity is to stay what it is.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn kind(&self) -> Result<Option<core::EntityKind>, ShapeError> {
        match (&self.profile, &self.action) {
            (None, None) => Ok(None),
            (Some(profile), None) => Ok(Some(core::EntityKind::Profile(read("profile", profile)?))),
            (None, Some(action)) => Ok(Some(core::EntityKind::Action(read("action", action)?))),
            (Some(_), Some(_)) => Err(ShapeError::at("action", "an entity is of a profile or of an action")),
        }
    }
}

impl From<&core::VersionRequest> for VersionRequest {
    fn from(from: &core::VersionRequest) -> Self {
        Self {
            request: from.request.get(),
            version: from.version.to_string(),
            kind: from.how.into(),
            by: from.annotation.by.to_string(),
            reason: from.annotation.reason.clone(),
            at_ms: from.annotation.at.as_millis(),
            policy: from.policy.as_deref().map(Policy::from),
        }
    }
}

impl TryFrom<VersionRequest> for core::VersionRequest {
    type Error = ShapeError;
    fn try_from(from: VersionRequest) -> Result<Self, ShapeError> {
        Ok(Self {
            request: RequestNumber::new(from.request),
            version: read("version", &from.version)?,
            how: from.kind.into(),
            annotation: annotation(&from.by, from.reason, from.at_ms)?,
            policy: from.policy.as_ref().map(TryInto::try_into).transpose()?.map(Box::new),
        })
    }
}

impl TryFrom<Approval> for core::Approval {
    type Error = ShapeError;
    fn try_from(from: Approval) -> Result<Self, ShapeError> {
        Ok(Self {
            rollout: RolloutNumber::new(from.rollout),
            stage: from.stage,
            annotation: annotation(&from.by, from.reason, from.at_ms)?,
        })
    }
}

impl TryFrom<Abort> for core::Abort {
    type Error = ShapeError;
    fn try_from(from: Abort) -> Result<Self, ShapeError> {
        Ok(Self {
            request: RequestNumber::new(from.request),
            annotation: annotation(&from.by, from.reason, from.at_ms)?,
        })
    }
}

fn annotation(by: &str, reason: String, at_ms: u64) -> Result<CoreAnnotation, ShapeError> {
    Ok(CoreAnnotation { by: read("by", by)?, reason, at: Timestamp::from_millis(at_ms) })
}
