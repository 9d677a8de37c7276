//! The thresholds of a policy for a number of targets: how many at once, how many must succeed, how many may
//! fail or be silent.

use crate::records::policy::Policy;
use crate::records::rollout::WaivedPauses;

/// A policy's shares as numbers of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Most targets in flight at once; with zero none starts.
    pub batch: u64,
    /// Most targets in flight at once during a rollback.
    pub rollback: u64,
    /// Successes that make the version last known good; at least 1.
    pub needed: u64,
    /// Failures tolerated; one more and the version is bad.
    pub tolerated: u64,
    /// Silent targets tolerated.
    pub unreachable: u64,
    /// Most targets that may be in flight, unhealthy or silent; `None` without a limit.
    pub max_unavailable: Option<u64>,
}

/// The number of targets that a policy's shares are taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutSize {
    /// Targets at present.
    pub targets: u64,
    /// The largest number of targets during the rollout: targets that left are no evidence, so that they lower no budget.
    pub enrolled: u64,
    /// Targets that failed as they had before: no evidence, so that nothing is expected of them.
    pub failing_before: u64,
}

impl Thresholds {
    /// The thresholds for a number of targets, including what a person accepted by resuming.
    ///
    /// The tolerated failures always leave room for the needed successes.
    #[must_use]
    pub fn of(policy: &Policy, size: RolloutSize, waived: WaivedPauses) -> Self {
        let RolloutSize { targets, enrolled, failing_before } = size;
        let judged = targets.saturating_sub(failing_before);
        let share = policy.success.of_rounded_up(judged).max(1);
        let enrolled = enrolled.saturating_sub(failing_before);
        let left_over = enrolled.saturating_sub(policy.success.of_rounded_up(enrolled).max(1));
        let allowed = policy.failures.map_or(left_over, |failures| failures.of_at_most(enrolled));
        let tolerated = allowed.min(left_over).max(waived.failed);
        Self {
            batch: policy.batch.of_at_least_one(targets),
            rollback: policy.rollback.of_at_least_one(targets),
            needed: share.min(judged.saturating_sub(tolerated)).max(1),
            tolerated,
            unreachable: policy.unreachable.of_at_most(enrolled).max(waived.unreachable),
            max_unavailable: policy.max_unavailable.map(|most| most.of_at_least_one(targets)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::policy::PolicyDraft;

    fn of(success: &str, failures: Option<&str>, targets: u64) -> (u64, u64) {
        let failures = failures.map(|text| text.parse().unwrap());
        let draft = PolicyDraft { success: success.parse().ok(), failures, ..PolicyDraft::default() };
        let thresholds = Thresholds::of(
            &Policy::new(draft).unwrap(),
            RolloutSize { targets, enrolled: targets, failing_before: 0 },
            WaivedPauses::default(),
        );
        (thresholds.needed, thresholds.tolerated)
    }

    #[test]
    fn the_success_share_leaves_the_failures_over() {
        assert_eq!(of("100%", None, 20), (20, 0));
        assert_eq!(of("90%", None, 20), (18, 2));
        assert_eq!(of("90%", None, 5), (5, 0));
        assert_eq!(of("1%", None, 5), (1, 4));
        assert_eq!(of("50%", None, 0), (1, 0));
    }

    #[test]
    fn fewer_failures_may_be_tolerated_but_never_more() {
        assert_eq!(of("50%", Some("1"), 20), (10, 1));
        assert_eq!(of("90%", Some("19"), 20), (18, 2));
    }

    #[test]
    fn nothing_is_expected_of_targets_that_fail_as_before() {
        let policy =
            Policy::new(PolicyDraft { success: "90%".parse().ok(), ..PolicyDraft::default() }).unwrap();
        let size = RolloutSize { targets: 20, enrolled: 20, failing_before: 10 };
        let thresholds = Thresholds::of(&policy, size, WaivedPauses::default());
        assert_eq!((thresholds.needed, thresholds.tolerated), (9, 1));
    }

    #[test]
    fn what_a_person_let_pass_lowers_what_is_needed() {
        let policy = Policy::new(PolicyDraft::default()).unwrap();
        let waived = WaivedPauses { failed: 3, unreachable: 4, monitor: false };
        let size = RolloutSize { targets: 10, enrolled: 10, failing_before: 0 };
        let thresholds = Thresholds::of(&policy, size, waived);
        assert_eq!((thresholds.needed, thresholds.tolerated, thresholds.unreachable), (7, 3, 4));
    }
}
