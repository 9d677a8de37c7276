//! What answers say of tasks, stages and workflows: their content, what they name that does not exist, and what names them.

use std::collections::BTreeMap;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::labels::labels_out;
use bellwether_api::v1::workflow::{Stage, StageSpec, Task, Workflow, WorkflowSpec};
use bellwether_core::records::definition::{Definition, DefinitionId};
use bellwether_core::words::name::{ProfileName, StageName, TaskName, WorkflowName};
use bellwether_core::world::fleet::Fleet;

use super::content::content_of;

/// A task, with the stages that name it; `None` if there is none of this name.
///
/// # Errors
/// [`ShapeError`] if a record cannot be read.
pub fn task_view(fleet: &Fleet, users: &Users, name: &TaskName) -> Result<Option<Task>, ShapeError> {
    let id = DefinitionId::Task(name.clone());
    let (Some(spec), Some(stored)) = (content_of(fleet, &id)?, stored(fleet, &id)) else { return Ok(None) };
    let Definition { digest, labels, annotation, .. } = stored;
    Ok(Some(Task {
        name: name.to_string(),
        spec,
        digest: digest.clone(),
        labels: labels_out(labels),
        by: annotation.by.to_string(),
        at_ms: annotation.at.as_millis(),
        reason: annotation.reason.clone(),
        used_by: users.get(&id).cloned().unwrap_or_default(),
    }))
}

/// A stage, with the workflows that name it, and what it names that does not exist; `None` if there is none of this name.
///
/// # Errors
/// [`ShapeError`] if a record cannot be read.
pub fn stage_view(fleet: &Fleet, users: &Users, name: &StageName) -> Result<Option<Stage>, ShapeError> {
    let id = DefinitionId::Stage(name.clone());
    let spec: Option<StageSpec> = content_of(fleet, &id)?;
    let (Some(spec), Some(stored)) = (spec, stored(fleet, &id)) else { return Ok(None) };
    let Definition { digest, labels, annotation, .. } = stored;
    let missing = missing_of(fleet, &spec);
    Ok(Some(Stage {
        name: name.to_string(),
        spec,
        digest: digest.clone(),
        labels: labels_out(labels),
        by: annotation.by.to_string(),
        at_ms: annotation.at.as_millis(),
        reason: annotation.reason.clone(),
        used_by: users.get(&id).cloned().unwrap_or_default(),
        missing,
    }))
}

/// A workflow, with its tasks, and what it and its stages name that does not exist; `None` if there is none of this name.
///
/// # Errors
/// [`ShapeError`] if a record cannot be read.
pub fn workflow_view(fleet: &Fleet, name: &WorkflowName) -> Result<Option<Workflow>, ShapeError> {
    let id = DefinitionId::Workflow(name.clone());
    let spec: Option<WorkflowSpec> = content_of(fleet, &id)?;
    let (Some(spec), Some(stored)) = (spec, stored(fleet, &id)) else { return Ok(None) };
    let (mut tasks, mut missing) = (Vec::new(), Vec::new());
    for stage in &spec.stages {
        match stage_spec(fleet, stage)? {
            Some(stage) => {
                missing.extend(missing_of(fleet, &stage));
                tasks.extend(stage.tasks);
            }
            None => missing.push(format!("stage/{stage}")),
        }
    }
    missing.extend(
        spec.rollback.iter().filter(|name| !is_workflow(fleet, name)).map(|name| format!("workflow/{name}")),
    );
    missing.sort_unstable();
    missing.dedup();
    let Definition { digest, labels, annotation, .. } = stored;
    Ok(Some(Workflow {
        name: name.to_string(),
        spec,
        digest: digest.clone(),
        labels: labels_out(labels),
        by: annotation.by.to_string(),
        at_ms: annotation.at.as_millis(),
        reason: annotation.reason.clone(),
        tasks,
        missing,
    }))
}

/// What a definition names that does not exist.
///
/// # Errors
/// [`ShapeError`] if a record cannot be read.
pub fn missing(fleet: &Fleet, id: &DefinitionId) -> Result<Vec<String>, ShapeError> {
    Ok(match id {
        DefinitionId::Task(_) => Vec::new(),
        DefinitionId::Stage(name) => {
            stage_view(fleet, &Users::new(), name)?.map(|stage| stage.missing).unwrap_or_default()
        }
        DefinitionId::Workflow(name) => {
            workflow_view(fleet, name)?.map(|workflow| workflow.missing).unwrap_or_default()
        }
    })
}

/// What names each definition.
pub type Users = BTreeMap<DefinitionId, Vec<String>>;

/// The definitions that are named by others, each with the names of those.
///
/// # Errors
/// [`ShapeError`] if a record cannot be read.
pub fn users(fleet: &Fleet) -> Result<Users, ShapeError> {
    let mut users = Users::new();
    for other in fleet.definitions.keys() {
        let named: Vec<DefinitionId> = match other {
            DefinitionId::Task(_) => Vec::new(),
            DefinitionId::Stage(_) => {
                let tasks = content_of::<StageSpec>(fleet, other)?.unwrap_or_default().tasks;
                tasks.iter().filter_map(|task| task.parse().ok().map(DefinitionId::Task)).collect()
            }
            DefinitionId::Workflow(_) => {
                let stages = content_of::<WorkflowSpec>(fleet, other)?.unwrap_or_default().stages;
                stages.iter().filter_map(|stage| stage.parse().ok().map(DefinitionId::Stage)).collect()
            }
        };
        for id in named {
            users.entry(id).or_default().push(other.name().to_owned());
        }
    }
    Ok(users)
}

fn stored<'a>(fleet: &'a Fleet, id: &DefinitionId) -> Option<&'a Definition> {
    fleet.definitions.get(id).map(|kept| &*kept.value)
}

fn is_workflow(fleet: &Fleet, name: &str) -> bool {
    name.parse().is_ok_and(|name| fleet.definitions.contains_key(&DefinitionId::Workflow(name)))
}

fn stage_spec(fleet: &Fleet, name: &str) -> Result<Option<StageSpec>, ShapeError> {
    name.parse::<StageName>().map_or(Ok(None), |name| content_of(fleet, &DefinitionId::Stage(name)))
}

/// What a stage names and does not exist.
fn missing_of(fleet: &Fleet, stage: &StageSpec) -> Vec<String> {
    let no_task = |name: &&String| {
        let id = name.parse::<TaskName>().ok().map(DefinitionId::Task);
        id.is_none_or(|id| fleet.definitions.get(&id).is_none())
    };
    let no_profile =
        |name: &&String| name.parse::<ProfileName>().ok().is_none_or(|name| fleet.profile(&name).is_none());
    let tasks = stage.tasks.iter().filter(no_task).map(|name| format!("task/{name}"));
    tasks.chain(stage.profiles.iter().filter(no_profile).map(|name| format!("profile/{name}"))).collect()
}
