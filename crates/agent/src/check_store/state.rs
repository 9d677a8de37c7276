//! What is stored of the checks of a service instance or an entity.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::local::health::StoredHistory;
use bellwether_core::local::ttl::TtlUpdate;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::name::{CheckName, EntityName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

use crate::service::InstanceKey;

/// What has checks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckOwner {
    Service(InstanceKey),
    Entity(EntityName),
}

/// The state of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredCheck {
    /// Digest of what it probes.
    pub(crate) probe: u64,
    pub(crate) history: StoredHistory,
}

/// The states of all checks of one owner. Times are by this agent's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StoredChecks {
    /// The version that the results are about, and since when it is healthy; entities only.
    pub(crate) version: Option<Version>,
    pub(crate) healthy_since: Option<Timestamp>,
    /// The assignment whose soak is measured, and the healthy time that was observed; entities only.
    pub(crate) soak: Option<(AssignmentNumber, Span)>,
    /// The assignment in whose soak health was lost, and why; entities only.
    pub(crate) soak_failure: Option<(AssignmentNumber, String)>,
    pub(crate) checks: BTreeMap<CheckName, StoredCheck>,
    /// The last update of each TTL check.
    pub(crate) ttl_updates: BTreeMap<CheckName, (Timestamp, TtlUpdate, String)>,
}

/// All states by owner.
pub(super) type States = BTreeMap<CheckOwner, Arc<StoredChecks>>;
