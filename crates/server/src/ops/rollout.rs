//! Rollouts: start, pause, resume, abort, undo, retry. Core says what the entity becomes, or why not.

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1;
use bellwether_core::records::entity::Entity;
use bellwether_core::records::event::Draft;
use bellwether_core::records::key::Record;
use bellwether_core::records::policy::Policy;
use bellwether_core::records::progress::Progress;
use bellwether_core::rollout::operate::{self, Intent, Refusal};
use bellwether_core::verdict::{Atom, Write};
use bellwether_core::words::name::{Actor, EntityName, Namespace};
use bellwether_core::words::version::Version;

use super::{OpError, cause, reason};
use crate::desk::Desk;

/// What a person does to a rollout that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Hand out nothing more for now.
    Pause,
    /// Go on.
    Resume,
    /// Stop, and leave targets as they are.
    Abort,
    /// Take everything back to last known good.
    Undo,
    /// Try a bad version again; the last one if none is named.
    Retry(Option<Version>),
}

impl From<Refusal> for OpError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { reason: refusal.to_string(), hint: None }
    }
}

/// Starts a rollout, changing policy fields with it if asked.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`], [`OpError::Refused`] with the next step.
pub async fn start(
    desk: &Desk,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
    request: v1::rollout::NewRollout,
) -> Result<(), OpError> {
    let version: Version = read("version", &request.version)?;
    let why = reason(&request.why)?;
    desk.change(namespace, actor, |_, fleet, now| {
        let (mut entity, progress) = find(fleet, name)?;
        entity.policy = policy(&entity, &request.policy)?;
        let intent = Intent { by: actor.clone(), why: why.clone(), at: now };
        let entity = operate::start(&entity, &progress, version.clone(), intent)?;
        Ok((Some(asked(entity, "rollout.asked", &format!("{version}: {}", cause(&why)))), ()))
    })
    .await
}

/// Does something to the rollout that is there.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Refused`] with the next step.
pub async fn act(
    desk: &Desk,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
    (verb, why): (Verb, &str),
) -> Result<(), OpError> {
    let why = reason(why)?;
    desk.change(namespace, actor, |_, fleet, now| {
        let (entity, progress) = find(fleet, name)?;
        let intent = Intent { by: actor.clone(), why: why.clone(), at: now };
        let (entity, kind) = match &verb {
            Verb::Pause => (operate::pause(&entity, &progress, intent)?, "rollout.pause_asked"),
            Verb::Resume => (operate::resume(&entity, &progress)?, "rollout.resume_asked"),
            Verb::Abort => (operate::abort(&entity, &progress, intent)?, "rollout.abort_asked"),
            Verb::Undo => (operate::undo(&entity, &progress, intent)?, "rollout.undo_asked"),
            Verb::Retry(version) => {
                (operate::retry(&entity, &progress, version.clone(), intent)?, "rollout.retry_asked")
            }
        };
        Ok((Some(asked(entity, kind, &cause(&why))), ()))
    })
    .await
}

fn find(
    fleet: &bellwether_core::world::fleet::Fleet,
    name: &EntityName,
) -> Result<(Entity, Progress), OpError> {
    let entity = fleet.entities.get(name).ok_or_else(|| OpError::NotFound(format!("entity {name}")))?;
    let progress = fleet.progresses.get(name).map(|kept| Progress::clone(&kept.value)).unwrap_or_default();
    Ok((Entity::clone(&entity.value), progress))
}

fn policy(entity: &Entity, over: &v1::policy::Policy) -> Result<Policy, ShapeError> {
    let now = v1::policy::Policy::from(&entity.policy);
    Policy::try_from(&now.overlaid(over.clone())).map_err(|error| error.within("policy"))
}

fn asked(entity: Entity, kind: &'static str, cause: &str) -> Atom {
    let subject = format!("entity/{}", entity.name);
    let event = Draft { kind, subject, before: None, after: None, cause: cause.to_owned() };
    Atom { writes: vec![Write::put(Record::Entity(entity))], events: vec![event] }
}
