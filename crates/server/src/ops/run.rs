//! Runs of workflows: starting, reading and deleting. A run is a rollout of an entity of its own, over the nodes that it was
//! started on; its record has what the tasks were then.

mod inputs;
mod needs;
mod room;
mod switch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::shape::{ShapeError, read, reason};
use bellwether_api::v1::rollout::{RolloutState, RolloutStatus};
use bellwether_api::v1::run::{NewRun, Run as Shape, RunTask as TaskShape};
use bellwether_api::v1::workflow::{StageSpec, TaskSpec, WorkflowSpec};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::records::entity::{Entity, EntityKind, TargetSource};
use bellwether_core::records::key::{AnyKey, Key, Record};
use bellwether_core::records::progress::Progress;
use bellwether_core::records::run::{MAX_NODES, MAX_RUN_BYTES, MAX_TASKS, Run, RunTask};
use bellwether_core::rollout::operations;
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::name::{
    Actor, EntityName, Namespace, NodeName, StageName, TaskName, WorkflowName,
};
use bellwether_core::words::plural::plural;
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;
use bellwether_core::world::fleet::Fleet;
use serde_json::Value;

pub use self::inputs::{role_params, spec, take};
pub use self::needs::needs;
use super::definition::content_of;
use super::{OpError, cause, entity, event};
use crate::transactor::Transactor;

/// Starts a run of a workflow on these nodes; answers it. With `dry_run` nothing is started.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when something that the workflow names does
/// not exist.
pub async fn start(
    transactor: &Transactor,
    (namespace, actor): (&Namespace, &Actor),
    request: &NewRun,
    nodes: &BTreeSet<NodeName>,
) -> Result<Shape, OpError> {
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let (changeset, shape) = begun(fleet, now, actor, request, nodes)?;
            Ok(((!request.dry_run).then_some(changeset), shape))
        })
        .await
}

/// What starts a run of a workflow on these nodes, and the run.
pub(super) fn begun(
    fleet: &Fleet,
    now: Timestamp,
    actor: &Actor,
    request: &NewRun,
    nodes: &BTreeSet<NodeName>,
) -> Result<(GuardedChangeset, Shape), OpError> {
    let workflow: WorkflowName = read("workflow", &request.workflow)?;
    let why = reason(&request.reason)?;
    enough(nodes.len(), &request.on)?;
    let (mut writes, mut events) = room::made(fleet, &workflow, nodes)?;
    let annotation = Annotation { by: actor.clone(), reason: why.clone(), at: now };
    let (run, guards) = frozen(fleet, &workflow, annotation.clone())?;
    let run = with_needs(beginning_at(run, request.from.as_deref())?)?;
    let (kind, source) = (EntityKind::Workflow(workflow), TargetSource::Listed(Arc::new(nodes.clone())));
    let policy = entity::policy(&kind, &source, &request.policy)?;
    let new = Entity::new(run.name.clone(), Selector::all(), policy);
    let version = version_of(&run)?;
    let switch = switch::switched(fleet, (&run, nodes), request.busy, &annotation)?;
    let entity = Entity { kind, source, ..new };
    let asked = operations::start(&entity, &Progress::default(), version, annotation)?;
    let shape = shape(&run, count(nodes.len()), RolloutState::InProgress);
    let (subject, on) = (format!("entity/{}", run.name), plural(nodes.len(), "node"));
    let mut started = event("run.started", subject, format!("on {on}: {}", cause(&why)));
    started.after = Some(run.workflow.to_string());
    writes.extend([Write::put(Record::Run(run)), Write::put(Record::Entity(asked))]);
    writes.extend(switch.writes);
    events.extend(switch.events.into_iter().chain([started]));
    Ok((GuardedChangeset { changeset: Changeset { writes, events }, guards }, shape))
}

/// Deletes a run that has ended, with its history.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while it is in progress.
pub async fn delete(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            if fleet.runs.get(name).is_none() {
                return Err(OpError::NotFound(format!("run {name}")));
            }
            if fleet.is_run_in_progress(name) {
                let reason = format!("delete run {name}: it is in progress");
                let hint = format!("abort it first: bellwether rollout abort {name}");
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            let writes =
                vec![Write::delete(Key::Run(name.clone())), Write::delete(Key::Entity(name.clone()))];
            let event = event("run.deleted", format!("entity/{name}"), "its nodes are unchanged");
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// The runs, the newest last.
#[must_use]
pub fn list(fleet: &Fleet) -> Vec<Shape> {
    let mut runs: Vec<Shape> = fleet.runs.values().map(|kept| view(fleet, &kept.value)).collect();
    runs.sort_by_key(|run| run.at_ms);
    runs
}

/// The runs that have not ended on a node, the newest last.
#[must_use]
pub fn list_of(fleet: &Fleet, node: &NodeName) -> Vec<Shape> {
    let names = fleet.entities_of_node.get(node).filter(|name| !fleet.is_over_on(name, node));
    let mut runs: Vec<Shape> = names.filter_map(|name| get(fleet, name)).collect();
    runs.sort_by_key(|run| run.at_ms);
    runs
}

/// A run with its state; `None` if there is none of this name.
#[must_use]
pub fn get(fleet: &Fleet, name: &EntityName) -> Option<Shape> {
    fleet.runs.get(name).map(|kept| view(fleet, &kept.value))
}

fn view(fleet: &Fleet, run: &Run) -> Shape {
    let nodes = match fleet.entities.get(&run.name).map(|kept| &kept.value.source) {
        Some(TargetSource::Listed(nodes)) => count(nodes.len()),
        Some(TargetSource::Nodes(_) | TargetSource::External(_)) | None => 0,
    };
    let rollout = fleet.rollouts.get(&(run.name.clone(), RolloutNumber::new(1))).map(|kept| &kept.value);
    let state = match rollout {
        Some(rollout) => RolloutStatus::from(&rollout.state).state,
        None if fleet.has_ended(&run.name) => RolloutState::Aborted,
        None => RolloutState::InProgress,
    };
    let board = fleet.boards.get(&run.name);
    let counts = match rollout {
        Some(rollout) if rollout.ended.is_some() => rollout.counts,
        Some(_) | None => board.map(|board| board.counts()).unwrap_or_default(),
    };
    Shape { succeeded: counts.succeeded, failed: counts.failed, ..shape(run, nodes, state) }
}

fn shape(run: &Run, nodes: u64, state: RolloutState) -> Shape {
    Shape {
        name: run.name.to_string(),
        workflow: run.workflow.to_string(),
        digest: run.digest.clone(),
        tasks: run.tasks.iter().map(TaskShape::from).collect(),
        nodes,
        state,
        succeeded: 0,
        failed: 0,
        by: run.annotation.by.to_string(),
        at_ms: run.annotation.at.as_millis(),
        reason: run.annotation.reason.clone(),
    }
}

fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

fn enough(nodes: usize, on: &str) -> Result<(), OpError> {
    if nodes == 0 {
        let reason = format!("run a workflow on {on:?}: no node matches");
        return Err(OpError::Refused {
            reason,
            hint: Some("try it: bellwether node list FILTER".to_owned()),
        });
    }
    if nodes > MAX_NODES {
        let reason = format!("{nodes} nodes match; a run has at most {MAX_NODES}");
        return Err(ShapeError::at("on", reason).into());
    }
    Ok(())
}

/// The version that the run is: the workflow's name and a number that no run had before.
fn version_of(run: &Run) -> Result<Version, OpError> {
    let number =
        run.name.as_str().rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or_default();
    let version = Version::numbered(run.workflow.as_str(), number);
    version.ok_or_else(|| ShapeError::at("workflow", "its name is too long for a run").into())
}

/// The run of a workflow as it is now, and the records that it is made from.
fn frozen(
    fleet: &Fleet,
    workflow: &WorkflowName,
    annotation: Annotation,
) -> Result<(Run, Vec<AnyKey>), OpError> {
    let id = DefinitionId::Workflow(workflow.clone());
    let spec: WorkflowSpec = content_of(fleet, &id)?.ok_or_else(|| OpError::NotFound(id.to_string()))?;
    let mut guards: Vec<AnyKey> = vec![Key::Definition(id.clone()).into()];
    let (mut tasks, mut contents) = (Vec::new(), BTreeMap::<String, Value>::new());
    for stage in &spec.stages {
        let stage: StageName = read("stages", stage)?;
        let id = DefinitionId::Stage(stage.clone());
        let spec: StageSpec = content_of(fleet, &id)?.ok_or_else(|| lacks(workflow, &id))?;
        guards.push(Key::Definition(id).into());
        let profiles = spec.profiles.iter().map(|profile| read("profiles", profile));
        let profiles = profiles.collect::<Result<Vec<_>, ShapeError>>()?;
        for task in &spec.tasks {
            let task: TaskName = read("tasks", task)?;
            let id = DefinitionId::Task(task.clone());
            let content: Value = content_of(fleet, &id)?.ok_or_else(|| lacks(workflow, &id))?;
            let digest = fleet.definitions.get(&id).map(|kept| kept.value.digest.clone()).unwrap_or_default();
            guards.push(Key::Definition(id).into());
            let idempotent = is_idempotent(&content);
            contents.insert(digest.clone(), content);
            tasks.push(RunTask {
                stage: stage.clone(),
                task,
                digest,
                profiles: profiles.clone(),
                idempotent,
            });
        }
    }
    let contents = serde_json::to_string(&contents).map_err(|error| ShapeError::at("workflow", error))?;
    if tasks.len() > MAX_TASKS || contents.len() > MAX_RUN_BYTES {
        let reason = format!(
            "run workflow {workflow}: it has {} of {} bytes; at most {MAX_TASKS} and {MAX_RUN_BYTES} are allowed",
            plural(tasks.len(), "task"),
            contents.len()
        );
        return Err(OpError::Refused { reason, hint: Some("make two workflows of it".to_owned()) });
    }
    guards.sort_unstable();
    guards.dedup();
    let digest = fleet.definitions.get(&id).map(|kept| kept.value.digest.clone()).unwrap_or_default();
    // Above every event so far, as the runs of actions: a node that remembers an earlier run of this name runs this one too.
    let number = fleet.last_event().next().get();
    let name = read("workflow", &format!("{workflow}-{number}"))?;
    let features = BTreeSet::new();
    Ok((Run { name, workflow: workflow.clone(), digest, tasks, contents, features, annotation }, guards))
}

/// Whether a task, by its content, may run again when nobody knows how far it came.
pub(super) fn is_idempotent(content: &Value) -> bool {
    content.get("idempotent").and_then(Value::as_bool).unwrap_or_default()
}

/// The run without the tasks before this one.
fn beginning_at(mut run: Run, from: Option<&str>) -> Result<Run, OpError> {
    let Some(from) = from else { return Ok(run) };
    let name = |task: &RunTask| format!("{}/{}", task.stage, task.task);
    let Some(index) = run.tasks.iter().position(|task| name(task) == from) else {
        let known: Vec<String> = run.tasks.iter().map(name).collect();
        let reason =
            format!("{from:?} is not a task of workflow {}; its tasks: {}", run.workflow, known.join(", "));
        return Err(ShapeError::at("from", reason).into());
    };
    run.tasks.drain(..index);
    Ok(run)
}

/// The run, with what an agent needs for its tasks.
fn with_needs(mut run: Run) -> Result<Run, OpError> {
    let contents: BTreeMap<String, TaskSpec> =
        serde_json::from_str(&run.contents).map_err(|error| ShapeError::at("contents", error))?;
    let specs = run.tasks.iter().filter_map(|task| contents.get(&task.digest));
    run.features = specs.flat_map(needs).collect();
    Ok(run)
}

fn lacks(workflow: &WorkflowName, id: &DefinitionId) -> OpError {
    let hint =
        Some(format!("write it, with: bellwether apply -f FILE; see: bellwether workflow get {workflow}"));
    OpError::Refused { reason: format!("run workflow {workflow}: {id} does not exist"), hint }
}
