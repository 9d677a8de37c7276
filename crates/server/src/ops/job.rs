//! Jobs of runs: reading them, and those that a report tells of.

use std::collections::BTreeMap;

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1;
use bellwether_api::v1::job::Job as Shape;
use bellwether_core::records::job::{Job, JobState, MAX_RUN_OUTPUT_BYTES, NodeJobs, OutputsTooLarge};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::run::Run;
use bellwether_core::records::target::AssignmentOutcome;
use bellwether_core::rollout::operations;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::feature::Feature;
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName, TargetName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::{OpError, cause, event, reason, run};
use crate::transactor::Transactor;

/// The jobs of the runs that are known, by run, node and index.
pub fn list(fleet: &Fleet) -> impl Iterator<Item = Shape> + '_ {
    let known = fleet.jobs.values().map(|kept| &*kept.value);
    known.flat_map(|of| of.jobs.iter().filter_map(|job| shape(fleet, of, job)))
}

/// The job of the task of this index, with what it does; `None` if the node has not begun it, or never will.
///
/// # Errors
/// [`OpError::Invalid`] when the record of the run cannot be read.
pub fn get(
    fleet: &Fleet,
    (name, node): (&EntityName, &NodeName),
    index: u64,
) -> Result<Option<Shape>, OpError> {
    let of = fleet.jobs.get(&(name.clone(), node.clone())).map(|kept| &*kept.value);
    let job = of.and_then(|of| of.jobs.iter().find(|job| u64::from(job.index) == index));
    let found = of.zip(job).and_then(|(of, job)| Some((fleet.runs.get(name)?, shape(fleet, of, job)?)));
    let Some((run, shape)) = found else { return Ok(None) };
    let (run, outputs) = (&run.value, job.and_then(v1::job::outputs));
    let task = usize::try_from(index).ok().and_then(|index| fleet.tasks_of(run, node).get(index));
    let spec = task.map(|task| run::spec(fleet, (run, node), task)).transpose()?;
    Ok(Some(Shape { spec, outputs, ..shape }))
}

/// Takes the jobs of runs out of a report, in which the stored form has none.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn told(report: &mut v1::report::Report) -> Result<BTreeMap<EntityName, Vec<Job>>, ShapeError> {
    let mut told = BTreeMap::new();
    for (name, entity) in &mut report.entities {
        let Some(jobs) = entity.jobs.take() else { continue };
        let at = |error: ShapeError| error.within(&format!("entities.{name}.jobs"));
        let jobs = jobs.into_iter().map(Job::try_from).collect::<Result<Vec<_>, _>>().map_err(at)?;
        if NodeJobs::output_bytes(&jobs) > MAX_RUN_OUTPUT_BYTES {
            return Err(at(ShapeError::at("outputs", OutputsTooLarge::OfRun)));
        }
        told.insert(read("name", name).map_err(at)?, jobs);
    }
    Ok(told)
}

/// A job with what its run says of its task; `None` once the run is gone.
fn shape(fleet: &Fleet, of: &NodeJobs, job: &Job) -> Option<Shape> {
    let run = &fleet.runs.get(&of.run)?.value;
    let task = fleet.tasks_of(run, &of.node).get(usize::try_from(job.index).ok()?)?;
    Some(Shape {
        name: format!("{}/{}/{}", of.run, of.node, job.index),
        run: of.run.to_string(),
        node: of.node.to_string(),
        index: job.index,
        stage: task.stage.to_string(),
        task: job.task.to_string(),
        digest: task.digest.clone(),
        state: state_of(fleet, of, job).into(),
        exit: job.exit.map(Into::into),
        exit_code: job.exit_code,
        attempts: job.attempts,
        started_ms: job.started.map(Timestamp::as_millis),
        ended_ms: job.ended.map(Timestamp::as_millis),
        outputs: None,
        spec: None,
    })
}

/// What became of a job: one that was open when its node left the run is over.
pub(super) fn state_of(fleet: &Fleet, of: &NodeJobs, job: &Job) -> JobState {
    let is_target = fleet.entities_of_node.get(&of.node).any(|run| *run == of.run);
    if job.state.is_open() && !is_target { JobState::Cancelled } else { job.state }
}

/// Has a node begin the task of a run again that failed there. The node begins other runs again too.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] when the run has ended, nothing failed there, or the node cannot.
pub async fn retry(
    transactor: &Transactor,
    (namespace, actor): (&Namespace, &Actor),
    (name, node): (&EntityName, &NodeName),
    why: &str,
) -> Result<(), OpError> {
    let why = reason(why)?;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let run = fleet.runs.get(name).ok_or_else(|| OpError::NotFound(format!("run {name}")))?;
            let target = TargetName::from(node);
            let failed = failed(fleet, (&run.value, node), &target)?;
            let entity = fleet.entities.get(name).ok_or_else(|| OpError::NotFound(format!("run {name}")))?;
            let progress = fleet.progresses.get(name).map(|kept| &*kept.value).cloned().unwrap_or_default();
            let entity = operations::retry_target(&entity.value, &progress, &target, failed)
                .map_err(|_| ended(fleet, &run.value, node))?;
            let mut writes = vec![Write::put(Record::Entity(entity))];
            let mark = fleet.not_runnable.get(node).map(|kept| &kept.value);
            if mark.is_some_and(|mark| mark.run.as_ref() == Some(name)) {
                writes.push(Write::delete(Key::NotRunnable(node.clone())));
            }
            let mut event = event("run.retried", format!("entity/{name}"), cause(&why));
            event.after = Some(node.to_string());
            let changeset = Changeset { writes, events: vec![event] };
            let guards = [Key::Target(name.clone(), target), Key::Progress(name.clone())];
            Ok((Some(changeset.guarded_by(guards)), ()))
        })
        .await
}

/// The assignment of a run that failed on a node, which its agent can begin again.
fn failed(
    fleet: &Fleet,
    (run, node): (&Run, &NodeName),
    target: &TargetName,
) -> Result<AssignmentNumber, OpError> {
    let name = &run.name;
    let refused = |reason: &str, hint: String| OpError::Refused {
        reason: format!("retry a task of run {name} on node {node}: {reason}"),
        hint: Some(hint),
    };
    let board = fleet.boards.get(name).ok_or_else(|| OpError::NotFound(format!("run {name}")))?;
    let found =
        board.target(target).ok_or_else(|| OpError::NotFound(format!("node {node} of run {name}")))?;
    if board.rollout().is_none() {
        return Err(ended(fleet, run, node));
    }
    let state = found.state.filter(|state| match state.outcome {
        AssignmentOutcome::Failed { .. } => true,
        AssignmentOutcome::InFlight
        | AssignmentOutcome::Succeeded { .. }
        | AssignmentOutcome::Unreachable { .. } => false,
    });
    let why = || format!("see: bellwether why target/{name}/{node}");
    let state = state.ok_or_else(|| refused("nothing of it has failed there", why()))?;
    let report = fleet.reports.get(node).map(|kept| &kept.value);
    if !report.is_some_and(|report| report.features.has(Feature::Jobs)) {
        let hint = "upgrade the agent, or run the workflow on the node again".to_owned();
        return Err(refused("its agent is of a build that begins no task again", hint));
    }
    if let Some(loss) = fleet.run_loss(name, node) {
        let is_logical = fleet.nodes.get(node).is_some_and(|kept| kept.value.logical.is_some());
        return Err(refused(loss.reason(is_logical), from_a_task(fleet, run, node)));
    }
    Ok(state.assignment)
}

fn ended(fleet: &Fleet, run: &Run, node: &NodeName) -> OpError {
    let reason = format!("retry a task of run {} on node {node}: the run has ended", run.name);
    OpError::Refused { reason, hint: Some(from_a_task(fleet, run, node)) }
}

/// The command that begins at a task, in another run.
fn from_a_task(fleet: &Fleet, run: &Run, node: &NodeName) -> String {
    format!("start another run there: {}", fleet.run_from(run, node))
}
