//! Ensembles: requests, answers and stored records.

pub mod adoption;
pub mod certificates;
pub mod change;
mod desired;
mod health;
pub mod keys;
pub mod member_state;
pub mod members;
pub mod orders;
pub mod osd_orders;
pub mod osd_reports;
pub mod osds;
pub mod passwords;
pub mod removal;
pub mod replication;
pub mod reports;
pub mod requests;
pub mod restore;
pub mod service;
mod size;
pub mod snapshots;
pub mod status;
pub mod unrecorded;

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::ensemble as core;
use bellwether_core::records::ensemble_adoption::AdoptionSource;
use bellwether_core::records::ensemble_restore::RestoreSource;
use bellwether_core::records::ensemble_snapshots::SnapshotPolicy;
use bellwether_core::words::counter::EnsembleRevision;
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use self::adoption::AdoptSpec;
use self::restore::RestoreSpec;
use self::service::ServiceAgentSpec;
pub use self::size::EnsembleSize;
use self::snapshots::SnapshotSpec;
use self::status::EnsembleStatus;
use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, object, read, some_object};
use crate::word::words;

words! {
    /// Whether the members of an ensemble are changed.
    #[derive(Default)]
    EnsembleMode = core::EnsembleMode {
        /// Members are added, replaced and removed.
        #[default]
        Managed = "managed",
        /// Members are left as they are; what runs goes on.
        Unmanaged = "unmanaged",
    }
}

impl EnsembleMode {
    /// Whether it is the default.
    #[must_use]
    pub const fn is_managed(&self) -> bool {
        matches!(self, Self::Managed)
    }
}

/// Request to create an ensemble, or to change one. Absent fields take their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnsembleSpec {
    /// The service agent that runs the members, with its settings.
    #[serde(deserialize_with = "object")]
    pub service: ServiceAgentSpec,
    /// Number of members: of etcd, Redis and Ceph 1 to 7, or `quorum`: 1 on up to 2 nodes that match, 3 on up to 20, 5 on up to 100, and 7 on
    /// more, which grows with the nodes and never shrinks by itself; otherwise 1 to 64. Default `quorum`, and 1 where that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<EnsembleSize>,
    /// Which nodes may have members: a filter over names, labels, facts, params and profiles, or `all`. A node that no longer matches keeps
    /// the member that it has.
    #[schema(example = "role=db")]
    pub filter: String,
    /// Key of the label by whose values members are spread. Default: they are spread by nothing.
    #[schema(example = "rack")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// How long a member may be silent before it is replaced, `30s` to `7d`. Default `10m`.
    #[schema(example = "10m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover_after: Option<String>,
    /// How long a new member may take until it votes or works, `10s` to `24h`. Default `10m`.
    #[schema(example = "10m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_within: Option<String>,
    /// Whether members are changed. Default `managed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<EnsembleMode>,
    /// When snapshots of its data are taken, and how many are kept. Default: when somebody asks, and 7.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub snapshots: Option<SnapshotSpec>,
    /// The snapshot that it is founded from. Read when it is created; absent later, it stays as it is. Default: it begins without data.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub restore: Option<RestoreSpec>,
    /// The etcd that something else runs and that it adopts: its members join that. Read when it is created; absent later, it stays as it is.
    /// Default: it founds its own.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub adopt: Option<AdoptSpec>,
    /// Reason for the change, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Request to change the number of members of an ensemble, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleEnsemble {
    /// Number of members, within the limits of its service.
    pub size: EnsembleSize,
    /// Reason for the change, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Request about the primary of an ensemble: it hands over to a replica, without a loss, unless a field says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailoverEnsemble {
    /// Number of the member that becomes the primary. Default: the first that works and has the data.
    #[schema(example = 2)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Whether the member in `to` becomes the primary whatever is lost by it, and whether or not the present one works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_data_loss: bool,
    /// Whether nothing else is meant than that the last failover is acknowledged: the next one may take place within the hour.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acknowledge: bool,
    /// Whether a handover is withdrawn that was asked for and has not begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
    /// Reason for the change, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Question what would happen to the members of an ensemble. Without fields: what is to happen as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanEnsemble {
    /// What the ensemble would be; it need not exist.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub spec: Option<EnsembleSpec>,
    /// Number of members that the ensemble would have, otherwise as it is. Excludes `spec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<EnsembleSize>,
    /// Number of a member that another one would take the place of. Excludes `spec` and `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<u64>,
    /// Whether it is asked if the ensemble may be deleted: refused as that would be, and otherwise the ensemble as it is. Excludes the other
    /// fields.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
}

/// An ensemble, as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Ensemble {
    /// Its name.
    pub name: String,
    /// Number of its last change, from 1.
    pub revision: u64,
    /// The service agent that runs its members, with its settings.
    pub service: ServiceAgentSpec,
    /// Number of members, or `quorum`.
    pub size: EnsembleSize,
    /// Which nodes may have members.
    pub filter: String,
    /// Key of the label by whose values members are spread; absent if they are spread by nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// How long a member may be silent before it is replaced, in milliseconds.
    pub failover_after_ms: u64,
    /// How long a new member may take until it votes, in milliseconds.
    pub join_within_ms: u64,
    /// Whether members are changed.
    #[serde(default, skip_serializing_if = "EnsembleMode::is_managed")]
    pub mode: EnsembleMode,
    /// When snapshots of its data are taken, and how many are kept; absent if it is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotSpec>,
    /// The snapshot that it is founded from; absent if it begins without data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreSpec>,
    /// The store that it adopts; absent if it founds its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<AdoptSpec>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its members and what is to happen to them; only in answers, and never stored with the ensemble.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<EnsembleStatus>,
    /// What may not be meant; only in the answer to a change, or to the question what one would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What an ensemble is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredEnsemble {
    /// The service agent that runs its members, with its settings.
    pub service: core::EnsembleService,
    /// How many members there are to be.
    pub size: core::EnsembleSize,
    /// Which nodes may have members.
    pub filter: Selector,
    /// Key of the label by whose values members are spread.
    pub spread: Option<String>,
    /// How long a member may be silent.
    pub failover_after: Span,
    /// How long a new member may take until it votes.
    pub join_within: Span,
    /// Whether members are changed.
    pub mode: core::EnsembleMode,
    /// When snapshots of its data are taken, and how many are kept.
    pub snapshots: SnapshotPolicy,
    /// The snapshot that it is founded from; `None` if none is named.
    pub restore: Option<RestoreSource>,
    /// The store that it adopts; `None` if none is named.
    pub adopt: Option<AdoptionSource>,
    /// Reason for the change.
    pub reason: String,
}

impl Ensemble {
    /// The request that would make this ensemble.
    #[must_use]
    pub fn spec(&self) -> EnsembleSpec {
        EnsembleSpec {
            service: self.service.clone(),
            size: Some(self.size),
            filter: self.filter.clone(),
            spread: self.spread.clone(),
            failover_after: Some(Span::from_millis(self.failover_after_ms).to_string()),
            join_within: Some(Span::from_millis(self.join_within_ms).to_string()),
            mode: (!self.mode.is_managed()).then_some(self.mode),
            snapshots: self.snapshots.clone(),
            restore: self.restore.clone(),
            adopt: self.adopt.clone(),
            reason: String::new(),
        }
    }
}

impl From<&core::Ensemble> for Ensemble {
    fn from(from: &core::Ensemble) -> Self {
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            service: (&from.service).into(),
            size: from.size.into(),
            filter: from.filter.to_string(),
            spread: from.spread.clone(),
            failover_after_ms: from.failover_after.as_millis(),
            join_within_ms: from.join_within.as_millis(),
            mode: from.mode.into(),
            snapshots: SnapshotSpec::of(from.snapshots),
            restore: from.restore.as_ref().map(Into::into),
            adopt: from.adopt.as_ref().map(Into::into),
            labels: labels_out(&from.labels),
            status: None,
            warning: None,
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        }
    }
}

impl TryFrom<Ensemble> for core::Ensemble {
    type Error = ShapeError;
    fn try_from(from: Ensemble) -> Result<Self, ShapeError> {
        let desired = from.spec().desired()?;
        Ok(Self {
            name: read("name", &from.name)?,
            revision: EnsembleRevision::new(from.revision),
            service: desired.service,
            size: desired.size,
            filter: desired.filter,
            spread: desired.spread,
            failover_after: desired.failover_after,
            join_within: desired.join_within,
            mode: desired.mode,
            snapshots: desired.snapshots,
            restore: desired.restore,
            adopt: desired.adopt,
            labels: labels_in(&from.labels)?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
        })
    }
}
