//! What a policy may ask of an entity, by what it changes and what its targets are. Owns the error texts.

use alloc::format;
use alloc::string::String;

use super::{EntityKind, TargetSource};
use crate::records::policy::ordering::TargetOrder;
use crate::records::policy::{OnFailure, Policy, PolicyDraft, PolicyError};
use crate::words::time::Span;

/// Default deadline of a target of a run: its tasks have timeouts of their own.
const RUN_DEADLINE: Span = Span::from_secs(24 * 60 * 60);

impl EntityKind {
    /// The policy of an entity of this kind with these targets. A run of an action cannot be undone, so a failure
    /// pauses, unless the policy says `continue`.
    ///
    /// # Errors
    /// [`PolicyError`] naming the first field that is invalid, or has no meaning for this entity.
    pub fn policy(&self, source: &TargetSource, mut draft: PolicyDraft) -> Result<Policy, PolicyError> {
        match self {
            Self::Action(action) => {
                if draft.on_failure == Some(OnFailure::Rollback) {
                    return wrong(
                        "on_failure",
                        format!("action {action} cannot be rolled back; use pause or continue"),
                    );
                }
                if draft.retries.is_some_and(|retries| retries > 0) {
                    return wrong(
                        "retries",
                        format!("action {action} runs once; start another rollout to run it again"),
                    );
                }
                draft.on_failure = draft.on_failure.or(Some(OnFailure::Pause));
            }
            Self::Workflow(_) => {
                if draft.retries.is_some_and(|retries| retries > 0) {
                    let reason = "a task that failed waits for a person; mark the tasks as idempotent, or retry the node";
                    return wrong("retries", reason.into());
                }
                draft.on_failure = draft.on_failure.or(Some(OnFailure::Pause));
                draft.soak = draft.soak.or(Some(Span::ZERO));
                draft.deadline = draft.deadline.or(Some(RUN_DEADLINE));
            }
            Self::Version | Self::Profile(_) => {}
        }
        match source {
            TargetSource::Nodes(_) | TargetSource::Listed(_) => {}
            TargetSource::External(_) if draft.retries.is_some_and(|retries| retries > 0) => {
                let reason = "controllers report errors, not attempts; use fail_fast = false to give external targets \
                              until their deadline";
                return wrong("retries", reason.into());
            }
            TargetSource::External(_) if draft.domain.is_some() => {
                return wrong("domain", "external targets have no labels; omit it".into());
            }
            TargetSource::External(_) if matches!(draft.order, Some(TargetOrder::Label(_))) => {
                return wrong("order", "external targets have no labels; use name or shuffle".into());
            }
            TargetSource::External(_) => {}
        }
        Policy::new(draft)
    }
}

fn wrong(field: &'static str, reason: String) -> Result<Policy, PolicyError> {
    Err(PolicyError { field, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::external::StalenessLimits;
    use crate::words::selector::Selector;

    fn field(kind: &EntityKind, source: &TargetSource, draft: PolicyDraft) -> &'static str {
        kind.policy(source, draft).map_or_else(|error| error.field, |_| "")
    }

    #[test]
    fn what_has_no_meaning_for_an_entity_is_refused() {
        let nodes = TargetSource::Nodes(Selector::all());
        let external = TargetSource::External(StalenessLimits::default());
        let version = EntityKind::Version;
        let action = EntityKind::Action("backup".parse().unwrap());
        let retries = || PolicyDraft { retries: Some(1), ..PolicyDraft::default() };
        let rollback = || PolicyDraft { on_failure: Some(OnFailure::Rollback), ..PolicyDraft::default() };
        let domain = || PolicyDraft { domain: "zone".parse().ok(), ..PolicyDraft::default() };
        let order = || PolicyDraft { order: "label:zone".parse().ok(), ..PolicyDraft::default() };
        assert!(domain().domain.is_some() && order().order.is_some());
        for draft in [retries(), rollback(), domain(), order()] {
            assert_eq!(field(&version, &nodes, draft), "");
        }
        assert_eq!(field(&version, &external, retries()), "retries");
        assert_eq!(field(&version, &external, domain()), "domain");
        assert_eq!(field(&version, &external, order()), "order");
        assert_eq!(field(&action, &nodes, retries()), "retries");
        assert_eq!(field(&action, &nodes, rollback()), "on_failure");
        let policy = action.policy(&nodes, PolicyDraft::default()).unwrap();
        assert_eq!(policy.on_failure, OnFailure::Pause);
    }
}
