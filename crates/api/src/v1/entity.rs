//! Entities and the requests for their versions: requests, answers and stored records.

pub mod patch;
mod request;

use std::collections::BTreeMap;

use crate::v1::annotation::Annotation;
use bellwether_core::records::entity as core;
use bellwether_core::words::counter::{AssignmentNumber, Revision};
use bellwether_core::words::name::TargetName;
use serde::{Deserialize, Serialize};

use super::external::settings::ExternalSettings;
use super::labels::{labels_in, labels_out};
use super::policy::Policy;
use crate::shape::{ShapeError, object, one_line, read};
use crate::word::words;

words! {
    /// What the versions of an entity are.
    EntityKind {
        /// Any text that is requested: a tag, a commit, a number.
        Version = "version",
        /// Revisions of a profile.
        Profile = "profile",
        /// Runs of an action.
        Action = "action",
        /// The run of a workflow; there is one.
        Workflow = "workflow",
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

/// Request to create or change an entity: its targets, its kind and its policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntitySpec {
    /// Selector of the nodes that are its targets, such as `role=web`; `all` for every node of the namespace.
    #[schema(example = "role=web")]
    #[serde(default)]
    pub selector: String,
    /// Settings of external targets, which controllers report; it takes the place of `selector`. An entity
    /// cannot change from one to the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSettings>,
    /// Name of the profile whose revisions are the entity's versions. If both `profile` and `action` are
    /// absent, the versions of a new entity are any text, and an existing entity keeps its kind.
    #[schema(example = "greeting")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Name of the action, defined by each node's agent, whose runs are the entity's versions.
    #[schema(example = "backup")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Rollout policy; absent fields take their defaults.
    #[serde(default, deserialize_with = "object")]
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

/// An entity, with the last request, pause, abort and approval of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Entity {
    /// Entity name, a DNS label.
    pub name: String,
    /// Selector of the nodes that are its targets; empty if controllers report them.
    pub selector: String,
    /// Settings of external targets; absent if its targets are nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSettings>,
    /// What the versions of the entity are.
    pub kind: EntityKind,
    /// With kind `profile`: name of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// With kind `action`: name of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// With kind `workflow`: name of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// With kind `workflow`: the nodes that were chosen when the run was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Rollout policy.
    pub policy: Policy,
    /// The last version that was requested; absent before the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<VersionRequest>,
    /// Who paused the entity's rollouts, when and why; absent if no one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Annotation>,
    /// Number of times a person resumed a rollout of the entity.
    #[serde(default)]
    pub resumes: u64,
    /// The last abort; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<Abort>,
    /// The last approval of a stage; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// With kind `workflow`: the failed assignments that a person asked to try again, by node; the last one of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<String, u64>,
    /// Labels that `apply` set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Who is responsible for it; absent if nobody is named.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// What it is; absent if it is not described.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Revision of the last change of the entity, to be given in `If-Match`. Absent in what is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

impl Entity {
    /// The entity of a record with its revision.
    #[must_use]
    pub fn at(record: &core::Entity, revision: Revision) -> Self {
        Self { revision: Some(revision.get()), ..record.into() }
    }
}

/// A request for a version of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct VersionRequest {
    /// Number of the request within the entity, from 1.
    pub request: u64,
    /// The version.
    pub version: String,
    /// The kind of request.
    pub kind: RequestKind,
    /// Name of the token of the requester.
    pub by: String,
    /// The reason that was given; may be empty.
    #[serde(default)]
    pub reason: String,
    /// The policy of the rollout that carries out this request; the entity's policy if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Time of the request, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// A person's abort of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Abort {
    /// Number of the newest request that the abort ends.
    pub request: u64,
    /// Name of the token of the person or program that aborted it.
    pub by: String,
    /// The reason that was given; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Time of the abort, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// A person's approval of a stage of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Approval {
    /// Number of the rollout.
    pub rollout: u64,
    /// The stage that is approved, from 1.
    pub stage: u32,
    /// Name of the token of the person or program that approved it.
    pub by: String,
    /// The reason that was given; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Time of the approval, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl From<&core::Entity> for Entity {
    fn from(from: &core::Entity) -> Self {
        let (kind, profile, action) = match &from.kind {
            core::EntityKind::Version => (EntityKind::Version, None, None),
            core::EntityKind::Profile(profile) => (EntityKind::Profile, Some(profile.to_string()), None),
            core::EntityKind::Action(action) => (EntityKind::Action, None, Some(action.to_string())),
            core::EntityKind::Workflow(_) => (EntityKind::Workflow, None, None),
        };
        let workflow = match &from.kind {
            core::EntityKind::Workflow(workflow) => Some(workflow.to_string()),
            core::EntityKind::Version | core::EntityKind::Profile(_) | core::EntityKind::Action(_) => None,
        };
        let (selector, external, nodes) = match &from.source {
            core::TargetSource::Nodes(selector) => (selector.to_string(), None, Vec::new()),
            core::TargetSource::Listed(nodes) => {
                (String::new(), None, nodes.iter().map(ToString::to_string).collect())
            }
            core::TargetSource::External(patience) => {
                (String::new(), Some(ExternalSettings::from(*patience)), Vec::new())
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
            workflow,
            nodes,
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
            retries: from.retries.iter().map(|(name, number)| (name.to_string(), number.get())).collect(),
            labels: labels_out(&from.labels),
            owner,
            description,
            revision: None,
        }
    }
}

impl TryFrom<Entity> for core::Entity {
    type Error = ShapeError;
    fn try_from(from: Entity) -> Result<Self, ShapeError> {
        let kind = kind(&from)?;
        Ok(Self {
            name: read("name", &from.name)?,
            source: stored_source(&from)?,
            kind,
            policy: (&from.policy).try_into().map_err(|error: ShapeError| error.within("policy"))?,
            wanted: from.requested.map(TryInto::try_into).transpose()?,
            hold: from.hold.map(TryInto::try_into).transpose()?,
            resumes: from.resumes,
            abort: from.abort.map(TryInto::try_into).transpose()?,
            approval: from.approval.map(TryInto::try_into).transpose()?,
            retries: retries(&from.retries)?,
            labels: labels_in(&from.labels)?,
            info: info(&from.owner, &from.description)?,
        })
    }
}

/// Reads the failed assignments that are to be tried again.
fn retries(from: &BTreeMap<String, u64>) -> Result<BTreeMap<TargetName, AssignmentNumber>, ShapeError> {
    let each = from.iter();
    each.map(|(name, number)| Ok((read("retries", name)?, AssignmentNumber::new(*number)))).collect()
}

/// What people write about an entity.
fn info(owner: &str, description: &str) -> Result<core::EntityInfo, ShapeError> {
    Ok(core::EntityInfo {
        owner: one_line("owner", owner, core::MAX_OWNER)?,
        description: one_line("description", description, core::MAX_DESCRIPTION)?,
    })
}

/// Reads the source of the targets of a stored entity.
fn stored_source(from: &Entity) -> Result<core::TargetSource, ShapeError> {
    if from.kind != EntityKind::Workflow {
        return source(&from.selector, from.external.as_ref());
    }
    let nodes = from.nodes.iter().map(|node| read("nodes", node)).collect::<Result<_, _>>()?;
    Ok(core::TargetSource::Listed(std::sync::Arc::new(nodes)))
}

/// Reads the source of an entity's targets.
fn source(selector: &str, external: Option<&ExternalSettings>) -> Result<core::TargetSource, ShapeError> {
    let Some(external) = external else {
        if selector.is_empty() {
            return Err(ShapeError::at("selector", "missing; write 'all' for every node"));
        }
        return Ok(core::TargetSource::Nodes(crate::shape::selector("selector", selector)?));
    };
    if !selector.is_empty() {
        let reason = "selector and external exclude each other";
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
        (EntityKind::Workflow, None, None) => {
            let workflow = from.workflow.as_deref().unwrap_or_default();
            Ok(core::EntityKind::Workflow(read("workflow", workflow)?))
        }
        (EntityKind::Version | EntityKind::Profile | EntityKind::Action | EntityKind::Workflow, _, _) => {
            let reason =
                "set `profile` with kind profile, `action` with kind action, and neither with kind version";
            Err(ShapeError::at("kind", reason))
        }
    }
}

impl EntitySpec {
    /// The source of the targets: nodes or controllers.
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

    /// The kind that is requested; `None` if an existing entity keeps its kind.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn kind(&self) -> Result<Option<core::EntityKind>, ShapeError> {
        match (&self.profile, &self.action) {
            (None, None) => Ok(None),
            (Some(profile), None) => Ok(Some(core::EntityKind::Profile(read("profile", profile)?))),
            (None, Some(action)) => Ok(Some(core::EntityKind::Action(read("action", action)?))),
            (Some(_), Some(_)) => Err(ShapeError::at("action", "profile and action exclude each other")),
        }
    }
}
