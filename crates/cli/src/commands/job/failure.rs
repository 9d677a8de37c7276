//! Why a job failed, and what a person can do about it.

use bellwether_api::v1::evidence::Evidence;
use bellwether_api::v1::job::{Job, JobState};
use bellwether_api::v1::rollout::RolloutState;
use bellwether_api::v1::rollout::status::RolloutPause;

use crate::commands::targets::target;
use crate::context::Context;
use crate::exit::Failure;

/// What is shown of a job that failed, one fact a line; nothing of any other job, or if the caller may not read its rollout.
pub(super) async fn lines(context: &Context, job: &Job) -> Vec<String> {
    match job.state {
        JobState::Failed | JobState::Lost => {}
        JobState::Created
        | JobState::Running
        | JobState::Finished
        | JobState::Skipped
        | JobState::Incomplete
        | JobState::Cancelled => return Vec::new(),
    }
    let target = target(context, &format!("{}/{}", job.run, job.node)).await.ok();
    let run = context.client.run(&context.namespace, &job.run).await.ok();
    let may_be_retried = run.is_some_and(|run| may_be_retried(run.state)) && target.is_some();
    let next = match job.state {
        // Nobody knows how far it came.
        JobState::Lost => format!(
            "look what it did; then begin it again: bellwether job retry {}/{}, or continue without it: bellwether rollout resume {}",
            job.run, job.node, job.run
        ),
        JobState::Created
        | JobState::Running
        | JobState::Finished
        | JobState::Skipped
        | JobState::Incomplete
        | JobState::Failed
        | JobState::Cancelled => format!("begin it again: bellwether job retry {}/{}", job.run, job.node),
    };
    told(job, target.and_then(|target| target.evidence).as_ref(), may_be_retried.then_some(next))
}

/// That a job is not there, with the reason if its node is to begin it or has failed before that.
pub(super) async fn not_begun(context: &Context, (run, node): (&str, &str), mut failure: Failure) -> Failure {
    if failure.not_found
        && let Ok(target) = target(context, &format!("{run}/{node}")).await
    {
        failure.message = format!("{}; {}", failure.message, target.reason);
    }
    failure
}

/// What ends the pause of a run of which a failed task was begun again.
pub(super) fn paused(run: &str, pause: &RolloutPause) -> Option<String> {
    let resume = format!("bellwether rollout resume {run}");
    match pause {
        RolloutPause::Person { by, .. } => {
            Some(format!("run {run} was paused by {by}, and stays so; continue it with: {resume}"))
        }
        RolloutPause::TooManyFailed { .. } | RolloutPause::NoKnownGood { .. } => Some(format!(
            "run {run} is paused until the task is complete and no more have failed than are tolerated; to continue before: {resume}"
        )),
        RolloutPause::BadVersion { .. } => Some(format!("run {run} is paused; continue it with: {resume}")),
        RolloutPause::Stopped { .. }
        | RolloutPause::MonitorUnavailable { .. }
        | RolloutPause::OnlyFailingBefore { .. }
        | RolloutPause::TooManyUnreachable { .. } => None,
    }
}

/// Whether a run has not ended, so that its failed tasks can begin again.
pub(super) const fn may_be_retried(state: RolloutState) -> bool {
    match state {
        RolloutState::InProgress | RolloutState::Waiting | RolloutState::Paused => true,
        RolloutState::RollingBack
        | RolloutState::Succeeded
        | RolloutState::PartiallySucceeded
        | RolloutState::Failed
        | RolloutState::RolledBack
        | RolloutState::RollbackFailed
        | RolloutState::Aborted
        | RolloutState::Superseded => false,
    }
}

fn told(job: &Job, evidence: Option<&Evidence>, next: Option<String>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(evidence) = evidence {
        lines.push(format!("reason    {}", evidence.summary));
        let last = evidence.tail.lines().map(str::trim_end).rfind(|line| !line.is_empty());
        lines.extend(last.map(|line| format!("          last output: {line}")));
    }
    lines.push(format!("next      see what it wrote: bellwether job logs {}", job.name));
    lines.extend(next.map(|next| format!("          {next}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pause_that_a_person_can_end_is_told_of() {
        let person = RolloutPause::Person { by: "kim".to_owned(), reason: String::new() };
        let said = paused("shop-7", &person).unwrap();
        assert!(said.contains("by kim") && said.ends_with("rollout resume shop-7"), "{said}");
        let failed = RolloutPause::TooManyFailed { failed: 1, tolerated: 0 };
        assert!(paused("shop-7", &failed).unwrap().contains("until the task is complete"));
        assert_eq!(paused("shop-7", &RolloutPause::MonitorUnavailable { reason: String::new() }), None);
    }

    #[test]
    fn a_failed_job_tells_its_reason_and_the_next_step() {
        let job = serde_json::json!({
            "name": "shop-7/web-1/0", "run": "shop-7", "node": "web-1", "index": 0, "stage": "s", "task": "t", "digest": "d",
            "state": "failed", "attempts": 1,
        });
        let job: Job = serde_json::from_value(job).unwrap();
        let summary = "task t (1 of 1), step a: exit code 3".to_owned();
        let evidence = Evidence { summary, tail: "one\ntwo\n\n".to_owned(), ..Evidence::default() };
        assert_eq!(
            told(&job, Some(&evidence), Some("begin it again: bellwether job retry shop-7/web-1".to_owned())),
            [
                "reason    task t (1 of 1), step a: exit code 3",
                "          last output: two",
                "next      see what it wrote: bellwether job logs shop-7/web-1/0",
                "          begin it again: bellwether job retry shop-7/web-1",
            ]
        );
        assert_eq!(
            told(&job, None, None),
            ["next      see what it wrote: bellwether job logs shop-7/web-1/0"]
        );
    }
}
