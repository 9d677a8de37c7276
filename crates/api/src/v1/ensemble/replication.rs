//! Members of which one is the primary that replicas follow: orders, reports and stored records.

use bellwether_core::records::member as core;
use bellwether_core::records::primary::{PrimaryRecord, Promotion};
use bellwether_core::words::counter::{Epoch, MemberNumber};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, map_from};
use crate::word::words;

words! {
    /// What a member is to be.
    ReplicationTask {
        /// The primary.
        Primary = "primary",
        /// The primary, until it has handed over to the member at `url`.
        HandOver = "hand_over",
        /// A replica of the member at `url`.
        Follow = "follow",
        /// A replica of the member at `url`, until that has handed over to it.
        TakeOver = "take_over",
        /// A replica of nobody.
        Nobody = "nobody",
    }
}

words! {
    /// What a member is, where one is the primary that replicas follow.
    MemberRole {
        /// It takes writes.
        Primary = "primary",
        /// It follows another member, or nobody.
        Replica = "replica",
    }
}

/// What a member is to be, where one is the primary that replicas follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReplicationOrder {
    /// What it is to be.
    pub task: ReplicationTask,
    /// URL of the member that it follows, or hands over to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Id of the history that it must have to become the primary, if it is not it yet; absent for whatever it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
}

/// What a member says of its replication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Replication {
    /// What it is.
    pub role: MemberRole,
    /// URL of the member that it follows; absent if it follows nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Whether data come to it now.
    #[serde(default)]
    pub streams: bool,
    /// Whether it has all data of its history up to its position, and does not copy them anew.
    #[serde(default)]
    pub is_whole: bool,
    /// Id of its history.
    pub history: String,
    /// Id of the history of which that one is the continuation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
    /// Its position in bytes; absent while it changes and nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// URLs of the replicas that a primary sends data to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<String>,
    /// Whether its agent knows that it is to take over from the primary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_over: bool,
    /// Id of its process: one that is started anew has another.
    pub run: String,
    /// Whether it cannot write to its disk: as a primary, it takes no writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cannot_store: bool,
    /// The number of its keys; absent of a primary, and while data come to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
}

/// Who is the primary, and what the others were ordered, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredPrimary {
    /// Number of the member that was ordered to be the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<u64>,
    /// That it was not seen as it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<StoredPromotion>,
    /// Id of the primary's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Id of the history that the primary writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// Id of the history of which that one is the continuation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
    /// When another one took over without a person, in milliseconds since the Unix epoch, by the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_over_ms: Option<u64>,
    /// Number of the member to which the primary is to hand over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<u64>,
    /// Whether that one knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_handover_known: bool,
    /// Since when the primary takes no writes because it cannot write to its disk, in milliseconds since the Unix epoch, by the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_since_ms: Option<u64>,
    /// The members that are heard of and cut off from the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<StoredCutOff>,
    /// The replicas that were ordered to follow a member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<StoredFollower>,
    /// Numbers of the members that were seen with all data of a primary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub had_data: Vec<u64>,
    /// Numbers of the members that the others let in no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<u64>,
    /// Whether the primary does not work, and none may take over before something changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held: bool,
    /// Whether its members tell of their positions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_position: bool,
}

/// An order to become the primary, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPromotion {
    /// Id of the history that it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// Whether it takes over from another one without a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_failover: bool,
    /// The epoch in which a person named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_in: Option<u64>,
}

/// A replica, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFollower {
    /// Its number.
    pub number: u64,
    /// Number of the member that it was ordered to follow.
    pub of: u64,
}

/// A member that is heard of and cut off from the others, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCutOff {
    /// Its number.
    pub number: u64,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
}

impl From<&core::ReplicationOrder> for ReplicationOrder {
    fn from(from: &core::ReplicationOrder) -> Self {
        let (task, url, history) = match from {
            core::ReplicationOrder::Primary { history } => (ReplicationTask::Primary, None, history.clone()),
            core::ReplicationOrder::HandOver { to } => (ReplicationTask::HandOver, Some(to.clone()), None),
            core::ReplicationOrder::Follow { of } => (ReplicationTask::Follow, Some(of.clone()), None),
            core::ReplicationOrder::TakeOver { of } => (ReplicationTask::TakeOver, Some(of.clone()), None),
            core::ReplicationOrder::Nobody => (ReplicationTask::Nobody, None, None),
        };
        Self { task, url, history }
    }
}

impl TryFrom<ReplicationOrder> for core::ReplicationOrder {
    type Error = ShapeError;
    fn try_from(from: ReplicationOrder) -> Result<Self, ShapeError> {
        let url = || from.url.ok_or_else(|| ShapeError::at("replication.url", "missing"));
        Ok(match from.task {
            ReplicationTask::Primary => Self::Primary { history: from.history },
            ReplicationTask::HandOver => Self::HandOver { to: url()? },
            ReplicationTask::Follow => Self::Follow { of: url()? },
            ReplicationTask::TakeOver => Self::TakeOver { of: url()? },
            ReplicationTask::Nobody => Self::Nobody,
        })
    }
}

impl From<&core::Replication> for Replication {
    fn from(from: &core::Replication) -> Self {
        Self {
            role: if from.is_primary { MemberRole::Primary } else { MemberRole::Replica },
            follows: from.follows.clone(),
            streams: from.streams,
            is_whole: from.is_whole,
            history: from.history.clone(),
            former: from.former.clone(),
            offset: from.offset,
            replicas: from.replicas.clone(),
            takes_over: from.takes_over,
            run: from.run.clone(),
            cannot_store: from.cannot_store,
            keys: from.keys,
        }
    }
}

impl From<Replication> for core::Replication {
    fn from(from: Replication) -> Self {
        Self {
            is_primary: from.role == MemberRole::Primary,
            follows: from.follows,
            streams: from.streams,
            is_whole: from.is_whole,
            history: from.history,
            former: from.former,
            offset: from.offset,
            replicas: from.replicas,
            takes_over: from.takes_over,
            run: from.run,
            cannot_store: from.cannot_store,
            keys: from.keys,
        }
    }
}

impl StoredPrimary {
    /// What is stored; `None` if there is nothing.
    #[must_use]
    pub fn of(from: &PrimaryRecord) -> Option<Self> {
        let stored = Self {
            primary: from.primary.map(MemberNumber::get),
            promotion: from.promotion.as_ref().map(|promotion| StoredPromotion {
                history: promotion.history.clone(),
                is_failover: promotion.is_failover,
                named_in: promotion.named_in.map(Epoch::get),
            }),
            run: from.run.clone(),
            history: from.history.clone(),
            former: from.former.clone(),
            failed_over_ms: from.failed_over.map(Timestamp::as_millis),
            handover: from.handover.map(MemberNumber::get),
            is_handover_known: from.is_handover_known,
            blocked_since_ms: from.blocked_since.map(Timestamp::as_millis),
            cut_off: from
                .cut_off
                .iter()
                .map(|(number, since)| StoredCutOff { number: number.get(), since_ms: since.as_millis() })
                .collect(),
            follows: from
                .follows
                .iter()
                .map(|(number, of)| StoredFollower { number: number.get(), of: of.get() })
                .collect(),
            had_data: from.had_data.iter().copied().map(MemberNumber::get).collect(),
            cut: from.cut.iter().copied().map(MemberNumber::get).collect(),
            is_held: from.is_held,
            tells_position: from.tells_position,
        };
        (stored != Self::default()).then_some(stored)
    }
}

impl From<StoredPrimary> for PrimaryRecord {
    fn from(from: StoredPrimary) -> Self {
        let follows = from.follows.iter();
        let follows = follows.map(|stored| (MemberNumber::new(stored.number), MemberNumber::new(stored.of)));
        let cut_off = from.cut_off.iter();
        let cut_off =
            cut_off.map(|stored| (MemberNumber::new(stored.number), Timestamp::from_millis(stored.since_ms)));
        Self {
            primary: from.primary.map(MemberNumber::new),
            promotion: from.promotion.map(|stored| Promotion {
                history: stored.history,
                is_failover: stored.is_failover,
                named_in: stored.named_in.map(Epoch::new),
            }),
            run: from.run,
            history: from.history,
            former: from.former,
            failed_over: from.failed_over_ms.map(Timestamp::from_millis),
            handover: from.handover.map(MemberNumber::new),
            is_handover_known: from.is_handover_known,
            blocked_since: from.blocked_since_ms.map(Timestamp::from_millis),
            cut_off: map_from(cut_off),
            follows: map_from(follows),
            had_data: from.had_data.into_iter().map(MemberNumber::new).collect(),
            cut: from.cut.into_iter().map(MemberNumber::new).collect(),
            is_held: from.is_held,
            tells_position: from.tells_position,
        }
    }
}
