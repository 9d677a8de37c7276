//! Plans: what a rollout would bring, and whether the world is still as a plan saw it. Writes nothing.

use std::sync::Arc;

use bellwether_api::shape::read_some;
use bellwether_api::v1;
use bellwether_core::rollout::operations::{self, Intent};
use bellwether_core::trial::plan::PlanInput;
use bellwether_core::words::name::{Actor, EntityName, Namespace};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use bellwether_core::world::World;
use bellwether_core::world::version_resolution;

use super::OpError;
use super::rollout::{find, policy};

/// How long a target is taken to need for a change, unless said.
const APPLY: Span = Span::from_secs(30);

/// What is to be planned.
///
/// # Errors
/// As starting the rollout.
pub fn case(
    world: &World,
    (namespace, name): (&Namespace, &EntityName),
    actor: &Actor,
    request: &v1::plan::NewPlan,
    now: Timestamp,
) -> Result<(Version, PlanInput), OpError> {
    let version: Option<Version> = read_some("version", request.version.as_deref())?;
    let apply = read_some("apply", request.apply.as_deref())?.unwrap_or(APPLY);
    let missing = || OpError::NotFound(format!("entity {name}"));
    let fleet = world.fleets.get(namespace).ok_or_else(missing)?;
    let (mut entity, progress) = find(fleet, name)?;
    entity.policy = policy(&entity, &request.policy)?;
    let version = version_resolution::resolve(fleet, &entity, version.as_ref())?;
    let intent = Intent { by: actor.clone(), why: String::new(), at: now };
    let asked = Arc::new(operations::start(&entity, &progress, version.clone(), intent)?);
    let board = fleet.boards.get(name).cloned().ok_or_else(missing)?;
    let environment = world.environment(namespace, name);
    Ok((version, PlanInput { board, environment, asked, now, apply }))
}
