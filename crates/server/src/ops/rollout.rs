//! Operations on rollouts: start, pause, resume, approve, abort, undo, retry. Core decides what changes, or refuses.

use std::sync::Arc;

use bellwether_api::shape::{ShapeError, read_some};
use bellwether_api::v1;
use bellwether_api::v1::rollout::StartedRollout;
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::{Entity, EntityKind, VersionRequest};
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::Record;
use bellwether_core::records::policy::Policy;
use bellwether_core::records::profile::ProfileRevision;
use bellwether_core::records::progress::Progress;
use bellwether_core::records::rollout::VersionJudgement;
use bellwether_core::rollout::operations;
use bellwether_core::rollout::operations::OperationRefusal;
use bellwether_core::rollout::request_effect::{RequestEffect, effect};
use bellwether_core::trial::plan::{PlanInput, fingerprint};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::version_resolution;
use bellwether_core::world::version_resolution::UnresolvedVersion;

use super::scope::EntityScope;
use super::{OpError, cause, reason};
use crate::transactor::Transactor;

/// An operation on the current rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutVerb {
    /// Start no new updates.
    Pause,
    /// Continue.
    Resume,
    /// Approve the stage that waits for it; with a number, only that stage.
    Approve(Option<u32>),
    /// Stop, and leave the targets as they are.
    Abort,
    /// Roll back to the last known good version.
    Undo,
    /// Try a version again that failed; without a version, the last one that failed.
    Retry(Option<Version>),
}

impl From<OperationRefusal> for OpError {
    fn from(refusal: OperationRefusal) -> Self {
        Self::Refused { reason: refusal.to_string(), hint: None }
    }
}

impl From<UnresolvedVersion> for OpError {
    fn from(unresolved: UnresolvedVersion) -> Self {
        if matches!(unresolved, UnresolvedVersion::Unsaid { .. }) {
            return ShapeError::at("version", format!("missing: {}", unresolved.hint())).into();
        }
        let hint = Some(unresolved.hint());
        Self::Refused { reason: unresolved.to_string(), hint }
    }
}

/// Starts a rollout, changing fields of the policy if requested by somebody who may change the entity.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`], [`OpError::Forbidden`], [`OpError::Refused`] with the next step.
pub async fn start(
    transactor: &Transactor,
    scope: EntityScope<'_>,
    may_change_entity: bool,
    request: v1::rollout::NewRollout,
) -> Result<StartedRollout, OpError> {
    let EntityScope { namespace, entity: name, actor } = scope;
    let version: Option<Version> = read_some("version", request.version.as_deref())?;
    let reason = reason(&request.reason)?;
    if let Some(text) = request.plan.as_ref().filter(|text| !v1::plan::is_token(text)) {
        let what = format!("{text:?} is not a plan token; `rollout plan` prints one");
        return Err(ShapeError::at("plan", what).into());
    }
    transactor
        .change(namespace, actor, |world, fleet, now| {
            let (mut entity, progress) = find(fleet, name)?;
            let kept = entity.policy.clone();
            entity.policy = policy(&entity, &request.policy, &request.unset)?;
            if !may_change_entity && (request.save || entity.policy != kept) {
                return Err(other_policy(namespace, name));
            }
            let version = version_resolution::resolve(fleet, &entity, version.as_ref())?;
            let intent = Annotation { by: actor.clone(), reason: reason.clone(), at: now };
            let requested = operations::start(&entity, &progress, version.clone(), intent);
            let has_policy = entity.policy != kept;
            let mut entity =
                requested.map_err(|refusal| start_refused(name, &version, &refusal, has_policy))?;
            if let Some(token) = &request.plan {
                check_plan(world, namespace, name, &entity, token)?;
            }
            if !request.save {
                this_rollout_alone(&mut entity, kept);
            }
            let wanted =
                entity.wanted.as_ref().ok_or_else(|| OpError::NotFound(format!("request {name}")))?;
            let started = started(fleet, &entity, &progress, wanted);
            let cause = format!("{version}: {}", cause(&reason));
            Ok((Some(asked(fleet, entity, "rollout.requested", &cause)?), started))
        })
        .await
}

/// Refuses a policy that is not the entity's, such as one without its approvals or with other hooks.
fn other_policy(namespace: &Namespace, name: &EntityName) -> OpError {
    let right = Right::update(ObjectKind::Entity);
    OpError::Forbidden {
        what: format!("start a rollout of {name} with a policy that is not that of the entity, or keep it"),
        needed: right.on(Some(name.as_str()), Some(namespace.as_str())).to_string(),
    }
}

/// What a request leads to: a rollout, at once or once the one in progress has ended, or a rollback.
fn started(fleet: &Fleet, entity: &Entity, progress: &Progress, wanted: &VersionRequest) -> StartedRollout {
    let active = progress.active().and_then(|number| fleet.rollouts.get(&(entity.name.clone(), number)));
    let active = active.map(|kept| &*kept.value);
    let supersede = entity.policy_in_force().supersede;
    let effect = active.map(|rollout| (rollout.number.get(), effect(progress, wanted, supersede, rollout)));
    let (queued_behind, undoes) = match effect {
        Some((number, RequestEffect::Deferred)) => (Some(number), None),
        Some((number, RequestEffect::RollBack | RequestEffect::AlreadyDone)) => (None, Some(number)),
        Some((_, RequestEffect::Replace)) | None => (None, None),
    };
    StartedRollout {
        version: wanted.version.to_string(),
        request: wanted.request.get(),
        queued_behind,
        undoes,
        replaces: dropped(fleet, entity).map(|old| old.version.to_string()),
    }
}

/// The queued request that the entity's new request replaces, if there is one.
fn dropped<'a>(fleet: &'a Fleet, entity: &Entity) -> Option<&'a VersionRequest> {
    let old = fleet.entities.get(&entity.name)?.value.wanted.as_ref()?;
    let handled = fleet.progresses.get(&entity.name).map(|kept| kept.value.handled).unwrap_or_default();
    let aborted = entity.abort.as_ref().is_some_and(|abort| abort.request >= old.request);
    let replaced = entity.wanted.as_ref().is_some_and(|new| new.request > old.request);
    (old.request > handled && replaced && !aborted).then_some(old)
}

/// A refused start; of a known bad version with the command that starts it anyway.
fn start_refused(
    name: &EntityName,
    version: &Version,
    refusal: &OperationRefusal,
    has_policy: bool,
) -> OpError {
    let is_bad = matches!(refusal, OperationRefusal::KnownBad { .. });
    let is_rolling = matches!(refusal, OperationRefusal::AlreadyRolling { .. });
    let hint = if is_rolling && has_policy {
        Some(format!("change the policy of the rollout in progress: bellwether entity set {name} …"))
    } else {
        is_bad.then(|| format!("bellwether rollout retry {name} --version {version}"))
    };
    OpError::Refused { reason: refusal.to_string(), hint }
}

/// Gives the entity's policy to its request alone, and the entity the policy that it had.
fn this_rollout_alone(entity: &mut Entity, kept: Policy) {
    let asked = std::mem::replace(&mut entity.policy, kept);
    let own = (asked != entity.policy).then(|| Box::new(asked));
    if let Some(wanted) = &mut entity.wanted {
        wanted.policy = own;
    }
}

/// Refuses a plan that was made of an earlier state.
fn check_plan(
    world: &World,
    namespace: &Namespace,
    name: &EntityName,
    asked: &Entity,
    token: &str,
) -> Result<(), OpError> {
    let board = world.fleets.get(namespace).and_then(|fleet| fleet.boards.get(name)).cloned();
    let board = board.ok_or_else(|| OpError::NotFound(format!("entity {name}")))?;
    let now = asked.wanted.as_ref().map_or(Timestamp::EPOCH, |wanted| wanted.annotation.at);
    let (environment, asked) = (world.environment(namespace, name), Arc::new(asked.clone()));
    let case = PlanInput { board, environment, asked, now, apply: Span::ZERO };
    if v1::plan::token(fingerprint(&case)) == token {
        return Ok(());
    }
    let reason = format!(
        "start a rollout of {name} by plan {token}: the state has changed since, or the policy flags differ from those \
         of the plan"
    );
    Err(OpError::Refused { reason, hint: Some(format!("plan it again: bellwether rollout plan {name}")) })
}

/// Runs an operation on the current rollout.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Refused`] with the next step.
pub async fn act(
    transactor: &Transactor,
    scope: EntityScope<'_>,
    verb: RolloutVerb,
    text: &str,
) -> Result<(), OpError> {
    let EntityScope { namespace, entity: name, actor } = scope;
    let reason = reason(text)?;
    transactor
        .change(namespace, actor, |world, fleet, now| {
            let (entity, progress) = find(fleet, name)?;
            let intent = Annotation { by: actor.clone(), reason: reason.clone(), at: now };
            let refused = |refusal| not_acted(name, &refusal);
            let (entity, kind) = match &verb {
                RolloutVerb::Pause => {
                    let paused = operations::pause(&entity, &progress, intent);
                    (paused.map_err(refused)?, "rollout.pause_requested")
                }
                RolloutVerb::Resume => {
                    super::freeze::refuse_if_stopped(world, fleet, name, now)?;
                    let resumed = operations::resume(&entity, &progress);
                    let resumed = resumed.map_err(|refusal| not_paused(fleet, &progress, name, &refusal))?;
                    (resumed, "rollout.resume_requested")
                }
                RolloutVerb::Approve(stage) => {
                    let rollout = fleet.rollouts.get(&(name.clone(), progress.last)).map(|kept| &*kept.value);
                    let approved = operations::approve(&entity, rollout, *stage, intent);
                    (approved.map_err(refused)?, "rollout.approve_requested")
                }
                RolloutVerb::Abort => {
                    let aborted = operations::abort(&entity, &progress, intent);
                    (aborted.map_err(refused)?, "rollout.abort_requested")
                }
                RolloutVerb::Undo | RolloutVerb::Retry(_)
                    if matches!(entity.kind, EntityKind::Action(_) | EntityKind::Workflow(_)) =>
                {
                    return Err(ran(&entity, &verb));
                }
                RolloutVerb::Undo => {
                    let undone = operations::undo(&entity, &progress, intent);
                    let undone = undone.map_err(|refusal| not_undone(fleet, name, &refusal))?;
                    (undone, "rollout.undo_requested")
                }
                RolloutVerb::Retry(version) => (
                    operations::retry(&entity, &progress, version.clone(), intent)?,
                    "rollout.retry_requested",
                ),
            };
            Ok((Some(asked(fleet, entity, kind, &cause(&reason))?), ()))
        })
        .await
}

/// The refusal of an operation, with the command that shows why.
fn not_acted(name: &EntityName, refusal: &OperationRefusal) -> OpError {
    let verb = match refusal {
        OperationRefusal::NothingUnderWay { .. } => Some("history"),
        OperationRefusal::AlreadyPaused
        | OperationRefusal::NothingToApprove
        | OperationRefusal::RollingBackAlready { .. } => Some("status"),
        OperationRefusal::AlreadyRolling { .. }
        | OperationRefusal::KnownBad { .. }
        | OperationRefusal::Busy { .. }
        | OperationRefusal::NotKnownBad { .. }
        | OperationRefusal::NothingToRetry
        | OperationRefusal::OtherStage { .. }
        | OperationRefusal::NothingPaused
        | OperationRefusal::NoKnownGood
        | OperationRefusal::NothingToUndo { .. } => None,
    };
    let hint = verb.map(|verb| format!("see: bellwether rollout {verb} {name}"));
    OpError::Refused { reason: refusal.to_string(), hint }
}

/// The refusal to resume, with the state of the rollout as the hint.
fn not_paused(fleet: &Fleet, progress: &Progress, name: &EntityName, refusal: &OperationRefusal) -> OpError {
    let rollout = progress.active().and_then(|number| fleet.rollouts.get(&(name.clone(), number)));
    let hint = rollout.map(|kept| {
        let state = &kept.value.state;
        let lift = state.freeze().map(|freeze| format!("; end the freeze: {}", fleet.lift_command(freeze)));
        format!("it is {state}{}", lift.unwrap_or_default())
    });
    OpError::Refused { reason: refusal.to_string(), hint }
}

/// The refusal to undo; when all targets are on last known good, with the command that starts the version before it.
fn not_undone(fleet: &Fleet, name: &EntityName, refusal: &OperationRefusal) -> OpError {
    let OperationRefusal::NothingToUndo { version } = refusal else { return not_acted(name, refusal) };
    let reason = refusal.to_string();
    let before = good_before(fleet, name, version);
    let hint =
        before.map(|before| format!("{before} was good before it: bellwether rollout start {name} {before}"));
    OpError::Refused { reason, hint }
}

/// The version that was last known good before `version`, and is not known bad since.
fn good_before(fleet: &Fleet, name: &EntityName, version: &Version) -> Option<Version> {
    let bad = fleet.progresses.get(name).map(|kept| &kept.value.bad);
    let is_bad = |version: &Version| bad.is_some_and(|bad| bad.iter().any(|bad| bad.version == *version));
    let (first, last) = (RolloutNumber::ZERO, RolloutNumber::new(u64::MAX));
    let rollouts =
        fleet.rollouts.range((name.clone(), first)..=(name.clone(), last)).map(|(_, kept)| &kept.value);
    let good = rollouts.filter(|rollout| matches!(rollout.judgement, VersionJudgement::Good { .. }));
    good.map(|rollout| rollout.version.clone()).filter(|other| other != version && !is_bad(other)).last()
}

/// Whether the entity's request differs from the one before.
fn is_new(fleet: &Fleet, entity: &Entity) -> bool {
    let before = fleet.entities.get(&entity.name).map(|kept| kept.value.last_request());
    before < Some(entity.last_request())
}

pub(super) fn find(fleet: &Fleet, name: &EntityName) -> Result<(Entity, Progress), OpError> {
    let entity = fleet.entities.get(name).ok_or_else(|| OpError::NotFound(format!("entity {name}")))?;
    let progress = fleet.progresses.get(name).map(|kept| Progress::clone(&kept.value)).unwrap_or_default();
    Ok((Entity::clone(&entity.value), progress))
}

pub(super) fn policy(
    entity: &Entity,
    over: &v1::policy::Policy,
    unset: &[String],
) -> Result<Policy, ShapeError> {
    let now = v1::policy::Policy::from(&entity.policy).without(unset)?;
    super::entity::policy(&entity.kind, &entity.source, &now.overlaid(over.clone()))
}

/// The refusal to undo or retry an action.
fn ran(entity: &Entity, verb: &RolloutVerb) -> OpError {
    let (verb, Entity { kind, name, .. }) =
        (if *verb == RolloutVerb::Undo { "undo" } else { "retry" }, entity);
    let (what, hint) = match kind {
        EntityKind::Workflow(_) => (
            "workflow",
            format!(
                "run the failed task of a node again: bellwether job retry {name}/NODE   (or: run undo, rollout resume, rollout abort)"
            ),
        ),
        EntityKind::Action(_) | EntityKind::Version | EntityKind::Profile(_) => (
            "action",
            format!(
                "start another run: bellwether rollout start {name}   (or: rollout resume, rollout abort)"
            ),
        ),
    };
    let not = match kind {
        EntityKind::Workflow(_) => "not undone or retried as a rollout",
        EntityKind::Action(_) | EntityKind::Version | EntityKind::Profile(_) => "neither undone nor retried",
    };
    let reason = format!("{verb}: entity {name} runs {kind}, and runs of {what}s are {not}");
    OpError::Refused { reason, hint: Some(hint) }
}

/// The changeset of a request. It also writes the requested profile revision unchanged, so that it cannot be deleted
/// concurrently.
fn asked(fleet: &Fleet, entity: Entity, kind: &'static str, cause: &str) -> Result<Changeset, OpError> {
    let mut writes = Vec::new();
    if let (EntityKind::Profile(profile), Some(wanted)) = (&entity.kind, &entity.wanted)
        && is_new(fleet, &entity)
    {
        let number = ProfileRevision::number_in(profile, &wanted.version).unwrap_or_default();
        let found =
            fleet.profile_revisions.get(&(profile.clone(), number)).ok_or_else(|| OpError::Refused {
                reason: format!("start {}: profile {profile} no longer has that revision", wanted.version),
                hint: Some(format!("bellwether profile history {profile}")),
            })?;
        writes.push(Write::put(Record::ProfileRevision(ProfileRevision::clone(&found.value))));
    }
    let subject = format!("entity/{}", entity.name);
    let mut events = Vec::new();
    if let (Some(old), Some(new)) = (dropped(fleet, &entity), &entity.wanted) {
        let cause = format!("the queued request for {} was replaced by {}", old.version, new.version);
        let (subject, before, after) =
            (subject.clone(), Some(old.version.to_string()), Some(new.version.to_string()));
        events.push(EventDraft { kind: "rollout.dropped", subject, before, after, cause });
    }
    events.push(EventDraft { kind, subject, before: None, after: None, cause: cause.to_owned() });
    writes.push(Write::put(Record::Entity(entity)));
    Ok(Changeset { writes, events })
}
