//! What must hold of runs once all is at rest: each has ended, and what is recorded of its jobs is what became of them.

use bellwether_core::records::job::JobState;
use bellwether_core::records::target::AssignmentOutcome;
use bellwether_core::words::name::{EntityName, NodeName, TargetName};
use bellwether_core::world::fleet::Fleet;

use crate::executions::{ExecutionEnd, Executions};
use crate::trace::Trace;

/// What of the jobs of runs is not recorded yet; empty when everything is.
#[must_use]
pub fn restless(fleet: &Fleet) -> String {
    let open = fleet.jobs.values().find_map(|kept| {
        let is_there = fleet.active_node(&kept.value.node).is_some();
        let job = kept.value.jobs.iter().find(|job| job.state.is_open()).filter(|_| is_there)?;
        Some(format!(
            "task {} of {} is {} on {}",
            job.index,
            kept.value.run,
            job.state.as_str(),
            kept.value.node
        ))
    });
    // A run may be there before the leader has listened for long enough to begin its rollout.
    let pending =
        || fleet.runs.keys().find(|name| !fleet.has_ended(name)).map(|name| format!("{name} has not ended"));
    open.or_else(pending).unwrap_or_default()
}

/// No task is lost without a word: a run that succeeded on a node had each of its tasks complete there, one that did not says why, and each
/// job is recorded as it ended, or as one of which nobody knows.
pub fn accounted(trace: &Trace, fleet: &Fleet, executions: &Executions) {
    let ends = executions.ends();
    for (name, kept) in &fleet.runs {
        if !fleet.has_ended(name) {
            trace.breaks(&format!("{name} has not ended"));
        }
        let Some(board) = fleet.boards.get(name) else { continue };
        for target in board.targets() {
            let (Ok(node), Some(state)) = (NodeName::parse(target.name.as_str()), target.state) else {
                continue;
            };
            match &state.outcome {
                AssignmentOutcome::Succeeded { .. } => {
                    let tasks = u32::try_from(fleet.tasks_of(&kept.value, &node).len()).unwrap_or(u32::MAX);
                    let end = |index| ends.get(&(name.clone(), node.clone(), index)).copied().flatten();
                    let missing = (0..tasks).find(|index| end(*index) != Some(ExecutionEnd::Complete));
                    missing.into_iter().for_each(|index| {
                        let end = end(index);
                        trace.breaks(&format!("{name} succeeded on {node} with task {index} {end:?}"));
                    });
                }
                AssignmentOutcome::Failed { evidence, .. } if evidence.summary.is_empty() => {
                    trace.breaks(&format!("{name} failed on {node} for no reason"));
                }
                AssignmentOutcome::Failed { .. }
                | AssignmentOutcome::Unreachable { .. }
                | AssignmentOutcome::InFlight => {}
            }
        }
    }
    for ((run, node, index), end) in ends {
        if fleet.runs.contains_key(&run) && fleet.active_node(&node).is_some() {
            recorded(trace, fleet, (&run, &node, index), end);
        }
    }
}

fn recorded(
    trace: &Trace,
    fleet: &Fleet,
    (run, node, index): (&EntityName, &NodeName, u32),
    end: Option<ExecutionEnd>,
) {
    let jobs = fleet.jobs.get(&(run.clone(), node.clone())).map(|kept| &kept.value.jobs);
    let job = jobs.and_then(|jobs| jobs.iter().find(|job| job.index == index));
    let state = job.map(|job| job.state);
    let is_true = match (end, state) {
        (_, None) => false,
        (Some(ExecutionEnd::Complete), Some(state)) => {
            matches!(state, JobState::Finished | JobState::Lost | JobState::Cancelled)
        }
        (Some(_) | None, Some(state)) => !state.is_open() && state != JobState::Finished,
    };
    if !is_true {
        let target = TargetName::from(node);
        trace
            .breaks(&format!("task {index} of {run} ended {end:?} on {target} and is recorded as {state:?}"));
    }
}
