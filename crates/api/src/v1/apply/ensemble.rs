//! Documents of ensembles.

use std::collections::BTreeMap;

use bellwether_core::records::ensemble as core;
use serde::{Deserialize, Serialize};

use super::ignored::Ignored;
use super::schema;
use crate::shape::{object, some_object};
use crate::v1::ensemble::adoption::AdoptSpec;
use crate::v1::ensemble::restore::RestoreSpec;
use crate::v1::ensemble::service::ServiceAgentSpec;
use crate::v1::ensemble::snapshots::SnapshotSpec;
use crate::v1::ensemble::{Ensemble, EnsembleMode, EnsembleSize, EnsembleSpec};

/// The desired state of an ensemble, which `apply` creates and changes, and never deletes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnsembleDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::ensemble, required)]
    pub kind: Ignored,
    /// Ensemble name, a DNS label.
    #[schema(example = "store")]
    pub name: String,
    /// Namespace of the ensemble. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64. `apply --prune` names the ensembles that it would select by them, and keeps them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The service agent that runs the members, with its settings.
    #[serde(deserialize_with = "object")]
    pub service: ServiceAgentSpec,
    /// Number of members: of etcd, Redis and Ceph 1 to 7, or `quorum`: 1 on up to 2 nodes that match, 3 on up to 20, 5 on up to 100, and 7
    /// on more, which grows with the nodes and never shrinks by itself; otherwise 1 to 64. Default `quorum`, and 1 where that is not there.
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
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "agreed with the owners of the data")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl EnsembleDocument {
    /// The document of an ensemble.
    #[must_use]
    pub fn of(ensemble: &core::Ensemble) -> Self {
        let shape = Ensemble::from(ensemble);
        let EnsembleSpec {
            service,
            size,
            filter,
            spread,
            failover_after,
            join_within,
            mode,
            snapshots,
            restore,
            adopt,
            ..
        } = shape.spec();
        Self {
            name: shape.name,
            labels: shape.labels,
            service,
            size,
            filter,
            spread,
            failover_after,
            join_within,
            mode,
            snapshots,
            restore,
            adopt,
            ..Self::default()
        }
    }

    /// The ensemble that the document sets.
    #[must_use]
    pub fn spec(&self) -> EnsembleSpec {
        EnsembleSpec {
            service: self.service.clone(),
            size: self.size,
            filter: self.filter.clone(),
            spread: self.spread.clone(),
            failover_after: self.failover_after.clone(),
            join_within: self.join_within.clone(),
            mode: self.mode,
            snapshots: self.snapshots.clone(),
            restore: self.restore.clone(),
            adopt: self.adopt.clone(),
            reason: self.reason.clone(),
        }
    }
}
