//! What the controllers of an entity answered, as it is kept.

use std::collections::BTreeMap;

use bellwether_core::records::hook_answers as core;
use bellwether_core::records::hook_answers::MonitorReport as SeenWord;
use bellwether_core::words::counter::{AssignmentNumber, RolloutNumber};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::hook::HookPurpose;
use crate::shape::{ShapeError, map_from, read, try_map_from};

/// What the controllers of one entity answered about one rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookAnswers {
    /// Which rollout.
    pub rollout: u64,
    /// Who is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<HookSelection>,
    /// Whether they may be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<HookApproval>,
    /// By target: how it does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judgements: BTreeMap<String, TargetJudgement>,
    /// How the rollout does as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<RolloutJudgement>,
    /// By hook: how it does not answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<HookPurpose, HookError>,
}

/// Who is next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookSelection {
    /// How many had had their turn when it was asked.
    pub dispatched: u64,
    /// Those who were chosen.
    pub targets: Vec<String>,
    /// When.
    pub at_ms: u64,
}

/// Whether those who were chosen may be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookApproval {
    /// How many had had their turn when it was asked.
    pub dispatched: u64,
    /// Those it was asked about.
    pub targets: Vec<String>,
    /// Whether they may.
    pub approved: bool,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// When.
    pub at_ms: u64,
}

/// How a target does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetJudgement {
    /// Which assignment is judged.
    pub assignment: u64,
    /// Whether it does well.
    pub healthy: bool,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// How the rollout does as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RolloutJudgement {
    /// Failing answers in a row.
    pub failing: u32,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// When it was last answered.
    pub at_ms: u64,
}

/// A hook that does not answer as it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookError {
    /// Since when.
    pub since_ms: u64,
    /// What happens instead.
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
