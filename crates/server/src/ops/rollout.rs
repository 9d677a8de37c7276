//! Rollouts: start, pause, resume, approve, abort, undo, retry. Core says what the entity becomes, or why not.

use std::sync::Arc;

use bellwether_api::shape::{ShapeError, read_some};
use bellwether_api::v1;
use bellwether_core::records::entity::{Entity, EntityKind, VersionRequest};
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::Record;
use bellwether_core::records::policy::Policy;
use bellwether_core::records::profile::ProfileRevision;
use bellwether_core::records::progress::Progress;
use bellwether_core::rollout::operations::{self, Intent, OperationRefusal};
use bellwether_core::trial::plan::{PlanInput, fingerprint};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, EntityName, Namespace};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::version_resolution;
use bellwether_core::world::version_resolution::UnresolvedVersion;

use super::{OpError, cause, reason};
use crate::transactor::Transactor;

/// What a person does to a rollout that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutVerb {
    /// Hand out nothing more for now.
    Pause,
    /// Go on.
    Resume,
    /// Let the stage begin that waits for a person; the named one, if it is that.
    Approve(Option<u32>),
    /// Stop, and leave targets as they are.
    Abort,
    /// Take everything back to last known good.
    Undo,
    /// Try a bad version again; the last one if none is named.
    Retry(Option<Version>),
}

impl From<OperationRefusal> for OpError {
    fn from(refusal: OperationRefusal) -> Self {
        Self::Refused { reason: refusal.to_string(), hint: None }
    }
}

impl From<UnresolvedVersion> for OpError {
    fn from(unresolved: UnresolvedVersion) -> Self {
        let hint = Some(unresolved.hint());
        Self::Refused { reason: unresolved.to_string(), hint }
    }
}

/// Starts a rollout, changing policy fields with it if asked.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`], [`OpError::Refused`] with the next step.
pub async fn start(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
    request: v1::rollout::NewRollout,
) -> Result<VersionRequest, OpError> {
    let version: Option<Version> = read_some("version", request.version.as_deref())?;
    let why = reason(&request.why)?;
    transactor
        .change(namespace, actor, |world, fleet, now| {
            let (mut entity, progress) = find(fleet, name)?;
            entity.policy = policy(&entity, &request.policy)?;
            let version = version_resolution::resolve(fleet, &entity, version.as_ref())?;
            let intent = Intent { by: actor.clone(), why: why.clone(), at: now };
            let entity = operations::start(&entity, &progress, version.clone(), intent)?;
            if let Some(token) = &request.plan {
                still_as_planned(world, (namespace, name), &entity, token)?;
            }
            let wanted = entity.wanted.clone().ok_or_else(|| OpError::NotFound(format!("request {name}")))?;
            Ok((Some(asked(fleet, entity, "rollout.asked", &format!("{version}: {}", cause(&why)))?), wanted))
        })
        .await
}

/// Refuses a plan that was made of another world.
fn still_as_planned(
    world: &World,
    (namespace, name): (&Namespace, &EntityName),
    asked: &Entity,
    token: &str,
) -> Result<(), OpError> {
    let board = world.fleets.get(namespace).and_then(|fleet| fleet.boards.get(name)).cloned();
    let board = board.ok_or_else(|| OpError::NotFound(format!("entity {name}")))?;
    let now = asked.wanted.as_ref().map_or(Timestamp::EPOCH, |wanted| wanted.at);
    let (environment, asked) = (world.environment(namespace, name), Arc::new(asked.clone()));
    let case = PlanInput { board, environment, asked, now, apply: Span::ZERO };
    if v1::plan::token(fingerprint(&case)) == token {
        return Ok(());
    }
    let reason = format!("start a rollout of {name} by {token}: the world has moved since it was planned");
    Err(OpError::Refused { reason, hint: Some(format!("plan it again: bellwether rollout plan {name}")) })
}

/// Does something to the rollout that is there.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Refused`] with the next step.
pub async fn act(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
    (verb, why): (RolloutVerb, &str),
) -> Result<(), OpError> {
    let why = reason(why)?;
    transactor
        .change(namespace, actor, |world, fleet, now| {
            let (entity, progress) = find(fleet, name)?;
            let intent = Intent { by: actor.clone(), why: why.clone(), at: now };
            let (entity, kind) = match &verb {
                RolloutVerb::Pause => (operations::pause(&entity, &progress, intent)?, "rollout.pause_asked"),
                RolloutVerb::Resume => {
                    super::freeze::no_stop(world, fleet, name, now)?;
                    (operations::resume(&entity, &progress)?, "rollout.resume_asked")
                }
                RolloutVerb::Approve(stage) => {
                    let rollout = fleet.rollouts.get(&(name.clone(), progress.last)).map(|kept| &*kept.value);
                    (operations::approve(&entity, rollout, *stage, intent)?, "rollout.approve_asked")
                }
                RolloutVerb::Abort => (operations::abort(&entity, &progress, intent)?, "rollout.abort_asked"),
                RolloutVerb::Undo | RolloutVerb::Retry(_) if matches!(entity.kind, EntityKind::Action(_)) => {
                    return Err(ran(&entity, &verb));
                }
                RolloutVerb::Undo => (operations::undo(&entity, &progress, intent)?, "rollout.undo_asked"),
                RolloutVerb::Retry(version) => {
                    (operations::retry(&entity, &progress, version.clone(), intent)?, "rollout.retry_asked")
                }
            };
            Ok((Some(asked(fleet, entity, kind, &cause(&why))?), ()))
        })
        .await
}

/// Whether the entity asks for something it did not ask for before.
fn is_new(fleet: &Fleet, entity: &Entity) -> bool {
    let before = fleet.entities.get(&entity.name).map(|kept| kept.value.last_request());
    before < Some(entity.last_request())
}

pub(super) fn find(fleet: &Fleet, name: &EntityName) -> Result<(Entity, Progress), OpError> {
    let entity = fleet.entities.get(name).ok_or_else(|| OpError::NotFound(format!("entity {name}")))?;
    let progress = fleet.progresses.get(name).map(|kept| Progress::clone(&kept.value)).unwrap_or_default();
    Ok((Entity::clone(&entity.value), progress))
}

pub(super) fn policy(entity: &Entity, over: &v1::policy::Policy) -> Result<Policy, ShapeError> {
    let now = v1::policy::Policy::from(&entity.policy);
    super::entity::policy(&entity.kind, &now.overlaid(over.clone()))
}

/// Why a run of an action is neither taken back nor tried again.
fn ran(entity: &Entity, verb: &RolloutVerb) -> OpError {
    let (verb, Entity { kind, name, .. }) =
        (if *verb == RolloutVerb::Undo { "undo" } else { "retry" }, entity);
    let reason =
        format!("{verb}: entity {name} runs {kind}, and what ran once neither goes back nor runs again");
    let hint =
        format!("another run of it: bellwether rollout start {name}   (or: rollout resume, rollout abort)");
    OpError::Refused { reason, hint: Some(hint) }
}

/// The entity as it is to be written. With a profile, the revision asked for is written as it is in the same piece: it
/// cannot be forgotten at the same moment.
fn asked(fleet: &Fleet, entity: Entity, kind: &'static str, cause: &str) -> Result<Changeset, OpError> {
    let mut writes = Vec::new();
    if let (EntityKind::Profile(profile), Some(wanted)) = (&entity.kind, &entity.wanted)
        && is_new(fleet, &entity)
    {
        let number = ProfileRevision::number_in(profile, &wanted.version).unwrap_or_default();
        let found =
            fleet.profile_revisions.get(&(profile.clone(), number)).ok_or_else(|| OpError::Refused {
                reason: format!("go to {}: profile {profile} no longer has that revision", wanted.version),
                hint: Some(format!("bellwether profile history {profile}")),
            })?;
        writes.push(Write::put(Record::ProfileRevision(ProfileRevision::clone(&found.value))));
    }
    let subject = format!("entity/{}", entity.name);
    let event = EventDraft { kind, subject, before: None, after: None, cause: cause.to_owned() };
    writes.push(Write::put(Record::Entity(entity)));
    Ok(Changeset { writes, events: vec![event] })
}
