//! Jobs of runs: reading them, and those that a report tells of.

use std::collections::BTreeMap;

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1;
use bellwether_api::v1::job::Job as Shape;
use bellwether_core::records::job::{Job, NodeJobs};
use bellwether_core::words::name::{EntityName, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::{OpError, run};

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
    let task = run.value.tasks.get(usize::try_from(index).unwrap_or(usize::MAX));
    let spec = task.map(|task| run::spec(&run.value, task)).transpose()?;
    Ok(Some(Shape { spec, ..shape }))
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
        let jobs = jobs.into_iter().map(Job::try_from).collect::<Result<_, _>>().map_err(at)?;
        told.insert(read("name", name).map_err(at)?, jobs);
    }
    Ok(told)
}

/// A job with what its run says of its task; `None` once the run is gone.
fn shape(fleet: &Fleet, of: &NodeJobs, job: &Job) -> Option<Shape> {
    let run = &fleet.runs.get(&of.run)?.value;
    let task = run.tasks.get(usize::try_from(job.index).ok()?)?;
    Some(Shape {
        name: format!("{}/{}/{}", of.run, of.node, job.index),
        run: of.run.to_string(),
        node: of.node.to_string(),
        index: job.index,
        stage: task.stage.to_string(),
        task: job.task.to_string(),
        digest: task.digest.clone(),
        state: job.state.into(),
        exit: job.exit.map(Into::into),
        exit_code: job.exit_code,
        attempts: job.attempts,
        started_ms: job.started.map(Timestamp::as_millis),
        ended_ms: job.ended.map(Timestamp::as_millis),
        spec: None,
    })
}
