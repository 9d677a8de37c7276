//! The requests of people for an entity, as stored: versions, aborts and approvals.

use bellwether_core::records::annotation::Annotation as CoreAnnotation;
use bellwether_core::records::entity as core;
use bellwether_core::words::counter::{RequestNumber, RolloutNumber};
use bellwether_core::words::time::Timestamp;

use super::{Abort, Approval, Policy, VersionRequest};
use crate::shape::{ShapeError, read};

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
