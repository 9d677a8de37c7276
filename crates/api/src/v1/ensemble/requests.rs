//! What people ask to be done with the members of an ensemble: requests, answers and what is stored of them.

use bellwether_core::records::annotation::Annotation as CoreAnnotation;
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::records::ensemble_requests as core;
use bellwether_core::words::counter::MemberNumber;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, try_map_from};
use crate::v1::annotation::Annotation;
use crate::word::words;

words! {
    /// What somebody asked to be done with members of an ensemble.
    RequestedAction {
        /// Another member takes the place of one.
        Replace = "replace",
        /// All are restarted, one after the other.
        Restart = "restart",
        /// The databases of all are defragmented, one after the other.
        Defragment = "defragment",
    }
}

/// Request that another member takes the place of one, or that it does not any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceMember {
    /// Number of the member.
    #[schema(example = 2)]
    pub member: u64,
    /// Withdraws what was asked, unless the member is leaving already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
    /// Reason, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Request to restart or to defragment the members of an ensemble one after the other, or not to go on with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollMembers {
    /// Withdraws what was asked; it is still done with the member with which it is being done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
    /// Reason, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Request to go on with an ensemble as it is recorded, after a restore of the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeEnsemble {
    /// Whether that is meant although its members are known to be others, or to have other roles: what only these have may be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_data_loss: bool,
    /// Reason, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What somebody asked to be done with members of an ensemble, and is not done yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestedChange {
    /// What is to be done.
    pub action: RequestedAction,
    /// Number of the member; absent if it is about all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u64>,
    /// Who asked for it, when and why.
    pub annotation: Annotation,
}

/// What people asked to be done with the members of an ensemble, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredRequests {
    /// The members that others are to take the place of, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<StoredReplacement>,
    /// What is done with all members, one after the other.
    #[serde(default, alias = "restart", skip_serializing_if = "Option::is_none")]
    pub rolling: Option<StoredRolling>,
}

/// What is done with one member after the other, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRolling {
    /// What is done: members are restarted or defragmented. Absent as it was stored before there was a choice.
    #[serde(default = "restart")]
    pub action: RequestedAction,
    /// Who asked for it, when and why.
    pub annotation: Annotation,
    /// Numbers of the members with which it is not done yet.
    pub left: Vec<u64>,
    /// Number of the one of them with which it is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way: Option<u64>,
    /// Numbers of the OSDs that are not restarted yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub osds_left: Vec<u64>,
    /// Number of the one of them that is being restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osd_under_way: Option<u64>,
}

const fn restart() -> RequestedAction {
    RequestedAction::Restart
}

/// A member that another one is to take the place of, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReplacement {
    /// Number of the member.
    pub member: u64,
    /// Who asked for it, when and why.
    pub annotation: Annotation,
}

impl RequestedChange {
    /// What was asked to be done with the members of an ensemble.
    #[must_use]
    pub fn all(members: &EnsembleMembers) -> Vec<Self> {
        let replacement = |(number, asked): (&MemberNumber, &CoreAnnotation)| Self {
            action: RequestedAction::Replace,
            member: Some(number.get()),
            annotation: Annotation::from(asked),
        };
        let rolling = members.requests.rolling.iter().map(|request| Self {
            action: request.action.into(),
            member: None,
            annotation: Annotation::from(&request.annotation),
        });
        members.requests.replace.iter().map(replacement).chain(rolling).collect()
    }
}

impl From<core::RollingAction> for RequestedAction {
    fn from(from: core::RollingAction) -> Self {
        match from {
            core::RollingAction::Restart => Self::Restart,
            core::RollingAction::Defragment => Self::Defragment,
        }
    }
}

impl StoredRequests {
    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&core::MemberRequests> for StoredRequests {
    fn from(from: &core::MemberRequests) -> Self {
        let replacement = |(number, asked): (&MemberNumber, &CoreAnnotation)| StoredReplacement {
            member: number.get(),
            annotation: Annotation::from(asked),
        };
        let rolling = from.rolling.as_ref().map(|request| StoredRolling {
            action: request.action.into(),
            annotation: Annotation::from(&request.annotation),
            left: request.left.iter().map(|number| number.get()).collect(),
            under_way: request.under_way.map(MemberNumber::get),
            osds_left: request.osds_left.iter().map(|number| number.get()).collect(),
            osd_under_way: request.osd_under_way.map(MemberNumber::get),
        });
        Self { replace: from.replace.iter().map(replacement).collect(), rolling }
    }
}

impl TryFrom<StoredRequests> for core::MemberRequests {
    type Error = ShapeError;
    fn try_from(from: StoredRequests) -> Result<Self, ShapeError> {
        let replace = from.replace.into_iter().map(|stored| {
            let annotation = stored.annotation.try_into();
            let annotation =
                annotation.map_err(|error: ShapeError| error.within("requests.replace.annotation"))?;
            Ok::<_, ShapeError>((MemberNumber::new(stored.member), annotation))
        });
        let rolling = from.rolling.map(|stored| {
            let action = match stored.action {
                RequestedAction::Restart => core::RollingAction::Restart,
                RequestedAction::Defragment => core::RollingAction::Defragment,
                RequestedAction::Replace => {
                    return Err(ShapeError::at("requests.rolling.action", "is done with one member"));
                }
            };
            let annotation = stored.annotation.try_into();
            let annotation =
                annotation.map_err(|error: ShapeError| error.within("requests.rolling.annotation"))?;
            let left = stored.left.into_iter().map(MemberNumber::new).collect();
            let osds_left = stored.osds_left.into_iter().map(MemberNumber::new).collect();
            let [under_way, osd_under_way] =
                [stored.under_way, stored.osd_under_way].map(|number| number.map(MemberNumber::new));
            let request =
                core::RollingRequest { action, annotation, left, under_way, osds_left, osd_under_way };
            Ok::<_, ShapeError>(request)
        });
        Ok(Self { replace: try_map_from(replace)?, rolling: rolling.transpose()? })
    }
}
