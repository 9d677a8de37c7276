//! `run`: runs of workflows, and what starts them.

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::RolloutState;
use bellwether_api::v1::run::{NewRun, Run, UndoRun};
use bellwether_core::words::plural::plural;

use super::policy::PolicyChange;
use super::rollout::follow::{self, WaitLimit};
use super::{lists, selected_nodes};
use crate::args::{
    ListFlags, PolicyFlags, RunFlags, RunVerb, RunWorkflow, StartFlags, UndoRun as UndoArgs, WaitFlags,
};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::list::{listed, short};
use crate::show::time::date;
use crate::show::{table, tree};

/// Starts a run of a workflow, and follows it if that was asked for.
pub(super) async fn begin(context: &Context, run: RunWorkflow) -> CommandResult {
    let RunWorkflow { of, filter, run: RunFlags { from, start } } = run;
    let StartFlags { reason, busy, dry_run, wait, policy } = start;
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
    if let Some(warning) = &started.warning {
        context.show.note(warning);
    }
    if dry_run {
        context.show.changed(&format!("workflow {}: would run {tasks} on {on}", started.workflow));
        context.show.data(&started, || vec![started.workflow.clone()], |_| run_tasks(&started))?;
        return Ok(Exit::Yes);
    }
    let name = &started.name;
    context.show.changed(&format!("run {name}: started, {tasks} on {on}"));
    if wait.watch {
        return watched(context, name, &wait).await;
    }
    context.show.data(&started, || vec![name.clone()], |_| name.clone())?;
    context.show.note(&format!("watch it with: bellwether rollout get {name} -w"));
    Ok(Exit::Yes)
}

/// Follows a run; if it is rolled back, then the run that undoes it, too.
async fn watched(context: &Context, name: &str, wait: &WaitFlags) -> CommandResult {
    let limit = WaitLimit::from_now(wait.timeout);
    let exit = follow::follow(context, name, limit, 1).await?;
    let mut run = context.client.run(&context.namespace, name).await?;
    if run.state != RolloutState::RolledBack {
        return Ok(exit);
    }
    let what = format!("what undoes run {name} did not start");
    follow::until(context, (name, &what), limit, async || {
        run = context.client.run(&context.namespace, name).await?;
        Ok(run.undone_by.is_some() || run.nothing_to_undo)
    })
    .await?;
    let Some(by) = run.undone_by else {
        context.show.note(&format!("run {name}: {}", undone(&run, false)));
        return Ok(exit);
    };
    context.show.changed(&format!("run {name}: failed; run {by} undoes it"));
    let undone = follow::follow(context, &by, limit, 1).await?;
    Ok(if undone == Exit::NeedsPerson { undone } else { exit })
}

/// Undoes a run, and follows what does it if that was asked for.
async fn undo(context: &Context, undo: UndoArgs) -> CommandResult {
    let UndoArgs { of, start: StartFlags { reason, busy, dry_run, wait, policy } } = undo;
    let policy = policy_of(policy)?;
    let request = UndoRun { policy, reason, busy: busy.chosen(), dry_run };
    let started = context.client.undo_run(&context.namespace, &of.name, &request).await?;
    begun(context, started, dry_run, wait).await
}

pub(super) async fn runs(context: &Context, verb: RunVerb) -> CommandResult {
    let namespace = &context.namespace;
    match verb {
        RunVerb::List { flags, node } => {
            if let Some(node) = &node {
                selected_nodes::exists(context, node).await?;
            }
            let read = async |context: &Context| match &node {
                None => context.client.runs(namespace).await,
                Some(node) => context.client.runs_of_node(namespace, node).await,
            };
            let empty = match (flags.filter(), &node) {
                (Some(_), _) => {
                    "no run matches the filter; list all of them with: bellwether run list".to_owned()
                }
                (None, Some(node)) => format!("no run on node {node}"),
                (None, None) => {
                    "no runs; start one with: bellwether workflow run WORKFLOW -l FILTER".to_owned()
                }
            };
            let path = fill(paths::RUNS, &[namespace]);
            let path = node.as_ref().map_or(path.clone(), |node| format!("{path}?node={node}"));
            return lists::show(context, &flags, &path, read, async |page| run_list(context, &page, &empty))
                .await;
        }
        RunVerb::Get { of } => {
            let run = context.client.run(namespace, &of.name).await?;
            let has_begun = context.show.is_data() || has_begun(context, &run).await?;
            context.show.data(&run, || vec![run.name.clone()], |_| run_sheet(&run, has_begun))?;
        }
        RunVerb::Undo(undo) => return self::undo(context, *undo).await,
        RunVerb::Delete { of, consent } => {
            confirm(&format!("delete run {} and its history?", of.name), consent)?;
            context.client.delete_run(namespace, &of.name).await?;
            context.show.changed(&format!("run {}: deleted", of.name));
        }
    }
    Ok(Exit::Yes)
}

fn run_list(context: &Context, page: &Page<Run>, empty: &str) -> Result<(), Failure> {
    let names = || page.items.iter().map(|run| run.name.clone()).collect();
    context.show.data(&page.items, names, |is_wide| {
        let or_none = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
        let rows = page.items.iter().map(|run| {
            let done = format!("{} of {}", run.succeeded, run.nodes);
            let (state, failed) = (shown(run.state).to_owned(), run.failed.to_string());
            let mut row = vec![run.name.clone(), state, done, failed, date(run.at_ms), run.by.clone()];
            if is_wide {
                row.extend([&run.undoes, &run.undone_by].map(or_none));
            }
            row.push(run.reason.clone());
            row
        });
        if page.items.is_empty() {
            return empty.to_owned();
        }
        let undo: &[&str] = if is_wide { &["undoes", "undone by"] } else { &[] };
        table(&[&["name", "state", "done", "failed", "started", "by"], undo, &["reason"]].concat(), rows)
    })
}

/// Whether a node began a task of a run, so that there is something to undo.
async fn has_begun(context: &Context, run: &Run) -> Result<bool, Failure> {
    let flags = ListFlags::default().and(&[format!("run = {:?}", run.name)]);
    let jobs = fill(paths::JOBS, &[&context.namespace]);
    Ok(flags.context(context).client.count(&jobs).await? > 0)
}

fn run_sheet(run: &Run, has_begun: bool) -> String {
    let reason = if run.reason.is_empty() { "-" } else { &run.reason };
    let head = [
        format!("name      {}", run.name),
        format!("workflow  {} ({})", run.workflow, short(&run.digest)),
        format!("state     {}", shown(run.state)),
        format!("nodes     {}, {} done, {} failed", run.nodes, run.succeeded, run.failed),
        format!("started   {} by {}", date(run.at_ms), run.by),
        format!("reason    {reason}"),
        format!("rollback  {}", undone(run, has_begun)),
    ];
    format!("{}\n\n{}", head.join("\n"), run_tasks(run))
}

/// A state in the words in which rollouts are listed.
fn shown(state: RolloutState) -> &'static str {
    tree::state(&state.into()).0
}

/// What undoes a run, or what it undoes.
fn undone(run: &Run, has_begun: bool) -> String {
    match (&run.rollback, &run.undone_by, &run.undoes) {
        (_, Some(by), _) => match run.undo_state {
            Some(RolloutState::Succeeded) => format!("undone by run {by}"),
            Some(RolloutState::Aborted | RolloutState::Failed | RolloutState::PartiallySucceeded) => {
                format!("run {by} undid it in part; the rest with: bellwether run undo {}", run.name)
            }
            Some(state) => format!("run {by} undoes it: {}", shown(state)),
            None => format!("run {by} undid it, and was deleted"),
        },
        (_, None, Some(undoes)) => format!("undoes run {undoes}"),
        (Some(_), None, None) if run.nothing_to_undo => "nothing to undo: no node had begun it".to_owned(),
        (Some(workflow), None, None) if !has_begun => {
            format!("by workflow {workflow}; nothing to undo: no node has begun it")
        }
        (Some(workflow), None, None) => {
            format!("by workflow {workflow}; start it with: bellwether run undo {}", run.name)
        }
        (None, None, None) => "-".to_owned(),
    }
}

/// The tasks of a run, in their order.
fn run_tasks(run: &Run) -> String {
    let rows = run.tasks.iter().enumerate().map(|(index, task)| {
        let number = index.saturating_add(1).to_string();
        vec![number, task.stage.clone(), task.task.clone(), short(&task.digest), listed(&task.profiles)]
    });
    table(&["", "stage", "task", "digest", "profiles"], rows)
}
