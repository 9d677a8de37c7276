//! The stored form of the states of checks. Times are milliseconds since the boot that the file names.

use std::collections::BTreeMap;

use bellwether_core::local::health::{CheckVerdict, StoredHistory};
use bellwether_core::local::ttl::TtlUpdate;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::name::{CheckName, EntityName, InstanceName, ServiceName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use serde::{Deserialize, Serialize};

use super::state::{CheckOwner, StoredCheck, StoredChecks};

/// The schema version written, and the newest one read.
const SCHEMA: u32 = 1;

/// A moment by the agent's clock and by the time since boot, to convert one into the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Timestamp,
    pub(super) since_boot: Span,
}

impl Moment {
    fn stored(self, at: Timestamp) -> u64 {
        self.since_boot.minus(self.now.since(at)).as_millis()
    }

    fn read(self, at_ms: u64) -> Timestamp {
        self.now.minus(self.since_boot.minus(Span::from_millis(at_ms)))
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChecksFile {
    schema: u32,
    boot_id: String,
    owner: OwnerShape,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    healthy_since_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    soak: Option<SoakShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    soak_failure: Option<SoakFailureShape>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    checks: BTreeMap<String, CheckShape>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ttl_updates: BTreeMap<String, TtlShape>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoakFailureShape {
    assignment: u64,
    reason: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoakShape {
    assignment: u64,
    observed_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum OwnerShape {
    Service { service: String, instance: String },
    Entity { entity: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckShape {
    probe: u64,
    verdict: VerdictShape,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    against: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum VerdictShape {
    Unknown,
    Passing { since_ms: u64 },
    Failing { since_ms: u64, message: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TtlShape {
    at_ms: u64,
    state: TtlWord,
    note: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TtlWord {
    Passing,
    Warning,
    Failing,
}

/// Writes a file.
pub(super) fn text(
    owner: &CheckOwner,
    stored: &StoredChecks,
    boot_id: &str,
    moment: Moment,
) -> Result<String, String> {
    let checks = stored.checks.iter().map(|(name, check)| (name.to_string(), check_shape(check, moment)));
    let ttl_updates = stored.ttl_updates.iter().map(|(name, (at, state, note))| {
        let state = match state {
            TtlUpdate::Passing => TtlWord::Passing,
            TtlUpdate::Warning => TtlWord::Warning,
            TtlUpdate::Failing => TtlWord::Failing,
        };
        (name.to_string(), TtlShape { at_ms: moment.stored(*at), state, note: note.clone() })
    });
    let file = ChecksFile {
        schema: SCHEMA,
        boot_id: boot_id.to_owned(),
        owner: match owner {
            CheckOwner::Service((service, instance)) => {
                OwnerShape::Service { service: service.to_string(), instance: instance.to_string() }
            }
            CheckOwner::Entity(entity) => OwnerShape::Entity { entity: entity.to_string() },
        },
        version: stored.version.as_ref().map(ToString::to_string),
        healthy_since_ms: stored.healthy_since.map(|since| moment.stored(since)),
        soak: stored.soak.map(|(assignment, observed)| SoakShape {
            assignment: assignment.get(),
            observed_ms: observed.as_millis(),
        }),
        soak_failure: stored.soak_failure.as_ref().map(|(assignment, reason)| SoakFailureShape {
            assignment: assignment.get(),
            reason: reason.clone(),
        }),
        checks: checks.collect(),
        ttl_updates: ttl_updates.collect(),
    };
    serde_json::to_string(&file).map_err(|error| error.to_string())
}

/// Reads a file; of another boot, only a failure in the soak, or `None` without one.
pub(super) fn read(
    text: &str,
    boot_id: &str,
    moment: Moment,
) -> Result<Option<(CheckOwner, StoredChecks)>, String> {
    let file: ChecksFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA {
        return Err(format!("schema {} is not {SCHEMA}", file.schema));
    }
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let owner = match file.owner {
        OwnerShape::Service { service, instance } => CheckOwner::Service((
            ServiceName::parse(&service).map_err(|error| said(&error))?,
            InstanceName::parse(&instance).map_err(|error| said(&error))?,
        )),
        OwnerShape::Entity { entity } => {
            CheckOwner::Entity(EntityName::parse(&entity).map_err(|error| said(&error))?)
        }
    };
    let soak_failure = file
        .soak_failure
        .map(|SoakFailureShape { assignment, reason }| (AssignmentNumber::new(assignment), reason));
    if file.boot_id != boot_id {
        // Its times are of another clock.
        let failed = StoredChecks { soak_failure, ..StoredChecks::default() };
        return Ok(failed.soak_failure.is_some().then_some((owner, failed)));
    }
    let name = |name: &str| CheckName::parse(name).map_err(|error| error.to_string());
    let checks = file.checks.into_iter().map(|(key, check)| Ok((name(&key)?, stored_check(check, moment))));
    let ttl_updates = file.ttl_updates.into_iter().map(|(key, TtlShape { at_ms, state, note })| {
        let state = match state {
            TtlWord::Passing => TtlUpdate::Passing,
            TtlWord::Warning => TtlUpdate::Warning,
            TtlWord::Failing => TtlUpdate::Failing,
        };
        Ok((name(&key)?, (moment.read(at_ms), state, note)))
    });
    let stored = StoredChecks {
        version: file
            .version
            .map(|version| Version::parse(&version))
            .transpose()
            .map_err(|error| said(&error))?,
        healthy_since: file.healthy_since_ms.map(|since| moment.read(since)),
        soak: file.soak.map(|SoakShape { assignment, observed_ms }| {
            (AssignmentNumber::new(assignment), Span::from_millis(observed_ms))
        }),
        soak_failure,
        checks: checks.collect::<Result<_, String>>()?,
        ttl_updates: ttl_updates.collect::<Result<_, String>>()?,
    };
    Ok(Some((owner, stored)))
}

fn check_shape(check: &StoredCheck, moment: Moment) -> CheckShape {
    let StoredHistory { verdict, warning, against } = &check.history;
    let verdict = match verdict {
        CheckVerdict::Unknown => VerdictShape::Unknown,
        CheckVerdict::Passing(since) => VerdictShape::Passing { since_ms: moment.stored(*since) },
        CheckVerdict::Failing(since, message) => {
            VerdictShape::Failing { since_ms: moment.stored(*since), message: message.clone() }
        }
    };
    CheckShape { probe: check.probe, verdict, warning: warning.clone(), against: *against }
}

fn stored_check(shape: CheckShape, moment: Moment) -> StoredCheck {
    let verdict = match shape.verdict {
        VerdictShape::Unknown => CheckVerdict::Unknown,
        VerdictShape::Passing { since_ms } => CheckVerdict::Passing(moment.read(since_ms)),
        VerdictShape::Failing { since_ms, message } => CheckVerdict::Failing(moment.read(since_ms), message),
    };
    let history = StoredHistory { verdict, warning: shape.warning, against: shape.against };
    StoredCheck { probe: shape.probe, history }
}
