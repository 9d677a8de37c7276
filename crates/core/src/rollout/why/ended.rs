//! What became of an entity's last rollout, in one line: kept until the next one starts.

use alloc::format;
use alloc::string::{String, ToString};

use crate::records::annotation::attribution;
use crate::records::rollout::{Direction, Rollout, RolloutState, VersionJudgement};
use crate::words::plural::Plural;
use crate::words::version::Version;

/// How a rollout ended, with the first failure if there was one; `None` while it has not.
pub(super) fn outcome(rollout: &Rollout, good: Option<&Version>) -> Option<String> {
    let Rollout { number, version, counts, .. } = rollout;
    let name = format!("rollout {number} to {version}");
    let all = Plural(counts.targets, "target");
    let done = format!("{} of {all} succeeded", counts.succeeded);
    let back = good.map_or_else(|| "last known good".to_string(), ToString::to_string);
    Some(match &rollout.state {
        RolloutState::InProgress
        | RolloutState::Waiting(_)
        | RolloutState::Paused(_)
        | RolloutState::RollingBack => return None,
        RolloutState::Succeeded if counts.succeeded < counts.targets => {
            format!("{name} succeeded on {} of {all}", counts.succeeded)
        }
        RolloutState::Succeeded => format!("{name} succeeded on {all}"),
        RolloutState::Failed { failed } => {
            format!("{name} failed on {failed} of {all}{}", first_failure(rollout))
        }
        RolloutState::PartiallySucceeded { failed } => {
            let rest =
                if *failed == 0 { "not all were reached".to_string() } else { format!("{failed} failed") };
            format!("{name} partially succeeded: {done}, {rest}{}", first_failure(rollout))
        }
        RolloutState::RolledBack => match &rollout.direction {
            Direction::RollbackByUndo { by, reason } => {
                format!("{} was undone {}; back to {back}", name, attribution(by, reason))
            }
            // A run of a workflow: another run undoes it.
            Direction::Forward => format!("{name} was rolled back: {}", why_bad(rollout)),
            Direction::RollbackFromBad => {
                format!("{name} was rolled back to {back}: {}{}", why_bad(rollout), missed(rollout))
            }
        },
        RolloutState::RollbackFailed { failed } => {
            let failed = Plural(*failed, "target");
            format!(
                "{name} was bad, and its rollback to {back} failed on {failed}: {}{}",
                why_bad(rollout),
                missed(rollout)
            )
        }
        RolloutState::Aborted { by, reason } => {
            format!("{name} was aborted {}: {done}", attribution(by, reason))
        }
        RolloutState::Superseded { by } => {
            let flight = match counts.in_flight {
                0 => String::new(),
                some => format!(", {some} in flight"),
            };
            format!("{name} was superseded by rollout {by}: {done}{flight}")
        }
    })
}

fn why_bad(rollout: &Rollout) -> String {
    match &rollout.judgement {
        VersionJudgement::Bad { reason, .. } => reason.clone(),
        VersionJudgement::Open | VersionJudgement::Good { .. } => "it is known bad".to_string(),
    }
}

/// What the rollback could not reach.
fn missed(rollout: &Rollout) -> String {
    match rollout.counts.missed_return {
        0 => String::new(),
        1 => "; 1 target was unreachable, and goes back when it is in contact again".to_string(),
        many => format!("; {many} targets were unreachable, and go back when they are in contact again"),
    }
}

fn first_failure(rollout: &Rollout) -> String {
    let first = rollout.failures.first();
    first.map_or_else(String::new, |failure| format!("; {}: {}", failure.target, failure.evidence.summary))
}
