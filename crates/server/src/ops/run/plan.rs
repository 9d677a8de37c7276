//! What a run does: the workflow, its stages and its tasks as they are when it is started, and those of what undoes it.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::workflow::{StageSpec, TaskSpec, WorkflowSpec};
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::records::key::{AnyKey, Key};
use bellwether_core::records::run::{MAX_RUN_BYTES, MAX_TASKS, RunPlan, RunTask};
use bellwether_core::words::name::{StageName, TaskName, WorkflowName};
use bellwether_core::words::plural::plural;
use bellwether_core::world::fleet::Fleet;
use serde_json::Value;

use super::needs::needs;
use crate::ops::OpError;
use crate::ops::definition::content_of;

/// What a run does, and what undoes it.
pub(super) struct RunPlans {
    pub(super) run: RunPlan,
    /// `None` if the workflow names no other one for that.
    pub(super) rollback: Option<RunPlan>,
}

/// The plans of a run of a workflow, from this task on, and the records that they are made from.
pub(super) fn frozen(
    fleet: &Fleet,
    workflow: &WorkflowName,
    from: Option<&str>,
) -> Result<(RunPlans, Vec<AnyKey>), OpError> {
    let mut guards = Vec::new();
    let id = DefinitionId::Workflow(workflow.clone());
    let spec: WorkflowSpec = content_of(fleet, &id)?.ok_or_else(|| OpError::NotFound(id.to_string()))?;
    let run = beginning_at(plan(fleet, workflow, &spec, &mut guards)?, from)?;
    let rollback = match &spec.rollback {
        None => None,
        Some(name) => {
            let name: WorkflowName = read("rollback", name)?;
            let id = DefinitionId::Workflow(name.clone());
            let spec: WorkflowSpec = content_of(fleet, &id)?.ok_or_else(|| lacks(workflow, &id))?;
            Some(with_needs(plan(fleet, &name, &spec, &mut guards)?)?)
        }
    };
    let bytes = run.contents.len() + rollback.as_ref().map_or(0, |plan| plan.contents.len());
    if bytes > MAX_RUN_BYTES {
        let with = if rollback.is_some() { " with what undoes it" } else { "" };
        let reason =
            format!("run workflow {workflow}{with}: {bytes} bytes; at most {MAX_RUN_BYTES} are allowed");
        return Err(OpError::Refused { reason, hint: Some("make two workflows of it".to_owned()) });
    }
    guards.sort_unstable();
    guards.dedup();
    Ok((RunPlans { run: with_needs(run)?, rollback }, guards))
}

/// The plan of a workflow as it is now; adds the records that it is made from.
fn plan(
    fleet: &Fleet,
    workflow: &WorkflowName,
    spec: &WorkflowSpec,
    guards: &mut Vec<AnyKey>,
) -> Result<RunPlan, OpError> {
    let digest_of = |id: &DefinitionId| {
        fleet.definitions.get(id).map(|kept| kept.value.digest.clone()).unwrap_or_default()
    };
    let id = DefinitionId::Workflow(workflow.clone());
    let digest = digest_of(&id);
    guards.push(Key::Definition(id).into());
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
            let digest = digest_of(&id);
            guards.push(Key::Definition(id).into());
            let idempotent = is_idempotent(&content);
            contents.insert(digest.clone(), content);
            let profiles = profiles.clone();
            tasks.push(RunTask { stage: stage.clone(), task, digest, profiles, idempotent });
        }
    }
    if tasks.len() > MAX_TASKS {
        let tasks = plural(tasks.len(), "task");
        let reason = format!("run workflow {workflow}: it has {tasks}; at most {MAX_TASKS} are allowed");
        return Err(OpError::Refused { reason, hint: Some("make two workflows of it".to_owned()) });
    }
    let contents = serde_json::to_string(&contents).map_err(|error| ShapeError::at("workflow", error))?;
    Ok(RunPlan { workflow: workflow.clone(), digest, tasks, contents, features: BTreeSet::new() })
}

/// Whether a task, by its content, may run again when nobody knows how far it came.
pub(in crate::ops) fn is_idempotent(content: &Value) -> bool {
    content.get("idempotent").and_then(Value::as_bool).unwrap_or_default()
}

/// The plan without the tasks before this one.
fn beginning_at(mut plan: RunPlan, from: Option<&str>) -> Result<RunPlan, OpError> {
    let Some(from) = from else { return Ok(plan) };
    let name = |task: &RunTask| format!("{}/{}", task.stage, task.task);
    let Some(index) = plan.tasks.iter().position(|task| name(task) == from) else {
        let known: Vec<String> = plan.tasks.iter().map(name).collect();
        let reason =
            format!("{from:?} is not a task of workflow {}; its tasks: {}", plan.workflow, known.join(", "));
        return Err(ShapeError::at("from", reason).into());
    };
    plan.tasks.drain(..index);
    Ok(plan)
}

/// The plan, with what an agent needs for its tasks.
fn with_needs(mut plan: RunPlan) -> Result<RunPlan, OpError> {
    let contents: BTreeMap<String, TaskSpec> =
        serde_json::from_str(&plan.contents).map_err(|error| ShapeError::at("contents", error))?;
    let specs = plan.tasks.iter().filter_map(|task| contents.get(&task.digest));
    plan.features = specs.flat_map(needs).collect();
    Ok(plan)
}

fn lacks(workflow: &WorkflowName, id: &DefinitionId) -> OpError {
    let hint =
        Some(format!("write it, with: bellwether apply -f FILE; see: bellwether workflow get {workflow}"));
    OpError::Refused { reason: format!("run workflow {workflow}: {id} does not exist"), hint }
}
