//! `task`, `stage` and `workflow`: what there is, and what it consists of. They are written by `apply`.

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::workflow::{Stage, Task, TaskStep, Workflow};

use super::{documents, lists, runs};
use crate::args::{StageVerb, TaskVerb, WorkflowVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::list::{listed, short};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn task(context: &Context, verb: TaskVerb) -> CommandResult {
    let namespace = &context.namespace;
    match verb {
        TaskVerb::List(flags) => {
            let read = async |context: &Context| context.client.tasks(namespace).await;
            let path = fill(paths::TASKS, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| tasks(context, &page).await).await;
        }
        TaskVerb::Get { of } => {
            let task = context.client.task(namespace, &of.name).await?;
            if !documents::yaml(context, "task", std::slice::from_ref(&task)).await? {
                context.show.data(&task, || vec![task.name.clone()], |_| task_sheet(&task))?;
            }
        }
        TaskVerb::Delete { of, consent } => {
            confirm(&format!("delete task {}?", of.name), consent)?;
            context.client.delete_task(namespace, &of.name).await?;
            context.show.changed(&format!("task {}: deleted", of.name));
        }
    }
    Ok(Exit::Yes)
}

pub(super) async fn stage(context: &Context, verb: StageVerb) -> CommandResult {
    let namespace = &context.namespace;
    match verb {
        StageVerb::List(flags) => {
            let read = async |context: &Context| context.client.stages(namespace).await;
            let path = fill(paths::STAGES, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| stages(context, &page).await)
                .await;
        }
        StageVerb::Get { of } => {
            let stage = context.client.stage(namespace, &of.name).await?;
            if !documents::yaml(context, "stage", std::slice::from_ref(&stage)).await? {
                context.show.data(&stage, || vec![stage.name.clone()], |_| stage_sheet(&stage))?;
            }
        }
        StageVerb::Delete { of, consent } => {
            confirm(&format!("delete stage {}?", of.name), consent)?;
            context.client.delete_stage(namespace, &of.name).await?;
            context.show.changed(&format!("stage {}: deleted", of.name));
        }
    }
    Ok(Exit::Yes)
}

pub(super) async fn workflow(context: &Context, verb: WorkflowVerb) -> CommandResult {
    let namespace = &context.namespace;
    match verb {
        WorkflowVerb::List(flags) => {
            let read = async |context: &Context| context.client.workflows(namespace).await;
            let path = fill(paths::WORKFLOWS, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| workflows(context, &page).await)
                .await;
        }
        WorkflowVerb::Get { of } => {
            let workflow = context.client.workflow(namespace, &of.name).await?;
            if !documents::yaml(context, "workflow", std::slice::from_ref(&workflow)).await? {
                context.show.data(
                    &workflow,
                    || vec![workflow.name.clone()],
                    |_| workflow_sheet(&workflow),
                )?;
            }
        }
        WorkflowVerb::Run(run) => return runs::begin(context, *run).await,
        WorkflowVerb::Delete { of, consent } => {
            confirm(&format!("delete workflow {}?", of.name), consent)?;
            context.client.delete_workflow(namespace, &of.name).await?;
            context.show.changed(&format!("workflow {}: deleted", of.name));
        }
    }
    Ok(Exit::Yes)
}

async fn tasks(context: &Context, page: &Page<Task>) -> Result<(), Failure> {
    if documents::yaml(context, "task", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|task| task.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|task| {
            let steps: Vec<&str> = task.spec.steps.iter().map(|step| step.name.as_str()).collect();
            vec![task.name.clone(), short(&task.digest), steps.join(", "), listed(&task.used_by)]
        });
        if page.items.is_empty() {
            return "no tasks; write one with: bellwether apply -f FILE".to_owned();
        }
        table(&["name", "digest", "steps", "stages"], rows)
    })
}

async fn stages(context: &Context, page: &Page<Stage>) -> Result<(), Failure> {
    if documents::yaml(context, "stage", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|stage| stage.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|stage| {
            vec![
                stage.name.clone(),
                listed(&stage.spec.tasks),
                listed(&stage.spec.profiles),
                listed(&stage.used_by),
                listed(&stage.missing),
            ]
        });
        if page.items.is_empty() {
            return "no stages; write one with: bellwether apply -f FILE".to_owned();
        }
        table(&["name", "tasks", "profiles", "workflows", "missing"], rows)
    })
}

async fn workflows(context: &Context, page: &Page<Workflow>) -> Result<(), Failure> {
    if documents::yaml(context, "workflow", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|workflow| workflow.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|workflow| {
            vec![
                workflow.name.clone(),
                listed(&workflow.spec.stages),
                listed(&workflow.tasks),
                listed(&workflow.missing),
            ]
        });
        if page.items.is_empty() {
            return "no workflows; write one with: bellwether apply -f FILE".to_owned();
        }
        table(&["name", "stages", "tasks", "missing"], rows)
    })
}

/// A task with all its steps, their text last.
fn task_sheet(task: &Task) -> String {
    let spec = &task.spec;
    let keys: Vec<String> = spec.params.keys().cloned().collect();
    let mut lines = vec![
        format!("name         {}", task.name),
        format!("digest       {}", task.digest),
        format!("description  {}", or_dash(&spec.description)),
        format!("timeout      {}", spec.timeout.as_deref().unwrap_or("1h")),
        format!("idempotent   {}", if spec.idempotent { "yes" } else { "no" }),
        format!("attempts     {}", spec.retry.as_ref().map_or(1, |retry| retry.attempts)),
        format!("params       {}", listed(&keys)),
        format!("stages       {}", listed(&task.used_by)),
        changed(&task.by, task.at_ms, &task.reason),
    ];
    lines.extend(spec.condition.iter().map(|condition| format!("if           {}", condition.trim())));
    lines.extend(spec.steps.iter().flat_map(step_lines));
    lines.join("\n")
}

/// The text of a step, under its name.
pub(super) fn step_lines(step: &TaskStep) -> Vec<String> {
    let (what, text) = match (&step.script, &step.file) {
        (Some(script), _) if script.interpreter.is_empty() => {
            ("script, /bin/sh -eu".to_owned(), &script.text)
        }
        (Some(script), _) => (format!("script, {}", script.interpreter.join(" ")), &script.text),
        (None, Some(file)) => {
            (format!("file {}, mode {}", file.path, file.mode.as_deref().unwrap_or("0644")), &file.text)
        }
        (None, None) => return Vec::new(),
    };
    let head = ["".to_owned(), format!("step {}: {what}", step.name)];
    head.into_iter().chain(text.lines().map(|line| format!("  {line}"))).collect()
}

fn stage_sheet(stage: &Stage) -> String {
    [
        format!("name         {}", stage.name),
        format!("digest       {}", stage.digest),
        format!("description  {}", or_dash(&stage.spec.description)),
        format!("tasks        {}", listed(&stage.spec.tasks)),
        format!("profiles     {}", listed(&stage.spec.profiles)),
        format!("workflows    {}", listed(&stage.used_by)),
        format!("missing      {}", listed(&stage.missing)),
        changed(&stage.by, stage.at_ms, &stage.reason),
    ]
    .join("\n")
}

fn workflow_sheet(workflow: &Workflow) -> String {
    [
        format!("name         {}", workflow.name),
        format!("digest       {}", workflow.digest),
        format!("description  {}", or_dash(&workflow.spec.description)),
        format!("stages       {}", listed(&workflow.spec.stages)),
        format!("tasks        {}", listed(&workflow.tasks)),
        format!("rollback     {}", workflow.spec.rollback.as_deref().unwrap_or("-")),
        format!("missing      {}", listed(&workflow.missing)),
        changed(&workflow.by, workflow.at_ms, &workflow.reason),
    ]
    .join("\n")
}

fn changed(by: &str, at_ms: u64, reason: &str) -> String {
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("changed      by {by}, {}{reason}", date(at_ms))
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}
