//! `describe`: all fields of an object, its last events, and what it waits for.

mod store;

use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::event::Event;
use bellwether_api::v1::rollout::RolloutView;
use bellwether_api::v1::target::TargetView;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::rollout::follow;
use super::subject::{canonical, is_about, past_rollout};
use super::targets::target;
use super::{
    cluster, ensemble, entity, filter, freeze, job, node, overview, pause, reaction, runs, schedule, service,
    sink, slot, workflow,
};
use crate::args::{
    JobName, JobVerb, RunName, RunVerb, StageName, StageVerb, TaskName, TaskVerb, WorkflowName, WorkflowVerb,
};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::event::line;
use crate::show::time::date;
use crate::show::{screen, sheet, tree};

/// Most events read to find those about the object.
const READ: u32 = 1_000;

/// Most events shown.
const SHOWN: usize = 10;

/// An object with all that is known of it.
#[derive(Debug, Serialize)]
struct Described {
    /// The object, as events name it.
    subject: String,
    /// All its fields.
    fields: Value,
    /// The last events about it, oldest first.
    events: Vec<Event>,
    /// What it waits for, line by line.
    why: Vec<String>,
}

pub(super) async fn run(context: &Context, asked: &str) -> CommandResult {
    let (subject, fields) = find(context, asked).await?;
    let page = context.client.events(&context.namespace, None, READ, Duration::ZERO).await?;
    let mut found: Vec<Event> =
        page.items.into_iter().filter(|event| is_about(&event.subject, &subject)).collect();
    let newest = found.split_off(found.len().saturating_sub(SHOWN));
    let why = why(context, &subject).await?;
    let described = Described { subject, fields, events: newest, why };
    let head = match context.show.is_data() || of_workflows(context, &described.subject).await? {
        true => Vec::new(),
        false => head(context, &described).await?,
    };
    context.show.data(&described, || vec![described.subject.clone()], |_| text(context, &described, head))?;
    Ok(Exit::Yes)
}

/// Shows an object of workflows as its own command does; answers whether it is one.
async fn of_workflows(context: &Context, subject: &str) -> Result<bool, Failure> {
    let (kind, name) = subject.split_once('/').unwrap_or_default();
    let name = name.to_owned();
    match kind {
        "run" => runs::runs(context, RunVerb::Get { of: RunName { name } }).await?,
        "job" => job::run(context, JobVerb::Get { of: JobName { name }, script: false }).await?,
        "task" => workflow::task(context, TaskVerb::Get { of: TaskName { name } }).await?,
        "stage" => workflow::stage(context, StageVerb::Get { of: StageName { name } }).await?,
        "workflow" => workflow::workflow(context, WorkflowVerb::Get { of: WorkflowName { name } }).await?,
        _ => return Ok(false),
    };
    Ok(true)
}

/// The object for people, as its own commands show it; a profile field by field.
async fn head(context: &Context, described: &Described) -> Result<Vec<String>, Failure> {
    let fields = described.fields.clone();
    let text = match described.subject.split_once('/') {
        Some(("rollout", entity)) if past_rollout(entity).is_none() => {
            let targets = follow::targets(context, entity).await?;
            screen::folded(&tree::lines(&read::<RolloutView>(fields)?, &targets, context.show.paint))
        }
        Some(("entity", name)) => {
            let desired = entity::desired(context).await?;
            entity::sheet(&read(fields)?, desired.get(name).map(String::as_str))
        }
        Some(("node", _)) => node::sheet(&read(fields)?),
        Some(("cluster", _)) => cluster::sheet(&read(fields)?),
        Some(("ensemble", _)) => ensemble::sheet(&read(fields)?),
        Some(("filter", _)) => filter::sheet(&read(fields)?),
        Some(("schedule", _)) => schedule::sheet(&read(fields)?),
        Some(("reaction", _)) => reaction::sheet(&read(fields)?),
        Some(("sink", _)) => sink::sheet(&read(fields)?),
        Some(("freeze", _)) => freeze::sheet(&read(fields)?),
        Some(("pause", _)) => pause::sheet(&read(fields)?),
        Some(("slot", _)) => slot::sheet(&read(fields)?),
        Some(("service", _)) => service::sheet(&read(fields)?),
        Some(("target", _)) => target_sheet(&read(fields)?),
        Some(_) | None => {
            return Ok(sheet::lines(&described.fields));
        }
    };
    Ok(text.lines().map(str::to_owned).collect())
}

fn read<T: DeserializeOwned>(fields: Value) -> Result<T, Failure> {
    serde_json::from_value(fields).map_err(|error| Failure::ours(format!("describe the answer: {error}")))
}

/// The object that was asked for: its full name and its fields. A bare name is a node's or an entity's.
pub(super) async fn find(context: &Context, asked: &str) -> Result<(String, Value), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let Some((kind, name)) = asked.split_once('/') else {
        return match client.node(namespace, asked).await {
            Ok(node) => Ok((format!("node/{asked}"), fields(&node)?)),
            Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
                Ok((format!("entity/{asked}"), fields(&client.entity(namespace, asked).await?)?))
            }
            Err(error) => Err(error.into()),
        };
    };
    let found = match kind {
        "node" => fields(&client.node(namespace, name).await?)?,
        "entity" => fields(&client.entity(namespace, name).await?)?,
        "service" => fields(&client.service(namespace, name, None, Duration::ZERO).await?)?,
        "slot" => {
            slot::exists(context, "slot", name).await?;
            fields(&client.slot(namespace, name, None, Duration::ZERO).await?.slot)?
        }
        "target" => fields(&target(context, name).await?)?,
        "store" => fields(&store::find(context, name).await?)?,
        "cluster" => fields(&client.cluster(namespace, name).await?)?,
        "ensemble" => fields(&client.ensemble(namespace, name).await?)?,
        "schedule" => fields(&client.schedule(namespace, name).await?)?,
        "reaction" => fields(&client.reaction(namespace, name).await?)?,
        "sink" => fields(&client.sink(namespace, name).await?)?,
        "filter" => fields(&client.filter(namespace, name).await?)?,
        "pause" => fields(&client.pause(namespace, name).await?)?,
        "profile" => fields(&client.profile(namespace, name).await?)?,
        "rollout" => match past_rollout(name) {
            Some((entity, number)) => fields(&client.rollout(namespace, entity, number).await?)?,
            None => fields(&client.current_rollout(namespace, name, None, Duration::ZERO).await?)?,
        },
        "freeze" => match client.freeze(Some(namespace), name).await {
            Ok(freeze) => fields(&freeze)?,
            Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
                let listed = client.freezes(Some(namespace)).await?.items;
                let global = listed.iter().find(|view| view.freeze.name == name);
                fields(global.ok_or(CallError::Problem(problem))?)?
            }
            Err(error) => return Err(error.into()),
        },
        "run" => fields(&client.run(namespace, name).await?)?,
        "job" => fields(&job::find(context, name).await?)?,
        "task" => fields(&client.task(namespace, name).await?)?,
        "stage" => fields(&client.stage(namespace, name).await?)?,
        "workflow" => fields(&client.workflow(namespace, name).await?)?,
        other => {
            let hint = "write node/NAME, entity/NAME, service/NAME, target/ENTITY/NAME, store/NODE/PROBE, rollout/ENTITY, freeze/NAME, pause/NAME, slot/NAME, profile/NAME, cluster/NAME, ensemble/NAME, filter/NAME, schedule/NAME, reaction/NAME, sink/NAME, run/NAME, job/RUN/NODE, task/NAME, stage/NAME or workflow/NAME";
            return Err(
                Failure::usage(format!("describe {asked}: {other} is not a kind of object")).hint(hint)
            );
        }
    };
    Ok((asked.to_owned(), found))
}

/// A target with its phase and versions, one fact a line.
fn target_sheet(target: &TargetView) -> String {
    let TargetView { name, phase, since_ms, assigned, running, rollout, presence, reason, .. } = target;
    let since = since_ms.map_or_else(String::new, |since| format!(" since {}", date(since)));
    let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "-".to_owned());
    let by = rollout.map_or_else(String::new, |rollout| format!(" by rollout {rollout}"));
    let at = target.assigned_at_ms.map_or_else(String::new, |at| format!(" at {}", date(at)));
    let reason =
        reason.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(reason);
    let mut lines = vec![
        format!("name      {name}"),
        format!("phase     {}{since}", phase.as_str().replace('_', " ")),
        format!("assigned  {}{by}{at}", version(assigned)),
        format!("runs      {}", version(running)),
        format!("contact   {}", overview::presence(*presence)),
        format!("reason    {reason}"),
    ];
    if let Some(evidence) = &target.evidence {
        lines.push(format!("failure   {}", evidence.summary));
    }
    lines.join("\n")
}

fn fields<T: Serialize>(thing: &T) -> Result<Value, Failure> {
    serde_json::to_value(thing).map_err(|error| Failure::ours(format!("describe the answer: {error}")))
}

/// What the object waits for; a freeze, pause, profile or filter waits for nothing.
async fn why(context: &Context, subject: &str) -> Result<Vec<String>, Failure> {
    let asked = match subject.split_once('/') {
        Some(("node" | "entity" | "service" | "target" | "slot" | "cluster" | "ensemble", _)) => {
            subject.to_owned()
        }
        // What it waited for is over.
        Some(("rollout", name)) if past_rollout(name).is_some() => return Ok(Vec::new()),
        Some(("rollout" | "run", _)) => canonical(subject),
        Some(_) | None => return Ok(Vec::new()),
    };
    Ok(context.client.why(&context.namespace, &asked).await?.lines)
}

fn text(context: &Context, described: &Described, head: Vec<String>) -> String {
    let mut lines = head;
    if !described.events.is_empty() {
        lines.extend([String::new(), "events".to_owned()]);
        let paint = context.show.paint;
        lines.extend(described.events.iter().map(|event| line(event, paint, &date(event.time_ms))));
    }
    if !described.why.is_empty() {
        lines.extend([String::new(), "why".to_owned()]);
        lines.extend(described.why.iter().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}
