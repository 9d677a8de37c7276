//! `job`: what the tasks of runs do on nodes.

mod failure;
mod logs;
mod tasks;

use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::job::Job;
use bellwether_api::v1::page::Page;

use self::logs::LogReader;
use super::lists;
use crate::args::{JobVerb, ListFlags};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: JobVerb) -> CommandResult {
    match verb {
        JobVerb::List { flags, run, node } => list(context, flags, run, node).await,
        JobVerb::Retry { of, reason } => {
            let (run, node) = place(&of.name)?;
            is_last(context, &of.name, (run, node)).await?;
            context.client.retry_job(&context.namespace, (run, node), &reason).await?;
            context.show.changed(&format!("run {run}: retried on node {node}"));
            // Without the right to read the rollout it is not known whether it is paused.
            let view =
                context.client.current_rollout(&context.namespace, run, None, Duration::ZERO).await.ok();
            let pause = view.and_then(|view| view.rollout?.status.paused);
            if let Some(note) = pause.and_then(|pause| failure::paused(run, &pause)) {
                context.show.note(&note);
            }
            Ok(Exit::Yes)
        }
        JobVerb::Tasks(verb) => tasks::run(context, verb).await,
        JobVerb::Logs { of, follow, offset } => {
            let job = find(context, &of.name).await?;
            let reader = LogReader { job, follow, offset, is_within_line: false };
            reader.run(context).await
        }
        JobVerb::Get { of, script } => {
            let job = find(context, &of.name).await?;
            let text = match (script, context.show.is_data()) {
                (true, _) => script_text(&job),
                (false, true) => String::new(),
                (false, false) => [sheet(&job)]
                    .into_iter()
                    .chain(failure::lines(context, &job).await)
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            context.show.data(&job, || vec![job.name.clone()], |_| text)?;
            Ok(Exit::Yes)
        }
    }
}

/// Lists the jobs that the flags ask for, of a run and on a node that are there.
pub(super) async fn list(
    context: &Context,
    flags: ListFlags,
    run: Option<String>,
    node: Option<String>,
) -> CommandResult {
    let namespace = &context.namespace;
    if let Some(run) = &run {
        context.client.run(namespace, run).await?;
    }
    if let Some(node) = &node {
        super::selected_nodes::exists(context, node).await?;
    }
    let empty = match (flags.filter(), &run, &node) {
        (Some(_), _, _) => "no job matches the filter; list all of them with: bellwether job list".to_owned(),
        (None, Some(run), Some(node)) => {
            format!("no job of run {run} on node {node}; see why: bellwether why target/{run}/{node}")
        }
        (None, Some(run), None) => format!("no job of run {run}; see why: bellwether why {run}"),
        (None, None, Some(node)) => format!("no job on node {node}"),
        (None, None, None) => {
            "no jobs; start some with: bellwether workflow run WORKFLOW -l FILTER".to_owned()
        }
    };
    let of = |field: &str, name: &Option<String>| name.as_ref().map(|name| format!("{field} = {name:?}"));
    let terms: Vec<String> = [of("run", &run), of("node", &node)].into_iter().flatten().collect();
    let read = async |context: &Context| context.client.jobs(namespace).await;
    let show = async |page| jobs(context, &page, &empty);
    lists::show(context, &flags.and(&terms), &fill(paths::JOBS, &[namespace]), read, show).await
}

/// The run and the node of a job.
fn place(name: &str) -> Result<(&str, &str), Failure> {
    let mut parts = name.split('/');
    match (parts.next(), parts.next()) {
        (Some(run), Some(node)) if !run.is_empty() && !node.is_empty() => Ok((run, node)),
        (_, _) => Err(misnamed(name)),
    }
}

/// Refuses to retry a job that is named with its index and is not the last one on its node: that is the one that failed.
async fn is_last(context: &Context, name: &str, (run, node): (&str, &str)) -> Result<(), Failure> {
    let place = format!("{run}/{node}");
    if name == place {
        return Ok(());
    }
    let (named, last) = (find(context, name).await?, find(context, &place).await?);
    if named.index == last.index {
        return Ok(());
    }
    let state = named.state.as_str();
    let last = format!("the last one on its node is {}, {}", last.name, last.state.as_str());
    Err(Failure::new(Exit::Refused, format!("retry job {name}: it is {state}; {last}"))
        .hint(format!("bellwether job retry {place}")))
}

fn misnamed(name: &str) -> Failure {
    Failure::usage(format!("read job {name:?}: not RUN/NODE/INDEX"))
        .hint("list them: bellwether job list".to_owned())
}

/// The job of this name; without an index, the last one of the run on the node.
pub(super) async fn find(context: &Context, name: &str) -> Result<Job, Failure> {
    let namespace = &context.namespace;
    let parts: Vec<&str> = name.split('/').collect();
    let index = match parts.as_slice() {
        [_, _, index] => index.parse().ok(),
        [run, node] => {
            let flags = ListFlags::default().and(&[format!("run = {run:?}"), format!("node = {node:?}")]);
            let page = flags.context(context).client.jobs(namespace).await?;
            let last = page.items.iter().map(|job| job.index).max();
            // The control plane says what is missing.
            last.or(Some(0))
        }
        _ => None,
    };
    match (parts.as_slice(), index) {
        ([run, node, ..], Some(index)) => match context.client.job(namespace, (run, node), index).await {
            Ok(job) => Ok(job),
            Err(error) => Err(failure::not_begun(context, (run, node), error.into()).await),
        },
        (_, _) => Err(misnamed(name)),
    }
}

fn jobs(context: &Context, page: &Page<Job>, empty: &str) -> Result<(), Failure> {
    let names = || page.items.iter().map(|job| job.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return empty.to_owned();
        }
        let rows = page.items.iter().map(|job| {
            vec![
                job.name.clone(),
                job.task.clone(),
                job.state.as_str().to_owned(),
                exit(job),
                job.attempts.to_string(),
                job.started_ms.map_or_else(|| "-".to_owned(), date),
            ]
        });
        table(&["name", "task", "state", "exit", "attempts", "started"], rows)
    })
}

/// How it ended, with its exit code.
fn exit(job: &Job) -> String {
    match (job.exit, job.exit_code) {
        (Some(exit), Some(code)) => format!("{} ({code})", exit.as_str()),
        (Some(exit), None) => exit.as_str().to_owned(),
        (None, _) => "-".to_owned(),
    }
}

fn sheet(job: &Job) -> String {
    let time = |at: Option<u64>| at.map_or_else(|| "-".to_owned(), date);
    let steps = job.spec.iter().flat_map(|spec| &spec.steps).map(|step| step.name.as_str());
    let condition = job.spec.as_ref().and_then(|spec| spec.condition.as_deref());
    let lines = [
        format!("name      {}", job.name),
        format!("task      {} of stage {}", job.task, job.stage),
        format!("digest    {}", job.digest),
        format!("if        {}", condition.map_or_else(|| "-".to_owned(), one_line)),
        format!("state     {}", job.state.as_str()),
        format!("exit      {}", exit(job)),
        format!("attempts  {}", job.attempts),
        format!("started   {}", time(job.started_ms)),
        format!("ended     {}", time(job.ended_ms)),
        format!("steps     {}", steps.collect::<Vec<_>>().join(", ")),
        format!("outputs   {}", outputs(job)),
    ];
    lines.join("\n")
}

/// A text of several lines in one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What it wrote, each output as JSON on a line.
fn outputs(job: &Job) -> String {
    let lines: Vec<String> = job
        .outputs
        .iter()
        .flatten()
        .map(|(name, value)| format!("{} = {value}", name.escape_debug()))
        .collect();
    if lines.is_empty() { "-".to_owned() } else { lines.join("\n          ") }
}

/// The texts of its steps, each under its name.
fn script_text(job: &Job) -> String {
    let steps = job.spec.iter().flat_map(|spec| &spec.steps);
    let lines: Vec<String> = steps.flat_map(super::workflow::step_lines).collect();
    lines.join("\n").trim_start().to_owned()
}
