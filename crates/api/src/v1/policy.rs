//! Rollout policies: their written and stored form, with amounts such as `5%` or `3` and durations such as
//! `90s`.

mod fields;
mod hook;

use bellwether_core::records::policy as core;
use bellwether_core::records::policy::ordering::TargetOrder;
use bellwether_core::words::near::nearest;
use serde::{Deserialize, Serialize};

use self::fields::FieldNames;
pub use self::hook::{Hook, Hooks, Monitor};
use crate::shape::{ShapeError, read, read_some, some_object, text_or_count};
use crate::word::words;

words! {
    /// What happens when more targets failed than the policy tolerates.
    OnFailure = core::OnFailure {
        /// Every target that was updated is rolled back to the last known good version.
        Rollback = "rollback",
        /// The rollout is paused until a person decides.
        Pause = "pause",
        /// The rollout continues to its end; the version becomes last known good only if no more failures than tolerated
        /// are left by then.
        Continue = "continue",
    }
}

words! {
    /// What a request for a new version does to a rollout that is in progress.
    Supersede = core::Supersede {
        /// The new version replaces it at once; the old one becomes neither good nor bad.
        Replace = "replace",
        /// The rollout in progress finishes first.
        Finish = "finish",
        /// The request is refused.
        Refuse = "refuse",
    }
}

/// How carefully the targets of an entity are updated. Absent fields take their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Most targets in flight at once, `5%` or a count; with `0` no target is updated. Default 5%.
    #[schema(example = "5%")]
    #[serde(default, deserialize_with = "text_or_count", skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Number or share of targets at which each stage ends, growing: `["1", "5%", "25% approve", "100%"]`; a
    /// stage with `approve` begins once a person has approved it. One stage if absent.
    #[schema(example = json!(["1", "5%", "25% approve", "100%"]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<String>>,
    /// Most targets in flight, failing or unreachable together before another is updated, `20%` or a count,
    /// of all targets and of each domain. No limit if absent.
    #[schema(example = "20%")]
    #[serde(default, deserialize_with = "text_or_count", skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<String>,
    /// Share of targets that must succeed, `1%` to `100%`. Default 100%.
    #[schema(example = "99%")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<String>,
    /// Most failed targets that are tolerated, a count or a share; one more and the version is bad. Default:
    /// what `success` leaves.
    #[schema(example = "3")]
    #[serde(default, deserialize_with = "text_or_count", skip_serializing_if = "Option::is_none")]
    pub failures: Option<String>,
    /// Most unreachable targets that are tolerated, a count or a share; one more and the rollout is paused.
    /// Default 10%.
    #[schema(example = "10%")]
    #[serde(default, deserialize_with = "text_or_count", skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// How long a target must be healthy on the version, without interruption, to succeed; `0s` to `365d`.
    /// Default 60s.
    #[schema(example = "60s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<String>,
    /// Time from its assignment within which a target must succeed, else it fails; longer than `soak`.
    /// Default 120s + soak.
    #[schema(example = "10m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Time within which another target must succeed, else the version is bad; waits and pauses do not count.
    /// Longer than `soak`; no limit if absent.
    #[schema(example = "30m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Whether an error or a failing check fails a target at once, before its deadline. Default true.
    #[schema(example = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_fast: Option<bool>,
    /// Number of attempts to apply the version, after the first, before a target fails; 0 to 100. Default 0.
    #[schema(example = 2)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Label whose values are updated one after the other: `zone`, or `zone:b,a` to begin with `b`, then `a`.
    #[schema(example = "zone:b,a")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Order in which targets are updated, within a domain: `name`, `label:KEY`, `shuffle:SEED`, or
    /// `followers-first`: in each cluster of data stores those that are down, then learners, replicas, primaries. Default name.
    #[schema(example = "label:rack")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Name of the probe of the data stores on the targets, for `order: followers-first` and `quorum`.
    #[schema(example = "db")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Whether no target starts without which its cluster of data stores would have no quorum. Default false.
    #[schema(example = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<bool>,
    /// Time windows in which targets are updated: `Mon..Fri 22:00-04:00 Europe/Berlin`; followed by
    /// `for SELECTOR`, for some targets only. Always if absent.
    #[schema(example = json!(["Mon..Fri 22:00-04:00 Europe/Berlin"]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<String>>,
    /// Services that must be functional before another target is updated: `db`, `2 of db`.
    #[schema(example = json!(["2 of db"]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<String>>,
    /// Monitor that judges the rollout as a whole; none if absent.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Monitor>,
    /// Hooks: HTTP endpoints that the rollout consults; none if absent.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// What happens when the version is bad. Default `rollback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Most targets in flight during a rollback, a count or a share, not `0`. Default 100%.
    #[schema(example = "50%")]
    #[serde(default, deserialize_with = "text_or_count", skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// What a request for a new version does to a rollout that is in progress. Default `replace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersede: Option<Supersede>,
    /// How long after a target's success its failure is still reported as a late failure of the version; `0s`
    /// to `365d`. Default 15m.
    #[schema(example = "15m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<String>,
}

impl From<&core::Policy> for Policy {
    fn from(from: &core::Policy) -> Self {
        let draft = from.to_draft();
        Self {
            batch: draft.batch.map(|amount| amount.to_string()),
            stages: draft.stages.map(|stages| texts(&stages)),
            max_unavailable: draft.max_unavailable.map(|amount| amount.to_string()),
            success: draft.success.map(|share| share.to_string()),
            failures: draft.failures.map(|amount| amount.to_string()),
            unreachable: draft.unreachable.map(|amount| amount.to_string()),
            soak: draft.soak.map(|span| span.to_string()),
            deadline: draft.deadline.map(|span| span.to_string()),
            progress: draft.progress.map(|span| span.to_string()),
            fail_fast: draft.fail_fast,
            retries: draft.retries,
            domain: draft.domain.map(|domain| domain.to_string()),
            order: draft.order.filter(|order| *order != TargetOrder::Name).map(|order| order.to_string()),
            store: draft.store.map(|store| store.to_string()),
            quorum: draft.quorum,
            windows: draft.windows.map(|windows| texts(&windows)),
            needs: draft.needs.map(|needs| texts(&needs)),
            monitor: draft.monitor.as_ref().map(Monitor::from),
            hooks: draft.hooks.as_ref().map(Hooks::from),
            on_failure: draft.on_failure.map(OnFailure::from),
            rollback: draft.rollback.map(|amount| amount.to_string()),
            supersede: draft.supersede.map(Supersede::from),
            settle: draft
                .settle
                .filter(|span| *span != core::Policy::DEFAULT.settle)
                .map(|span| span.to_string()),
        }
    }
}

impl TryFrom<&Policy> for core::PolicyDraft {
    type Error = ShapeError;
    fn try_from(from: &Policy) -> Result<Self, ShapeError> {
        Ok(Self {
            batch: read_some("batch", from.batch.as_deref())?,
            stages: read_list("stages", from.stages.as_deref())?,
            max_unavailable: read_some("max_unavailable", from.max_unavailable.as_deref())?,
            success: read_some("success", from.success.as_deref())?,
            failures: read_some("failures", from.failures.as_deref())?,
            unreachable: read_some("unreachable", from.unreachable.as_deref())?,
            soak: read_some("soak", from.soak.as_deref())?,
            deadline: read_some("deadline", from.deadline.as_deref())?,
            progress: read_some("progress", from.progress.as_deref())?,
            fail_fast: from.fail_fast,
            retries: from.retries,
            domain: read_some("domain", from.domain.as_deref())?,
            order: read_some("order", from.order.as_deref())?,
            store: read_some("store", from.store.as_deref())?,
            quorum: from.quorum,
            windows: read_list("windows", from.windows.as_deref())?,
            needs: read_list("needs", from.needs.as_deref())?,
            monitor: from.monitor.as_ref().map(TryInto::try_into).transpose()?,
            hooks: from.hooks.as_ref().map(TryInto::try_into).transpose()?,
            on_failure: from.on_failure.map(Into::into),
            rollback: read_some("rollback", from.rollback.as_deref())?,
            supersede: from.supersede.map(Into::into),
            settle: read_some("settle", from.settle.as_deref())?,
        })
    }
}

impl TryFrom<&Policy> for core::Policy {
    type Error = ShapeError;
    fn try_from(from: &Policy) -> Result<Self, ShapeError> {
        Self::new(from.try_into()?).map_err(misfit)
    }
}

/// The error of a policy that core refuses.
#[must_use]
pub fn misfit(error: core::PolicyError) -> ShapeError {
    ShapeError::at(error.field, error.reason)
}

impl Policy {
    /// This policy with the named fields set to their defaults. `-` and `_` are the same in a name.
    ///
    /// # Errors
    /// [`ShapeError`] at `unset`, with the nearest name, when there is no such field.
    pub fn without(self, fields: &[String]) -> Result<Self, ShapeError> {
        let refused = |reason: String| ShapeError::at("unset", reason);
        let mut kept = serde_json::to_value(self).map_err(|error| refused(error.to_string()))?;
        for field in fields {
            let name = field.replace('-', "_");
            let known = Self::field_names();
            if !known.contains(&name.as_str()) {
                let near = nearest(&name, known.iter().copied());
                let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                return Err(refused(format!("{field:?} is not a policy field{near}")));
            }
            if let Some(fields) = kept.as_object_mut() {
                fields.remove(&name);
            }
        }
        serde_json::from_value(kept).map_err(|error| refused(error.to_string()))
    }

    /// The names of all fields.
    #[must_use]
    pub fn field_names() -> &'static [&'static str] {
        let mut asked = FieldNames(&[]);
        // Deserialisation stops with an error once the field names are known, which are all that is needed.
        drop(Self::deserialize(&mut asked));
        asked.0
    }

    /// This policy with each field that `over` sets in place of its own.
    #[must_use]
    pub fn overlaid(self, over: Self) -> Self {
        Self {
            batch: over.batch.or(self.batch),
            stages: over.stages.or(self.stages),
            max_unavailable: over.max_unavailable.or(self.max_unavailable),
            success: over.success.or(self.success),
            failures: over.failures.or(self.failures),
            unreachable: over.unreachable.or(self.unreachable),
            soak: over.soak.or(self.soak),
            deadline: over.deadline.or(self.deadline),
            fail_fast: over.fail_fast.or(self.fail_fast),
            progress: over.progress.or(self.progress),
            retries: over.retries.or(self.retries),
            domain: over.domain.or(self.domain),
            order: over.order.or(self.order),
            store: over.store.or(self.store),
            quorum: over.quorum.or(self.quorum),
            windows: over.windows.or(self.windows),
            needs: over.needs.or(self.needs),
            monitor: over.monitor.or(self.monitor),
            hooks: over.hooks.or(self.hooks),
            on_failure: over.on_failure.or(self.on_failure),
            rollback: over.rollback.or(self.rollback),
            supersede: over.supersede.or(self.supersede),
            settle: over.settle.or(self.settle),
        }
    }
}

/// The items of a list as text.
fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// Reads the items of a list with their type's own parser; an error names the index.
fn read_list<T>(place: &str, list: Option<&[String]>) -> Result<Option<Vec<T>>, ShapeError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let Some(list) = list else { return Ok(None) };
    let read = list.iter().enumerate().map(|(index, text)| read(&format!("{place}[{index}]"), text));
    read.collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_was_never_said_follows_a_new_soak() {
        let text = |text: &str| Some(text.to_owned());
        let first = core::Policy::try_from(&Policy::default()).unwrap();
        let kept = Policy::from(&first);
        let longer = kept.overlaid(Policy { soak: text("10m"), ..Policy::default() });
        assert_eq!(core::Policy::try_from(&longer).unwrap().deadline.to_string(), "12m");
        let said = Policy::from(&first).overlaid(Policy { deadline: text("5m"), ..Policy::default() });
        let kept = Policy::from(&core::Policy::try_from(&said).unwrap());
        let longer = kept.overlaid(Policy { soak: text("10m"), ..Policy::default() });
        assert!(core::Policy::try_from(&longer).is_err(), "a deadline that was said stays");
    }
}
