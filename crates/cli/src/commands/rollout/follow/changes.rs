//! What is told of a rollout that is followed where nothing can be redrawn: a line for each change.

use std::collections::BTreeSet;

use bellwether_api::v1::rollout::{RolloutView, TargetFailure};
use bellwether_api::v1::target::{TargetPhase, TargetView};

/// Most targets that are named at once.
const NAMED: usize = 3;

/// What was told of a rollout so far.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Number of the request that is followed.
    request: u64,
    said: String,
    /// Targets that failed, and when.
    failed: BTreeSet<(String, u64)>,
    /// Targets that cannot start, and since when.
    blocked: BTreeSet<(String, Option<u64>)>,
}

impl Changes {
    /// Nothing was told yet of what this request leads to.
    pub(super) fn since(request: u64) -> Self {
        Self { request, ..Self::default() }
    }

    /// Whether nothing of the rollout changed since it was told last, while targets are in flight: what holds them is of interest.
    pub(super) fn stands_still(&self, view: &RolloutView) -> bool {
        self.said == view.reason && view.counts.in_flight > 0 && self.is_applied(view)
    }

    fn is_applied(&self, view: &RolloutView) -> bool {
        view.progress.handled_request >= self.request
    }

    /// Whether the failures of this view were there before the request that is followed: they say nothing of it.
    fn are_earlier(&self, view: &RolloutView) -> bool {
        let is_earlier = view.rollout.as_ref().is_some_and(|rollout| rollout.request < self.request);
        is_earlier && (self.said.is_empty() || !self.is_applied(view))
    }

    /// The lines about what has changed. The targets are needed only while it [stands still](Self::stands_still).
    pub(super) fn lines(&mut self, view: &RolloutView, targets: &[TargetView]) -> Vec<String> {
        let mut lines = Vec::new();
        let failures = view.rollout.iter().flat_map(|rollout| &rollout.failures);
        let are_earlier = self.are_earlier(view);
        let new = failures.filter(|failure| self.failed.insert((failure.target.clone(), failure.at_ms)));
        let told = new.filter(|_| !are_earlier);
        lines.extend(named(told.map(|failure| failed(view, failure))));
        if view.reason != self.said {
            self.said.clone_from(&view.reason);
            lines.push(view.reason.clone());
        }
        let blocked = targets.iter().filter(|target| target.phase == TargetPhase::Blocked);
        let new = blocked.filter(|target| self.blocked.insert((target.name.clone(), target.since_ms)));
        lines.extend(named(new.map(|target| target.reason.clone())));
        lines
    }
}

/// A target that failed, with its reason and, of a run, where to read more.
fn failed(view: &RolloutView, failure: &TargetFailure) -> String {
    let TargetFailure { target, evidence, .. } = failure;
    let last = evidence.tail.lines().map(str::trim).rfind(|line| !line.is_empty());
    let last = last.map_or_else(String::new, |line| format!("; last output: {line}"));
    let more = match &view.entity.workflow {
        Some(_) => format!("; see: bellwether job get {}/{target}", view.entity.name),
        None => String::new(),
    };
    format!("{target} failed: {}{last}{more}", evidence.summary)
}

/// The first of these, and how many others there are.
fn named(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = all.collect();
    let others = lines.len().saturating_sub(NAMED);
    if others > 0 {
        lines.truncate(NAMED);
        lines.push(format!("and {others} others"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(reason: &str, failures: &[&str]) -> RolloutView {
        let failures: Vec<_> = failures
            .iter()
            .map(|target| {
                let evidence = serde_json::json!({"summary": "task one: exit code 3", "tail": "a\nno\n"});
                serde_json::json!({"target": target, "at_ms": 5, "evidence": evidence})
            })
            .collect();
        let mut view = crate::show::tree::tests::view();
        view.reason = reason.to_owned();
        view.counts.in_flight = 1;
        view.entity.workflow = Some("work".to_owned());
        let rollout = view.rollout.as_mut().unwrap();
        rollout.failures = serde_json::from_value(failures.into()).unwrap();
        view
    }

    #[test]
    fn each_failure_and_each_target_that_cannot_start_is_told_once() {
        let mut changes = Changes::default();
        assert_eq!(changes.lines(&view("in progress", &[]), &[]), ["in progress"]);
        let still = view("in progress", &["web-1"]);
        assert!(changes.stands_still(&still));
        let name = &still.entity.name;
        let said = format!(
            "web-1 failed: task one: exit code 3; last output: no; see: bellwether job get {name}/web-1"
        );
        assert_eq!(changes.lines(&still, &[]), [said]);
        assert!(changes.lines(&still, &[]).is_empty());
        let many = ["web-1", "web-2", "web-3", "web-4", "web-5", "web-6"];
        let lines = changes.lines(&view("paused", &many), &[]);
        assert_eq!((lines.len(), lines[3].as_str(), lines[4].as_str()), (5, "and 2 others", "paused"));
    }

    #[test]
    fn failures_of_the_rollout_before_are_not_told_of_a_request() {
        let at = |handled: u64, request: u64, reason: &str, failures: &[&str]| {
            let mut view = view(reason, failures);
            view.progress.handled_request = handled;
            view.rollout.as_mut().unwrap().request = request;
            view
        };
        let mut changes = Changes::since(2);
        assert_eq!(changes.lines(&at(1, 1, "v2 requested", &["web-1"]), &[]), ["v2 requested"]);
        assert!(!changes.stands_still(&at(1, 1, "v2 requested", &["web-1"])));
        assert_eq!(changes.lines(&at(2, 2, "in progress", &[]), &[]), ["in progress"]);
        let own = changes.lines(&at(2, 2, "in progress", &["web-2"]), &[]);
        assert!(own.len() == 1 && own[0].starts_with("web-2 failed"), "{own:?}");
        // It turned the rollout before into a rollback, which can fail too.
        let mut changes = Changes::since(2);
        assert_eq!(changes.lines(&at(2, 1, "rolling back", &["web-1"]), &[]), ["rolling back"]);
        let own = changes.lines(&at(2, 1, "rolling back", &["web-1", "web-2"]), &[]);
        assert!(own.len() == 1 && own[0].starts_with("web-2 failed"), "{own:?}");
    }
}
