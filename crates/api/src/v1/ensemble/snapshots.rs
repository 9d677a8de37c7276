//! Snapshots of the data of ensembles: settings, requests, orders, reports, answers and what is stored of them.

use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::records::ensemble_snapshots as core;
use bellwether_core::words::counter::{MemberNumber, SnapshotNumber};
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, read_some};
use crate::v1::annotation::Annotation;

/// When snapshots of the data of an ensemble are taken without anybody asking, and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotSpec {
    /// Time between two, `60s` to `365d`. Default: they are taken only when somebody asks.
    #[schema(example = "6h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// How many are kept on all nodes together, the latest, 1 to 100. Default 7.
    #[schema(example = 7)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
}

/// Request for a snapshot of the data of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeSnapshot {
    /// Reason, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Identifies a snapshot of an ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SnapshotId {
    /// Its number, from 1.
    pub number: u64,
    /// When it was ordered, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
}

/// What is in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SnapshotContent {
    /// Its size in bytes.
    pub bytes: u64,
    /// The store's revision before it was taken.
    pub revision: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

/// The snapshots of the data of an ensemble, as they are sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleSnapshots {
    /// Number of the one that was ordered last; 0 before the first.
    #[serde(default)]
    pub last: u64,
    /// Who asked for one that is not ordered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Annotation>,
    /// The one that is being taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<OrderedSnapshot>,
    /// Those that were taken and are kept, the latest at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenSnapshot>,
    /// The last one, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<SnapshotFailure>,
}

/// A snapshot that is being taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OrderedSnapshot {
    /// Which one it is.
    pub id: SnapshotId,
    /// Number of the member that takes it.
    pub by: u64,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TakenSnapshot {
    /// Which one it is.
    pub id: SnapshotId,
    /// Name among the snapshots of all ensembles, as a restore names it; only in answers.
    #[schema(example = "store-19ab0c3d4e5-3-19ab0c3f000")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Name of the node that it lies on.
    pub node: String,
    /// What is in it.
    pub content: SnapshotContent,
}

/// A snapshot that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SnapshotFailure {
    /// Which one it is.
    pub id: SnapshotId,
    /// Name of the node that was to take it.
    pub node: String,
    /// Why it was not.
    pub reason: String,
    /// When that was known, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
}

/// What a node is to do about snapshots of the ensemble of its member.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SnapshotOrder {
    /// The one that it is to take; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take: Option<SnapshotId>,
    /// Those on it that are kept, the latest at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<SnapshotId>,
    /// The latest that is kept on any node: older ones that are not kept on this one are removed; absent if none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<SnapshotId>,
}

/// What became of a snapshot that a node was to take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotReport {
    /// Which one it is.
    pub id: SnapshotId,
    /// What is in it; absent if it was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<SnapshotContent>,
    /// Why it was not taken, in one line of at most 512 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
}

impl SnapshotSpec {
    /// The settings.
    pub(super) fn read(&self) -> Result<core::SnapshotPolicy, ShapeError> {
        let every: Option<Span> = read_some("snapshots.every", self.every.as_deref())?;
        let (least, most) = (core::MIN_SNAPSHOT_INTERVAL, core::MAX_SNAPSHOT_INTERVAL);
        if let Some(every) = every.filter(|every| !(least..=most).contains(every)) {
            return Err(ShapeError::at("snapshots.every", format!("{every}; write {least} to {most}")));
        }
        let keep = self.keep.unwrap_or(core::SNAPSHOTS_KEPT);
        if !(1..=core::MAX_SNAPSHOTS).contains(&keep) {
            let reason = format!("{keep}; write 1 to {}", core::MAX_SNAPSHOTS);
            return Err(ShapeError::at("snapshots.keep", reason));
        }
        Ok(core::SnapshotPolicy { every, keep })
    }

    /// The settings, if they are not the default.
    pub(super) fn of(policy: core::SnapshotPolicy) -> Option<Self> {
        let spec = Self { every: policy.every.map(|every| every.to_string()), keep: Some(policy.keep) };
        (policy != core::SnapshotPolicy::default()).then_some(spec)
    }
}

impl EnsembleSnapshots {
    /// The snapshots of an ensemble, with their names.
    #[must_use]
    pub fn named(members: &EnsembleMembers) -> Self {
        let mut named = Self::from(&members.snapshots);
        for (shape, taken) in named.taken.iter_mut().zip(&members.snapshots.taken) {
            shape.name = members.snapshot_name(taken.id).to_string();
        }
        named
    }

    /// Whether none was ever asked for or taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SnapshotOrder {
    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<core::SnapshotId> for SnapshotId {
    fn from(from: core::SnapshotId) -> Self {
        Self { number: from.number.get(), at_ms: from.at.as_millis() }
    }
}

impl From<SnapshotId> for core::SnapshotId {
    fn from(from: SnapshotId) -> Self {
        Self { number: SnapshotNumber::new(from.number), at: Timestamp::from_millis(from.at_ms) }
    }
}

impl From<&core::SnapshotContent> for SnapshotContent {
    fn from(from: &core::SnapshotContent) -> Self {
        Self { bytes: from.bytes, revision: from.revision, sha256: from.sha256.clone() }
    }
}

impl From<SnapshotContent> for core::SnapshotContent {
    fn from(from: SnapshotContent) -> Self {
        Self { bytes: from.bytes, revision: from.revision, sha256: from.sha256 }
    }
}

impl From<&core::EnsembleSnapshots> for EnsembleSnapshots {
    fn from(from: &core::EnsembleSnapshots) -> Self {
        let taken = |taken: &core::TakenSnapshot| TakenSnapshot {
            id: taken.id.into(),
            name: String::new(),
            node: taken.node.to_string(),
            content: (&taken.content).into(),
        };
        let ordered = from.ordered.as_ref();
        Self {
            last: from.last.get(),
            requested: from.requested.as_ref().map(Annotation::from),
            ordered: ordered.map(|of| OrderedSnapshot { id: of.id.into(), by: of.by.get() }),
            taken: from.taken.iter().map(taken).collect(),
            failure: from.failure.as_ref().map(|failure| SnapshotFailure {
                id: failure.id.into(),
                node: failure.node.to_string(),
                reason: failure.reason.clone(),
                at_ms: failure.at.as_millis(),
            }),
        }
    }
}

impl TryFrom<EnsembleSnapshots> for core::EnsembleSnapshots {
    type Error = ShapeError;
    fn try_from(from: EnsembleSnapshots) -> Result<Self, ShapeError> {
        let taken = from.taken.into_iter().map(|taken| {
            let node = read("snapshots.taken.node", &taken.node)?;
            Ok(core::TakenSnapshot { id: taken.id.into(), node, content: taken.content.into() })
        });
        let failure = from.failure.map(|failure| {
            Ok::<_, ShapeError>(core::SnapshotFailure {
                id: failure.id.into(),
                node: read("snapshots.failure.node", &failure.node)?,
                reason: failure.reason,
                at: Timestamp::from_millis(failure.at_ms),
            })
        });
        let ordered = from.ordered;
        Ok(Self {
            last: SnapshotNumber::new(from.last),
            requested: from.requested.map(TryInto::try_into).transpose()?,
            ordered: ordered
                .map(|of| core::OrderedSnapshot { id: of.id.into(), by: MemberNumber::new(of.by) }),
            taken: taken.collect::<Result<_, ShapeError>>()?,
            failure: failure.transpose()?,
        })
    }
}

impl From<&core::SnapshotOrder> for SnapshotOrder {
    fn from(from: &core::SnapshotOrder) -> Self {
        let kept = from.kept.iter().map(|id| (*id).into()).collect();
        Self { take: from.take.map(Into::into), kept, latest: from.latest.map(Into::into) }
    }
}

impl From<SnapshotOrder> for core::SnapshotOrder {
    fn from(from: SnapshotOrder) -> Self {
        let kept = from.kept.into_iter().map(Into::into).collect();
        Self { take: from.take.map(Into::into), kept, latest: from.latest.map(Into::into) }
    }
}

impl From<&core::SnapshotReport> for SnapshotReport {
    fn from(from: &core::SnapshotReport) -> Self {
        let content = from.outcome.as_ref().ok().map(SnapshotContent::from);
        let failure = from.outcome.as_ref().err().cloned().unwrap_or_default();
        Self { id: from.id.into(), content, failure }
    }
}

impl From<SnapshotReport> for core::SnapshotReport {
    fn from(from: SnapshotReport) -> Self {
        let outcome = from.content.map(Into::into).ok_or(from.failure);
        Self { id: from.id.into(), outcome }
    }
}
