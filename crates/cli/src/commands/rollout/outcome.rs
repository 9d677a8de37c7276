//! What the state of a rollout means for a script, and for the person who reads it.

use bellwether_api::v1::entity::{Entity, EntityKind};
use bellwether_api::v1::rollout::status::{RolloutPause, RolloutWait};
use bellwether_api::v1::rollout::{Rollout, RolloutState, RolloutStatus, RolloutView};

use crate::exit::Exit;

/// The exit code for a rollout's state.
pub(super) const fn exit(view: &RolloutView) -> Exit {
    match &view.rollout {
        Some(rollout) => of_status(&rollout.status),
        None => Exit::No,
    }
}

const fn of_status(status: &RolloutStatus) -> Exit {
    match status.state {
        RolloutState::Waiting if needs_approval(status) => Exit::NeedsPerson,
        RolloutState::InProgress | RolloutState::Waiting | RolloutState::Succeeded => Exit::Yes,
        RolloutState::Paused => Exit::NeedsPerson,
        RolloutState::PartiallySucceeded => Exit::Partial,
        RolloutState::Failed
        | RolloutState::RollingBack
        | RolloutState::RolledBack
        | RolloutState::RollbackFailed
        | RolloutState::Aborted
        | RolloutState::Superseded => Exit::No,
    }
}

/// What a person can do about a rollout that is paused or needs approval, and whether it can also continue by itself.
pub(super) fn advice(entity: &Entity, rollout: &Rollout) -> Option<String> {
    let failed = rollout.failures.last().map_or("NODE", |failure| failure.target.as_str());
    let failed = entity.workflow.as_ref().map(|_| failed);
    let of_what = match (failed, entity.kind) {
        (Some(node), _) => Advised::Run { node },
        (None, EntityKind::Action) => Advised::Action,
        (None, EntityKind::Version | EntityKind::Profile | EntityKind::Workflow) => Advised::Versions,
    };
    of_pause(&entity.name, of_what, &rollout.status)
}

/// What an advice is about.
#[derive(Debug, Clone, Copy)]
enum Advised<'a> {
    /// Versions, which there are others of.
    Versions,
    /// Runs of an action: what one has done stays so.
    Action,
    /// The run of a workflow, and the node that failed last.
    Run { node: &'a str },
}

fn of_pause(entity: &str, of: Advised<'_>, status: &RolloutStatus) -> Option<String> {
    if let Some(RolloutWait::Approval { stage }) = &status.waiting {
        return Some(format!("approve it with: bellwether rollout approve {entity} --stage {stage}"));
    }
    let resume = format!("bellwether rollout resume {entity}");
    Some(match status.paused.as_ref()? {
        RolloutPause::TooManyUnreachable { .. } => {
            format!(
                "it resumes by itself when enough targets report again and accept their orders; to continue without them: {resume}"
            )
        }
        RolloutPause::OnlyFailingBefore { .. } => format!(
            "it resumes by itself when one of them succeeds; to end it as failed: {resume}; to keep what runs: bellwether rollout abort {entity}"
        ),
        RolloutPause::MonitorUnavailable { .. } => {
            format!("it resumes by itself when the monitor answers again; to continue without it: {resume}")
        }
        RolloutPause::Stopped { .. } => {
            "it resumes when the stop is lifted; see: bellwether freeze list".to_owned()
        }
        RolloutPause::BadVersion { .. }
        | RolloutPause::TooManyFailed { .. }
        | RolloutPause::NoKnownGood { .. }
            if let Advised::Run { node } = of =>
        {
            format!(
                "begin a failed task again with: bellwether job retry {entity}/{node}; to go on without it: {resume}   (or: abort)"
            )
        }
        RolloutPause::Person { .. }
        | RolloutPause::BadVersion { .. }
        | RolloutPause::TooManyFailed { .. }
        | RolloutPause::NoKnownGood { .. } => {
            let or = match of {
                Advised::Versions => "undo, abort",
                Advised::Action | Advised::Run { .. } => "abort",
            };
            format!("continue with: {resume}   (or: {or})")
        }
    })
}

/// Whether a stage waits for a person's approval.
const fn needs_approval(status: &RolloutStatus) -> bool {
    matches!(status.waiting, Some(RolloutWait::Approval { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::tree;

    #[test]
    fn the_guide_lists_the_exit_code_of_every_state() {
        let page = include_str!("../../../../../docs/guide/rollouts.md");
        let row = |code: &str| {
            let start = format!("| {code} | ");
            let row = page.lines().find(|line| line.starts_with(&start) && line.matches('|').count() == 4);
            row.unwrap_or_else(|| panic!("no row for {code}"))
        };
        let approval = RolloutStatus {
            waiting: Some(RolloutWait::Approval { stage: 2 }),
            ..RolloutState::Waiting.into()
        };
        let plain = [
            (RolloutState::InProgress, Exit::Yes, "0"),
            (RolloutState::Waiting, Exit::Yes, "0"),
            (RolloutState::Succeeded, Exit::Yes, "0"),
            (RolloutState::RollingBack, Exit::No, "1"),
            (RolloutState::Failed, Exit::No, "1"),
            (RolloutState::RolledBack, Exit::No, "1"),
            (RolloutState::RollbackFailed, Exit::No, "1"),
            (RolloutState::Aborted, Exit::No, "1"),
            (RolloutState::Superseded, Exit::No, "1"),
            (RolloutState::Paused, Exit::NeedsPerson, "4"),
            (RolloutState::PartiallySucceeded, Exit::Partial, "5"),
        ];
        let plain = plain.map(|(state, exit, code)| (RolloutStatus::from(state), exit, code));
        for (status, exit, code) in plain.into_iter().chain([(approval, Exit::NeedsPerson, "4")]) {
            assert_eq!(of_status(&status), exit, "{status:?}");
            let word = tree::state(&status).0;
            let listed = row(code).rsplit('|').nth(1).unwrap().split(',').any(|state| state.trim() == word);
            assert!(listed, "{word} is not in {}", row(code));
        }
    }

    #[test]
    fn a_pause_that_can_end_by_itself_says_so() {
        let paused = |pause| RolloutStatus { paused: Some(pause), ..RolloutState::Paused.into() };
        let unreachable = RolloutPause::TooManyUnreachable { unreachable: 2, refusing: 0, tolerated: 1 };
        let said = of_pause("web", Advised::Versions, &paused(unreachable)).unwrap();
        assert!(
            said.contains("resumes by itself") && said.ends_with("bellwether rollout resume web"),
            "{said}"
        );
        let person = RolloutPause::Person { by: "kim".to_owned(), reason: String::new() };
        let said = of_pause("web", Advised::Versions, &paused(person)).unwrap();
        assert!(!said.contains("by itself") && said.contains("bellwether rollout resume web"), "{said}");
        assert_eq!(of_pause("web", Advised::Versions, &RolloutState::InProgress.into()), None);
    }

    #[test]
    fn runs_have_nothing_to_undo_and_one_of_a_workflow_a_task_to_begin_again() {
        let paused = |pause| RolloutStatus { paused: Some(pause), ..RolloutState::Paused.into() };
        let failed = paused(RolloutPause::TooManyFailed { failed: 1, tolerated: 0 });
        let said = of_pause("shop-7", Advised::Run { node: "web-1" }, &failed).unwrap();
        assert!(said.contains("bellwether job retry shop-7/web-1") && !said.contains("undo"), "{said}");
        assert!(of_pause("web", Advised::Versions, &failed).unwrap().contains("undo"));
        let said = of_pause("cleanup", Advised::Action, &failed).unwrap();
        assert_eq!(said, "continue with: bellwether rollout resume cleanup   (or: abort)");
        let person = paused(RolloutPause::Person { by: "kim".to_owned(), reason: String::new() });
        for of in [Advised::Run { node: "web-1" }, Advised::Action] {
            assert!(!of_pause("shop-7", of, &person).unwrap().contains("undo"));
        }
    }
}
