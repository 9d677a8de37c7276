//! Operations on an entity: start, undo, retry, abort, pause, resume, approve. Each returns the entity to
//! write, or a refusal with a hint; the decider does the rest.

use alloc::string::String;

use crate::records::annotation::Annotation;
use crate::records::entity::{Abort, Approval, Entity, RequestKind, VersionRequest};
use crate::records::policy::Supersede;
use crate::records::progress::{Progress, RolloutActivity};
use crate::records::rollout::{Rollout, RolloutState, RolloutWait};
use crate::words::counter::AssignmentNumber;
use crate::words::name::{EntityName, TargetName};
use crate::words::version::Version;

/// Why an operation is refused, with a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationRefusal {
    /// The version is known bad.
    #[error("start {version}: it is known bad: {reason}")]
    KnownBad {
        /// The version requested.
        version: Version,
        /// Why it is known bad.
        reason: String,
    },
    /// The version is being rolled out already.
    #[error("start {version} of entity {entity}: it is being rolled out already; see 'rollout get {entity}'")]
    AlreadyRolling {
        /// The entity.
        entity: EntityName,
        /// The version requested.
        version: Version,
    },
    /// The policy refuses new versions while a rollout is in progress.
    #[error(
        "start {version}: {rolling} is being rolled out and policy.supersede is refuse; \
         wait, or use 'rollout abort' first"
    )]
    Busy {
        /// The version requested.
        version: Version,
        /// The version that is being rolled out.
        rolling: Version,
    },
    /// The version is not known bad.
    #[error("retry {version}: it is not known bad; use 'rollout start'")]
    NotKnownBad {
        /// The version requested.
        version: Version,
    },
    /// No version is known bad.
    #[error("retry: no version is known bad; use 'rollout start'")]
    NothingToRetry,
    /// No rollout is in progress.
    #[error("{operation} the rollout: no rollout is under way")]
    NothingUnderWay {
        /// The refused operation.
        operation: &'static str,
    },
    /// The rollout is paused already.
    #[error("pause the rollout: it is paused already")]
    AlreadyPaused,
    /// No stage waits for approval.
    #[error("approve a stage: no stage waits for approval")]
    NothingToApprove,
    /// A different stage waits for approval.
    #[error("approve stage {asked}: stage {stage} waits for approval")]
    OtherStage {
        /// The stage named in the operation, from 1.
        asked: u32,
        /// The stage that waits, from 1.
        stage: u32,
    },
    /// Nothing is paused.
    #[error("resume the rollout: it is not paused")]
    NothingPaused,
    /// There is no known good version to roll back to.
    #[error(
        "undo the rollout: there is no last known good version yet; use 'rollout abort', or 'rollout start' with another version"
    )]
    NoKnownGood,
    /// The rollout is being rolled back already.
    #[error("undo the rollout: it is being rolled back to {version} already")]
    RollingBackAlready {
        /// Last known good.
        version: Version,
    },
    /// Every target is on last known good.
    #[error(
        "undo the rollout: every target runs {version}, the last known good version; use 'rollout start' with another version"
    )]
    NothingToUndo {
        /// Last known good.
        version: Version,
    },
}

/// Requests a rollout of a version.
///
/// # Errors
/// [`OperationRefusal`] when the version is known bad, is being rolled out already, or the policy refuses it.
pub fn start(
    entity: &Entity,
    progress: &Progress,
    version: Version,
    annotation: Annotation,
) -> Result<Entity, OperationRefusal> {
    if let Some(bad) = progress.bad(&version) {
        return Err(OperationRefusal::KnownBad { version, reason: bad.reason.clone() });
    }
    let asked = entity.wanted.as_ref().is_some_and(|wanted| wanted.version == version);
    if asked && is_under_way(entity, progress) {
        return Err(OperationRefusal::AlreadyRolling { entity: entity.name.clone(), version });
    }
    if entity.policy.supersede == Supersede::Refuse
        && let Some(rolling) = unjudged(progress)
        && *rolling != version
        && progress.last_known_good.as_ref() != Some(&version)
    {
        return Err(OperationRefusal::Busy { version, rolling: rolling.clone() });
    }
    Ok(want(entity, version, RequestKind::Start, annotation))
}

/// Requests a known bad version again, on purpose; the last one when none is named.
///
/// # Errors
/// [`OperationRefusal`] when the version is not known bad.
pub fn retry(
    entity: &Entity,
    progress: &Progress,
    version: Option<Version>,
    annotation: Annotation,
) -> Result<Entity, OperationRefusal> {
    let bad = match &version {
        Some(version) => progress.bad(version),
        None => progress.last_known_bad(),
    };
    match (bad, version) {
        (Some(bad), _) => Ok(want(entity, bad.version.clone(), RequestKind::Retry, annotation)),
        (None, Some(version)) => Err(OperationRefusal::NotKnownBad { version }),
        (None, None) => Err(OperationRefusal::NothingToRetry),
    }
}

/// Requests that the failed assignment of a target of a run be tried again.
///
/// # Errors
/// [`OperationRefusal`] when no rollout is in progress.
pub fn retry_target(
    entity: &Entity,
    progress: &Progress,
    target: &TargetName,
    failed: AssignmentNumber,
) -> Result<Entity, OperationRefusal> {
    if progress.active().is_none() {
        return Err(OperationRefusal::NothingUnderWay { operation: "retry a task of" });
    }
    let mut entity = entity.clone();
    entity.retries.insert(target.clone(), failed);
    Ok(entity)
}

/// Requests a rollback of every updated target to last known good, also out of a pause.
///
/// # Errors
/// [`OperationRefusal`] when there is no last known good version or every target is on it.
pub fn undo(
    entity: &Entity,
    progress: &Progress,
    annotation: Annotation,
) -> Result<Entity, OperationRefusal> {
    let Some(good) = progress.last_known_good.clone() else { return Err(OperationRefusal::NoKnownGood) };
    let pending = is_pending(entity, progress);
    let moved = match progress.activity {
        RolloutActivity::Settled | RolloutActivity::RollingBack(_) => false,
        RolloutActivity::Abandoned | RolloutActivity::Continued => true,
        RolloutActivity::RollingForward(_) => progress.rolling.as_ref() != Some(&good),
    };
    if matches!(progress.activity, RolloutActivity::RollingBack(_)) && !pending {
        return Err(OperationRefusal::RollingBackAlready { version: good });
    }
    if !moved && !pending {
        return Err(OperationRefusal::NothingToUndo { version: good });
    }
    let mut entity = want(entity, good, RequestKind::Undo, annotation);
    entity.hold = None;
    Ok(entity)
}

/// Ends the rollout in progress, and any that waits behind it; targets stay as they are.
///
/// # Errors
/// [`OperationRefusal`] when no rollout is in progress.
pub fn abort(
    entity: &Entity,
    progress: &Progress,
    annotation: Annotation,
) -> Result<Entity, OperationRefusal> {
    if !is_under_way(entity, progress) {
        return Err(OperationRefusal::NothingUnderWay { operation: "abort" });
    }
    let abort = Some(Abort { request: entity.last_request(), annotation });
    Ok(Entity { abort, hold: None, ..entity.clone() })
}

/// Pauses dispatch until [`resume`]; deadlines stand still.
///
/// # Errors
/// [`OperationRefusal`] when no rollout is in progress or it is paused already.
pub fn pause(
    entity: &Entity,
    progress: &Progress,
    annotation: Annotation,
) -> Result<Entity, OperationRefusal> {
    if !is_under_way(entity, progress) {
        return Err(OperationRefusal::NothingUnderWay { operation: "pause" });
    }
    if entity.hold.is_some() || progress.clock.since.is_some() {
        return Err(OperationRefusal::AlreadyPaused);
    }
    Ok(Entity { hold: Some(annotation), ..entity.clone() })
}

/// Continues after a pause by a person or by the engine; what the engine paused for is accepted from then on.
///
/// # Errors
/// [`OperationRefusal`] when nothing is paused.
pub fn resume(entity: &Entity, progress: &Progress) -> Result<Entity, OperationRefusal> {
    if entity.hold.is_none() && progress.clock.since.is_none() {
        return Err(OperationRefusal::NothingPaused);
    }
    Ok(Entity { hold: None, resumes: entity.resumes.saturating_add(1), ..entity.clone() })
}

/// Approves the stage that `rollout`, the one in progress, waits to begin; `stage` names it, from 1, so that
/// no other stage is approved by mistake.
///
/// # Errors
/// [`OperationRefusal`] when no stage waits for approval, or a different one than named.
pub fn approve(
    entity: &Entity,
    rollout: Option<&Rollout>,
    stage: Option<u32>,
    annotation: Annotation,
) -> Result<Entity, OperationRefusal> {
    let Some(Rollout {
        number, state: RolloutState::Waiting(RolloutWait::Approval { stage: waits }), ..
    }) = rollout
    else {
        return Err(OperationRefusal::NothingToApprove);
    };
    let (number, waits) = (*number, *waits);
    if let Some(asked) = stage.filter(|asked| *asked != waits) {
        return Err(OperationRefusal::OtherStage { asked, stage: waits });
    }
    Ok(Entity { approval: Some(Approval { rollout: number, stage: waits, annotation }), ..entity.clone() })
}

fn want(entity: &Entity, version: Version, how: RequestKind, annotation: Annotation) -> Entity {
    let request = entity.last_request().next();
    let wanted = VersionRequest { request, version, how, annotation, policy: None };
    Entity { wanted: Some(wanted), ..entity.clone() }
}

fn is_under_way(entity: &Entity, progress: &Progress) -> bool {
    progress.active().is_some() || is_pending(entity, progress)
}

/// Whether a request has not been acted on yet.
fn is_pending(entity: &Entity, progress: &Progress) -> bool {
    entity.last_request() > progress.handled
}

/// The version that is being rolled forward, unless it is known bad.
fn unjudged(progress: &Progress) -> Option<&Version> {
    match progress.activity {
        RolloutActivity::RollingForward(_) => {
            progress.rolling.as_ref().filter(|rolling| progress.bad(rolling).is_none())
        }
        RolloutActivity::Settled
        | RolloutActivity::Abandoned
        | RolloutActivity::Continued
        | RolloutActivity::RollingBack(_) => None,
    }
}
