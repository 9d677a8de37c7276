//! `task`, `stage` and `workflow`: what there is, and what it consists of. They are written by `apply`.

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::run::{NewRun, Run};
use bellwether_api::v1::workflow::{Stage, Task, TaskStep, Workflow};

use super::policy::PolicyChange;
use super::rollout::follow;
use super::{documents, lists};
use crate::args::{
    PolicyFlags, RunFlags, RunVerb, RunWorkflow, StageVerb, TaskVerb, WaitFlags, WorkflowVerb,
};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;
use bellwether_core::words::plural::plural;

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
        WorkflowVerb::Run(run) => return begin(context, *run).await,
        WorkflowVerb::Delete { of, consent } => {
            confirm(&format!("delete workflow {}?", of.name), consent)?;
            context.client.delete_workflow(namespace, &of.name).await?;
            context.show.changed(&format!("workflow {}: deleted", of.name));
        }
    }
    Ok(Exit::Yes)
}

/// Starts a run of a workflow, and follows it if that was asked for.
async fn begin(context: &Context, run: RunWorkflow) -> CommandResult {
    let RunWorkflow { of, filter, run: RunFlags { from, reason, busy, dry_run, wait, policy } } = run;
    let policy = policy_of(policy)?;
    let new = NewRun { workflow: of.name, on: filter, from, policy, reason, busy: busy.chosen(), dry_run };
    let started = context.client.start_run(&context.namespace, &new).await?;
    begun(context, started, dry_run, wait).await
}

/// The policy of a run.
pub(super) fn policy_of(flags: PolicyFlags) -> Result<Policy, Failure> {
    let change = PolicyChange::read(flags)?;
    if change.unset.is_empty() {
        return Ok(change.set);
    }
    Err(Failure::usage("unset a field of the policy of a run: it has no other policy".to_owned()))
}

/// Shows a run that was started, or that would be, and follows it if that was asked for.
pub(super) async fn begun(context: &Context, started: Run, dry_run: bool, wait: WaitFlags) -> CommandResult {
    let on = plural(usize::try_from(started.nodes).unwrap_or(usize::MAX), "node");
    let tasks = plural(started.tasks.len(), "task");
    if dry_run {
        context.show.changed(&format!("workflow {}: would run {tasks} on {on}", started.workflow));
        context.show.data(&started, || vec![started.workflow.clone()], |_| run_tasks(&started))?;
        return Ok(Exit::Yes);
    }
    let name = &started.name;
    context.show.changed(&format!("run {name}: started, {tasks} on {on}"));
    if wait.watch {
        return follow::follow(context, name, wait.timeout, 1).await;
    }
    context.show.data(&started, || vec![name.clone()], |_| name.clone())?;
    context.show.note(&format!("watch it with: bellwether rollout get {name} -w"));
    Ok(Exit::Yes)
}

pub(super) async fn runs(context: &Context, verb: RunVerb) -> CommandResult {
    let namespace = &context.namespace;
    match verb {
        RunVerb::List { flags, node } => {
            let read = async |context: &Context| match &node {
                None => context.client.runs(namespace).await,
                Some(node) => context.client.runs_of_node(namespace, node).await,
            };
            let path = fill(paths::RUNS, &[namespace]);
            let path = node.as_ref().map_or(path.clone(), |node| format!("{path}?node={node}"));
            return lists::show(context, &flags, &path, read, async |page| run_list(context, &page)).await;
        }
        RunVerb::Get { of } => {
            let run = context.client.run(namespace, &of.name).await?;
            context.show.data(&run, || vec![run.name.clone()], |_| run_sheet(&run))?;
        }
        RunVerb::Delete { of, consent } => {
            confirm(&format!("delete run {} and its history?", of.name), consent)?;
            context.client.delete_run(namespace, &of.name).await?;
            context.show.changed(&format!("run {}: deleted", of.name));
        }
    }
    Ok(Exit::Yes)
}

fn run_list(context: &Context, page: &Page<Run>) -> Result<(), Failure> {
    let names = || page.items.iter().map(|run| run.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|run| {
            let done = format!("{} of {}", run.succeeded, run.nodes);
            let (state, failed) = (run.state.as_str().to_owned(), run.failed.to_string());
            vec![run.name.clone(), state, done, failed, date(run.at_ms), run.by.clone(), run.reason.clone()]
        });
        if page.items.is_empty() {
            return "no runs; start one with: bellwether workflow run WORKFLOW -l FILTER".to_owned();
        }
        table(&["name", "state", "done", "failed", "started", "by", "reason"], rows)
    })
}

fn run_sheet(run: &Run) -> String {
    let reason = if run.reason.is_empty() { "-" } else { &run.reason };
    let head = [
        format!("name      {}", run.name),
        format!("workflow  {} ({})", run.workflow, short(&run.digest)),
        format!("state     {}", run.state.as_str()),
        format!("nodes     {}, {} done, {} failed", run.nodes, run.succeeded, run.failed),
        format!("started   {} by {}", date(run.at_ms), run.by),
        format!("reason    {reason}"),
    ];
    format!("{}\n\n{}", head.join("\n"), run_tasks(run))
}

/// The tasks of a run, in their order.
fn run_tasks(run: &Run) -> String {
    let rows = run.tasks.iter().enumerate().map(|(index, task)| {
        let number = index.saturating_add(1).to_string();
        vec![number, task.stage.clone(), task.task.clone(), short(&task.digest), listed(&task.profiles)]
    });
    table(&["", "stage", "task", "digest", "profiles"], rows)
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
        format!("missing      {}", listed(&workflow.missing)),
        changed(&workflow.by, workflow.at_ms, &workflow.reason),
    ]
    .join("\n")
}

fn changed(by: &str, at_ms: u64, reason: &str) -> String {
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("changed      by {by}, {}{reason}", date(at_ms))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}
