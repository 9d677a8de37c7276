//! What a node needs to run one task: the task as its task list has it, and the node's params as they are now.

use std::collections::BTreeMap;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::job::ReportedJob;
use bellwether_api::v1::profile::{Params, params};
use bellwether_api::v1::run::{JobInputs, RunTask as TaskShape};
use bellwether_api::v1::secret::SecretMark;
use bellwether_api::v1::task_list::NextJob;
use bellwether_api::v1::workflow::TaskSpec;
use bellwether_core::decide::jobs::{self, DispatchRefusal};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::run::{Run, RunTask};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::feature::Feature;
use bellwether_core::words::name::{EntityName, NodeName, ProfileName};
use bellwether_core::words::precedence::{ParamLayers, ParamLevel, levels};
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::lost_runs::RunLoss;

use super::needs::needs;
use crate::ops::params::schema::ParamSchema;
use crate::ops::scope::NodeScope;
use crate::ops::{OpError, node_params};
use crate::transactor::Transactor;

/// Has a node begin the task of this index of a run, from now on, and answers its inputs: `None` behind the last task, whereupon the
/// task list on this node is closed.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] when the node lacks a param that the task needs, has one that does not fit, or has finished
/// the task already.
pub async fn take(
    transactor: &Transactor,
    NodeScope { namespace, node, actor }: NodeScope<'_>,
    name: &EntityName,
    index: u64,
) -> Result<NextJob, OpError> {
    let index = u32::try_from(index).map_err(|error| ShapeError::at("number", error))?;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let run = assigned(fleet, node, name)?;
            let order = fleet.orders.get(node).and_then(|kept| kept.value.content.entities.get(name));
            let binding = order.map(|assigned| assigned.binding.clone()).unwrap_or_default();
            let ledger = binding.ledger.as_ref();
            let tasks = fleet.tasks_of(run, node);
            let job = match usize::try_from(index).is_ok_and(|index| index == tasks.len()) {
                true => None,
                false => Some(inputs(fleet, node, name, index.into())?),
            };
            let written = jobs::dispatched(fleet, (run, node), ledger, index)
                .map_err(|why| refused(fleet, (run, node), index, why))?;
            let changeset = written.map(|jobs| {
                let writes = vec![Write::put(Record::Jobs(jobs))];
                let guards = [Key::TaskList(name.clone(), node.clone()), Key::Run(name.clone())];
                Changeset { writes, events: Vec::new() }.guarded_by(guards)
            });
            let known = fleet.jobs.get(&(name.clone(), node.clone())).map(|kept| &kept.value.jobs);
            let complete = known.into_iter().flatten().filter(|job| job.index < binding.complete);
            Ok((changeset, NextJob { job, complete: complete.map(ReportedJob::from).collect() }))
        })
        .await
}

/// That a node does not begin a task of a run, with the command for what is left of it.
fn refused(fleet: &Fleet, (run, node): (&Run, &NodeName), index: u32, why: DispatchRefusal) -> OpError {
    let name = &run.name;
    let why = match why {
        DispatchRefusal::Finished => {
            "the node reported that it is done with it, and its ledger does not know that"
        }
        DispatchRefusal::Begun => "the node reported that it began it, and its ledger does not know that",
        DispatchRefusal::Forgotten => RunLoss::ForgottenByLedger.reason(false),
    };
    let reason = format!("begin task {index} of run {name} on node {node}: {why}");
    let hint = format!("go on in another run: {}", fleet.run_from(run, node));
    OpError::Refused { reason, hint: Some(hint) }
}

/// The run of this name, if the node is to carry it out.
fn assigned<'a>(fleet: &'a Fleet, node: &NodeName, name: &EntityName) -> Result<&'a Run, OpError> {
    let assigned = fleet.contents.get(node).is_some_and(|content| content.entities.contains_key(name));
    let run = fleet.runs.get(name).filter(|_| assigned).map(|kept| &*kept.value);
    // Of one that is undone, it is known already who began it.
    let run = run.filter(|run| run.undo.is_none());
    run.ok_or_else(|| OpError::NotFound(format!("run {name} on node {node}")))
}

/// The inputs of the task of this index, for a node of the run.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] when the node lacks a param that the task needs, or has one that does not fit.
fn inputs(fleet: &Fleet, node: &NodeName, name: &EntityName, index: u64) -> Result<JobInputs, OpError> {
    let run = assigned(fleet, node, name)?;
    let tasks = fleet.tasks_of(run, node);
    let task = usize::try_from(index).ok().and_then(|index| tasks.get(index));
    let task = task.ok_or_else(|| OpError::NotFound(format!("task {index} of run {name}")))?;
    let mut spec = spec(fleet, (run, node), task)?;
    if !fleet.reports.get(node).is_some_and(|kept| kept.value.features.has(Feature::Jobs)) {
        // Its agent does not know the field, and begins the task once.
        spec.retry = None;
    }
    known(fleet, node, (task, &spec))?;
    let params = with_defaults(&spec, resolved(fleet, node, &task.profiles)?);
    has_needed(task, &spec, &params, node)?;
    Ok(JobInputs {
        run: name.to_string(),
        workflow: run.workflow.to_string(),
        tasks: u32::try_from(tasks.len()).unwrap_or(u32::MAX),
        index: u32::try_from(index).unwrap_or(u32::MAX),
        task: TaskShape::from(task),
        spec,
        params,
    })
}

/// Refuses a task that the node's agent would not run as it was written. An agent that asks waits then, and does not fail: it may be an
/// earlier build that is upgraded again.
fn known(fleet: &Fleet, node: &NodeName, (task, spec): (&RunTask, &TaskSpec)) -> Result<(), OpError> {
    let Some(report) = fleet.reports.get(node).map(|kept| &kept.value) else { return Ok(()) };
    let Some(feature) = needs(spec).into_iter().find(|feature| !report.features.has(*feature)) else {
        return Ok(());
    };
    Err(OpError::NotFound(format!(
        "the feature {feature} in agent {} of node {node}, which task {} needs; upgrade the agent",
        report.agent_version, task.task
    )))
}

/// What a task of a run does on a node, as it was when it became part of its task list.
///
/// # Errors
/// [`OpError::Invalid`] and [`OpError::NotFound`] when the record of the run is damaged.
pub fn spec(fleet: &Fleet, (run, node): (&Run, &NodeName), task: &RunTask) -> Result<TaskSpec, OpError> {
    for text in fleet.contents_of(run, node) {
        let mut contents: BTreeMap<String, TaskSpec> =
            serde_json::from_str(text).map_err(|error| ShapeError::at("contents", error))?;
        if let Some(spec) = contents.remove(&task.digest) {
            return Ok(spec);
        }
    }
    Err(OpError::NotFound(format!("the content of task {}", task.task)))
}

/// The params of a node: its own, those of the live profiles that it reads, then of those of the stage, by the precedence that holds
/// everywhere.
fn resolved(fleet: &Fleet, node: &NodeName, stage: &[ProfileName]) -> Result<Params, OpError> {
    let own = node_params::get(fleet, node)?;
    let profiles: Vec<ProfileName> =
        fleet.profiles_read_by(node).into_iter().chain(stage.iter().cloned()).collect();
    let mut layers = Vec::new();
    for level in levels(&profiles, None) {
        let text = match &level {
            ParamLevel::Node => Some(own.params.as_str()),
            ParamLevel::Profile(profile) => {
                fleet.profile(profile).filter(|head| head.live).and_then(|head| {
                    let kept = fleet.profile_revisions.get(&(profile.clone(), head.newest))?;
                    Some(kept.value.params.as_str())
                })
            }
        };
        if let Some(text) = text {
            layers.push((level, params(text)?));
        }
    }
    let layers = ParamLayers::new(layers);
    let resolved = layers.resolved().into_iter().map(|(key, (_, value))| (key.to_owned(), value.clone()));
    // What a cluster gives by roles takes precedence over all others.
    Ok(resolved.chain(role_params(fleet, node)).collect())
}

/// The params that a node has by its role in its cluster.
#[must_use]
pub fn role_params(fleet: &Fleet, node: &NodeName) -> Params {
    let params = fleet.role_params(node).into_iter();
    params.map(|(key, value)| (key.to_owned(), bellwether_api::value::json(&value))).collect()
}

/// The params, with the defaults of the task for those that no level has.
fn with_defaults(spec: &TaskSpec, mut params: Params) -> Params {
    for (key, schema) in &spec.params {
        if let (false, Some(default)) = (params.contains_key(key), schema.get("default")) {
            params.insert(key.clone(), default.clone());
        }
    }
    params
}

/// Refuses a node without a param that the task needs, or with one that does not fit.
fn has_needed(task: &RunTask, spec: &TaskSpec, params: &Params, node: &NodeName) -> Result<(), OpError> {
    let Some((key, reason)) = lacking(spec, params)? else { return Ok(()) };
    let reason = format!("run task {} on node {node}: param {key} {reason}", task.task);
    let hint = format!("see: bellwether param explain {node} {key}");
    Err(OpError::Refused { reason, hint: Some(hint) })
}

/// The first param that a task needs and the node lacks, or has another value of than fits, and what is wrong with it.
fn lacking<'a>(spec: &'a TaskSpec, params: &Params) -> Result<Option<(&'a str, String)>, OpError> {
    for (key, schema) in &spec.params {
        let Some(value) = params.get(key) else {
            return Ok(Some((key, "has no value on any level".to_owned())));
        };
        // Only the node has the value of a secret.
        if SecretMark::of(value).is_some() {
            continue;
        }
        let schema = ParamSchema::read(&serde_json::Value::Object(schema.clone()).to_string())?;
        if let Err(reason) = schema.check(value) {
            return Ok(Some((key, format!("does not fit: {reason}"))));
        }
    }
    Ok(None)
}

/// The param for want of which a node does not begin the task of this index of a run, as its params are now; `None` if it is another
/// reason.
#[must_use]
pub fn lacking_param(fleet: &Fleet, node: &NodeName, name: &EntityName, index: u64) -> Option<String> {
    let run = &fleet.runs.get(name)?.value;
    let tasks = fleet.tasks_of(run, node);
    let task = tasks.get(usize::try_from(index).ok()?)?;
    let spec = spec(fleet, (run, node), task).ok()?;
    let params = with_defaults(&spec, resolved(fleet, node, &task.profiles).ok()?);
    lacking(&spec, &params).ok()?.map(|(key, _)| key.to_owned())
}
