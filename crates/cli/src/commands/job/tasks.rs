//! `job tasks`: the tasks of a run on a node, and changes of those that it has not begun.

use bellwether_api::v1::job::JobState;
use bellwether_api::v1::task_list::{TaskList, TaskListEdit};

use crate::args::{TasksOf, TasksVerb};
use crate::commands::selected_nodes::exists;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;

/// Shows the tasks of the run on a node, or changes them.
pub(super) async fn run(context: &Context, verb: TasksVerb) -> CommandResult {
    let (TasksOf { node, run }, edit) = match verb {
        TasksVerb::List { of } => (of, None),
        TasksVerb::Add { of, tasks, at, reason } => {
            (of, Some(TaskListEdit { add: tasks, at, reason, ..TaskListEdit::default() }))
        }
        TasksVerb::Remove { of, tasks, reason } => {
            (of, Some(TaskListEdit { remove: tasks, reason, ..TaskListEdit::default() }))
        }
    };
    let (client, namespace, node) = (&context.client, context.namespace.as_str(), node.as_str());
    let run = match run {
        Some(run) => run,
        None => present(context, node).await?,
    };
    let Some(edit) = edit else {
        let list = client.task_list(namespace, (&run, node)).await?;
        context.show.data(&list, || names(&list), |_| sheet(&list))?;
        return Ok(Exit::Yes);
    };
    let before = client.task_list(namespace, (&run, node)).await?;
    let after = client.edit_task_list(namespace, (&run, node), &edit).await?;
    let what = if names(&before) == names(&after) { "unchanged" } else { "changed" };
    let missing = missing(&before, &edit.remove);
    let missing = if missing.is_empty() { missing } else { format!("; the list does not contain {missing}") };
    context.show.changed(&format!("tasks of run {run} on node {node}: {what}{missing}"));
    context.show.data(&after, || names(&after), |_| sheet(&after))?;
    Ok(Exit::Yes)
}

/// The run that has not ended on the node.
async fn present(context: &Context, node: &str) -> Result<String, Failure> {
    exists(context, node).await?;
    let page = context.client.runs_of_node(&context.namespace, node).await?;
    let mut names = page.items.into_iter().map(|run| run.name);
    match (names.next(), names.next()) {
        (Some(run), None) => Ok(run),
        (Some(one), Some(other)) => {
            let reason = format!("choose a run on node {node}: {one} and {other} have not ended there");
            Err(Failure::usage(reason).hint("name it with --run RUN".to_owned()))
        }
        (None, _) => Err(Failure::new(
            Exit::Refused,
            format!("find tasks on node {node}: no run is in progress there"),
        )
        .hint(format!("see those that have ended: bellwether node jobs {node}"))),
    }
}

/// Those of the tasks, named as TASK or STAGE/TASK, that a list does not contain.
fn missing(list: &TaskList, named: &[String]) -> String {
    let is_in = |name: &&String| {
        list.tasks.iter().any(|task| task.task == **name || format!("{}/{}", task.stage, task.task) == **name)
    };
    let missing: Vec<&str> = named.iter().filter(|name| !is_in(name)).map(String::as_str).collect();
    missing.join(", ")
}

fn names(list: &TaskList) -> Vec<String> {
    list.tasks.iter().map(|task| format!("{}/{}", task.stage, task.task)).collect()
}

fn sheet(list: &TaskList) -> String {
    let begun = usize::try_from(list.begun).unwrap_or(usize::MAX);
    let rows = list.tasks.iter().enumerate().map(|(index, task)| {
        let at = index.checked_sub(begun).map_or_else(|| "-".to_owned(), |at| at.to_string());
        let state = task.state.map_or("pending", JobState::as_str);
        let digest = task.digest.chars().take(12).collect();
        vec![index.to_string(), at, task.stage.clone(), task.task.clone(), state.to_owned(), digest]
    });
    let table = table(&["index", "at", "stage", "task", "state", "digest"], rows);
    let changed = if list.changed { ", changed on this node" } else { "" };
    format!("run {} on node {}{changed}\n\n{table}", list.run, list.node)
}
