//! Stored answers of the hooks of an entity.

use std::collections::BTreeMap;

use bellwether_core::records::hook_answers as core;
use bellwether_core::records::hook_answers::MonitorReport as SeenWord;
use bellwether_core::words::counter::{AssignmentNumber, RolloutNumber};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::hook::HookPurpose;
use crate::shape::{ShapeError, map_from, read, try_map_from};

/// Stored answers of the hooks of one entity about one rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookAnswers {
    /// Number of the rollout.
    pub rollout: u64,
    /// The last answer of the selection hook; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<HookSelection>,
    /// The last answer of the approval hook; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<HookApproval>,
    /// The judgement of each target, by target name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judgements: BTreeMap<String, TargetJudgement>,
    /// The last judgement of the monitor; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<RolloutJudgement>,
    /// The present error of each hook, by purpose; hooks that answer are not contained.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<HookPurpose, HookError>,
}

/// An answer of the selection hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookSelection {
    /// How many targets were assigned the version when the hook was called.
    pub dispatched: u64,
    /// Names of the selected targets, in the order in which they are updated.
    pub targets: Vec<String>,
    /// Time of the answer, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// An answer of the approval hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookApproval {
    /// How many targets were assigned the version when the hook was called.
    pub dispatched: u64,
    /// Names of the targets that the hook was asked about.
    pub targets: Vec<String>,
    /// Whether the targets may be updated.
    pub approved: bool,
    /// The reason, one line; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Time of the answer, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// The judgement of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetJudgement {
    /// Number of the assignment that is judged.
    pub assignment: u64,
    /// Whether the target is healthy.
    pub healthy: bool,
    /// The reason, one line; may be empty.
    #[serde(default)]
    pub reason: String,
}

/// The judgement of the rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RolloutJudgement {
    /// Number of unhealthy answers in a row.
    pub failing: u32,
    /// The reason of the last answer, one line; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Time of the last answer, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// The error of a hook that cannot be called, or whose answer is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookError {
    /// Time of the first failed call, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// The error of the last call, one line.
    pub reason: String,
}

impl From<&core::HookAnswers> for HookAnswers {
    fn from(from: &core::HookAnswers) -> Self {
        let texts = |names: &[TargetName]| names.iter().map(ToString::to_string).collect();
        let trouble = |trouble: &core::HookError| {
            let (since_ms, reason) = (trouble.since.as_millis(), trouble.reason.clone());
            HookError { since_ms, reason }
        };
        let errors = from.troubles.iter().map(|(asked, found)| (HookPurpose::from(*asked), trouble(found)));
        Self {
            rollout: from.rollout.get(),
            selection: from.selection.as_ref().map(|selection| HookSelection {
                dispatched: selection.turned,
                targets: texts(&selection.targets),
                at_ms: selection.at.as_millis(),
            }),
            approval: from.approval.as_ref().map(|approval| HookApproval {
                dispatched: approval.turned,
                targets: texts(&approval.targets),
                approved: approval.approved,
                reason: approval.reason.clone(),
                at_ms: approval.at.as_millis(),
            }),
            judgements: map_from(
                from.words.iter().map(|(name, word)| (name.to_string(), TargetJudgement::from(word))),
            ),
            monitor: from.monitor.as_ref().map(|judgement| RolloutJudgement {
                failing: judgement.failing,
                reason: judgement.reason.clone(),
                at_ms: judgement.at.as_millis(),
            }),
            errors: map_from(errors),
        }
    }
}

impl From<&SeenWord> for TargetJudgement {
    fn from(from: &SeenWord) -> Self {
        Self { assignment: from.assignment.get(), healthy: from.well, reason: from.reason.to_string() }
    }
}

impl TryFrom<HookAnswers> for core::HookAnswers {
    type Error = ShapeError;
    fn try_from(from: HookAnswers) -> Result<Self, ShapeError> {
        let words = from.judgements.into_iter().map(|(name, word)| {
            let assignment = AssignmentNumber::new(word.assignment);
            let word = SeenWord { assignment, well: word.healthy, reason: word.reason.into() };
            Ok::<_, ShapeError>((read("judgements", &name)?, word))
        });
        let errors = from.errors.into_iter().map(|(purpose, error)| {
            let since = Timestamp::from_millis(error.since_ms);
            (core::HookPurpose::from(purpose), core::HookError { since, reason: error.reason })
        });
        Ok(Self {
            rollout: RolloutNumber::new(from.rollout),
            selection: from.selection.map(TryInto::try_into).transpose()?,
            approval: from.approval.map(TryInto::try_into).transpose()?,
            words: try_map_from(words)?,
            monitor: from.monitor.map(|judgement| core::RolloutJudgement {
                failing: judgement.failing,
                reason: judgement.reason,
                at: Timestamp::from_millis(judgement.at_ms),
            }),
            troubles: map_from(errors),
        })
    }
}

impl TryFrom<HookSelection> for core::HookSelection {
    type Error = ShapeError;
    fn try_from(from: HookSelection) -> Result<Self, ShapeError> {
        let targets = names("selection.targets", &from.targets)?;
        Ok(Self { turned: from.dispatched, targets, at: Timestamp::from_millis(from.at_ms) })
    }
}

impl TryFrom<HookApproval> for core::HookApproval {
    type Error = ShapeError;
    fn try_from(from: HookApproval) -> Result<Self, ShapeError> {
        let targets = names("approval.targets", &from.targets)?;
        let HookApproval { dispatched, approved, reason, at_ms, .. } = from;
        Ok(Self { turned: dispatched, targets, approved, reason, at: Timestamp::from_millis(at_ms) })
    }
}

fn names(place: &str, texts: &[String]) -> Result<Vec<TargetName>, ShapeError> {
    texts.iter().map(|text| read(place, text)).collect()
}
