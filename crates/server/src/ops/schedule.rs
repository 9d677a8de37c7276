//! Schedules of workflows: setting and deleting them, and what happens when one is due.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::run::{BusyNodes, NewRun};
use bellwether_api::v1::schedule::{DesiredSchedule, ScheduleSpec};
use bellwether_api::v1::workflow::WorkflowSpec;
use bellwether_core::access::{Claim, Rights};
use bellwether_core::decide::schedules::{Turn, turn};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::records::entity::{EntityKind, TargetSource};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::policy::{OnFailure, Policy};
use bellwether_core::records::schedule::{DueResult, MAX_OUTCOME_BYTES, MAX_SCHEDULES, Schedule};
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::ScheduleRevision;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName, ScheduleName, WorkflowName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::at_revision::at_revision;
use super::definition::content_of;
use super::{OpError, cause, entity, event, grant, run};
use crate::transactor::Transactor;

/// A schedule, for a change.
#[derive(Debug, Clone, Copy)]
pub struct ScheduleScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// The schedule.
    pub name: &'a ScheduleName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// The revision that it must have, 0 if it must not exist; `None` for any.
    pub only_at: Option<u64>,
}

/// Refuses a schedule or a reaction whose author could not start its runs: it starts them on whatever node matches when it is due.
///
/// # Errors
/// [`OpError::Ungrantable`] with the claim; [`OpError::Invalid`].
pub fn grantable(rights: &Rights, namespace: &Namespace, workflow: &str, what: &str) -> Result<(), OpError> {
    let claims = [format!("update run/{workflow} in {namespace}"), format!("get node in {namespace}")];
    let claims = claims.iter().map(|claim| Claim::parse(claim));
    let claims: Result<Vec<Claim>, _> = claims.collect();
    let claims = claims.map_err(|error| ShapeError::at("workflow", error))?;
    grant::grantable(rights, &claims, what)
}

/// Creates a schedule, or changes one; answers it, and whether it is new. The same again changes nothing.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Moved`] when it is not at the revision that was named; [`OpError::Refused`]
/// when there are too many.
pub async fn set(
    transactor: &Transactor,
    scope: ScheduleScope<'_>,
    spec: &ScheduleSpec,
) -> Result<(Schedule, bool), OpError> {
    let ScheduleScope { namespace, name, actor, only_at } = scope;
    let desired = spec.desired()?;
    let kind = EntityKind::Workflow(desired.workflow.clone());
    let nodes = TargetSource::Listed(Arc::new(BTreeSet::new()));
    let policy = entity::policy(&kind, &nodes, &spec.policy)?;
    transactor
        .compare(namespace, actor, &Key::Schedule(name.clone()).into(), |_, fleet, now| {
            let before = fleet.schedules.get(name).map(|kept| &*kept.value);
            let at = before.map(|before| (before.revision.get(), &before.annotation.by));
            at_revision("schedule", name.as_str(), at, only_at)?;
            if before.is_none() && fleet.schedules.size() >= MAX_SCHEDULES {
                let reason =
                    format!("create schedule {name}: the namespace has {MAX_SCHEDULES}, which is the most");
                let hint = Some("delete those that nobody needs: bellwether schedule list".to_owned());
                return Err(OpError::Refused { reason, hint });
            }
            if let Some(same) = before.filter(|before| is(before, &desired, &policy)) {
                return Ok((None, (same.clone(), false)));
            }
            let annotation = Annotation { by: actor.clone(), reason: desired.reason.clone(), at: now };
            let after = written(name, before, (&desired, &policy), annotation).planned(now);
            let after = Schedule { revision: after.revision.next_in(fleet.epoch), ..after };
            let what = if before.is_none() { "schedule.created" } else { "schedule.changed" };
            let mut said = event(what, format!("schedule/{name}"), cause(&desired.reason));
            said.before = before.map(describe);
            said.after = Some(describe(&after));
            if said.before == said.after {
                said.cause = format!("another policy: {}", said.cause);
            }
            let writes = vec![Write::put(Record::Schedule(after.clone()))];
            Ok((Some(Changeset { writes, events: vec![said] }), (after, before.is_none())))
        })
        .await
}

/// What a workflow, or the policy of its runs, lacks now, so that no run would start; `None` if nothing.
#[must_use]
pub fn lacks(fleet: &Fleet, workflow: &WorkflowName, policy: &Policy) -> Option<String> {
    let workflow = DefinitionId::Workflow(workflow.clone());
    let spec: Result<Option<WorkflowSpec>, ShapeError> = content_of(fleet, &workflow);
    match spec.ok()? {
        None => Some(format!("no run starts until there is {workflow}")),
        Some(spec) if spec.rollback.is_none() && policy.on_failure == OnFailure::Rollback => {
            Some(format!("no run starts: {workflow} names no other one that undoes it"))
        }
        Some(_) => None,
    }
}

/// Deletes a schedule. Its runs go on.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Moved`] when it is not at the revision that was named.
pub async fn delete(transactor: &Transactor, scope: ScheduleScope<'_>) -> Result<(), OpError> {
    let ScheduleScope { namespace, name, actor, only_at } = scope;
    transactor
        .compare(namespace, actor, &Key::Schedule(name.clone()).into(), |_, fleet, _| {
            let before = fleet.schedules.get(name).map(|kept| &*kept.value);
            let at = before.map(|before| (before.revision.get(), &before.annotation.by));
            at_revision("schedule", name.as_str(), at, only_at)?;
            let before = before.ok_or_else(|| OpError::NotFound(format!("schedule {name}")))?;
            let mut deleted = event("schedule.deleted", format!("schedule/{name}"), "its runs go on");
            deleted.before = Some(describe(before));
            let writes = vec![Write::delete(Key::Schedule(name.clone()))];
            Ok((Some(Changeset { writes, events: vec![deleted] }), ()))
        })
        .await
}

/// Has a schedule do what is due: start a run on the nodes that its filter matches, or pass a due time over. The run and the next due
/// time are written together, so that no due time gets two.
///
/// # Errors
/// [`OpError::Commit`]. A run that cannot be started is no error: the schedule says why.
pub async fn take_turn(
    transactor: &Transactor,
    namespace: &Namespace,
    name: &ScheduleName,
    matching: impl Fn(&Fleet, &str, Timestamp) -> Result<BTreeSet<NodeName>, ShapeError>,
) -> Result<(), OpError> {
    let actor: Actor = bellwether_api::shape::read("schedule", &format!("schedule/{name}"))?;
    transactor
        .change(namespace, &actor, |_, fleet, now| {
            let Some(kept) = fleet.schedules.get(name) else { return Ok((None, ())) };
            let schedule = &*kept.value;
            let guarded = match turn(schedule, fleet, now) {
                Turn::Wait => None,
                Turn::Plan(after) => Some(
                    Changeset { writes: vec![Write::put(Record::Schedule(after))], events: vec![] }.into(),
                ),
                Turn::Skip(after) => Some(told("schedule.skipped", after)),
                Turn::Start(due) => {
                    let nodes = matching(fleet, &schedule.filter, now).map_err(OpError::from);
                    let begun = nodes.and_then(|nodes| begun(fleet, now, &actor, (schedule, due), &nodes));
                    Some(begun.unwrap_or_else(|error| {
                        let text = shortened(error.to_string());
                        told("schedule.failed", schedule.clone().after(due, DueResult::Failed, text, now))
                    }))
                }
            };
            Ok((guarded, ()))
        })
        .await
}

/// What starts the run of a due time.
fn begun(
    fleet: &Fleet,
    now: Timestamp,
    actor: &Actor,
    (schedule, due): (&Schedule, Timestamp),
    nodes: &BTreeSet<NodeName>,
) -> Result<GuardedChangeset, OpError> {
    let request = NewRun {
        workflow: schedule.workflow.to_string(),
        on: schedule.filter.clone(),
        policy: (&schedule.policy).into(),
        reason: format!("schedule {}", schedule.name),
        // Nobody is there to be asked: nodes begin it after what they do.
        busy: Some(BusyNodes::Queue),
        ..NewRun::default()
    };
    let (mut guarded, run) = run::begun(fleet, now, actor, &request, nodes)?;
    let run: EntityName = bellwether_api::shape::read("run", &run.name)?;
    let after = schedule.clone().after(due, DueResult::Started, run.to_string(), now);
    let after = Schedule { last_run: Some(run), ..after };
    guarded.changeset.writes.push(Write::put(Record::Schedule(after)));
    Ok(guarded)
}

/// A schedule that passed a due time over, and the event of it.
fn told(what: &'static str, after: Schedule) -> GuardedChangeset {
    let text = after.last.as_ref().map(|last| last.text.clone()).unwrap_or_default();
    let said = event(what, format!("schedule/{}", after.name), text);
    Changeset { writes: vec![Write::put(Record::Schedule(after))], events: vec![said] }.into()
}

fn shortened(text: String) -> String {
    match text.len() > MAX_OUTCOME_BYTES {
        true => text.chars().take(MAX_OUTCOME_BYTES / 4).chain(['…']).collect(),
        false => text,
    }
}

fn is(before: &Schedule, desired: &DesiredSchedule, policy: &Policy) -> bool {
    let same = written(&before.name, Some(before), (desired, policy), before.annotation.clone());
    Schedule { revision: before.revision, ..same } == *before
}

/// The schedule with what it is to be, at its present revision.
fn written(
    name: &ScheduleName,
    before: Option<&Schedule>,
    (desired, policy): (&DesiredSchedule, &Policy),
    annotation: Annotation,
) -> Schedule {
    let DesiredSchedule { workflow, filter, cron, zone, starting_deadline, concurrency, suspended, .. } =
        desired.clone();
    Schedule {
        name: name.clone(),
        revision: before.map_or(ScheduleRevision::ZERO, |before| before.revision),
        workflow,
        filter,
        cron,
        zone,
        starting_deadline,
        concurrency,
        suspended,
        policy: policy.clone(),
        labels: before.map_or_else(Labels::default, |before| before.labels.clone()),
        planned_at: before.map_or(annotation.at, |before| before.planned_at),
        annotation,
        next: before.and_then(|before| before.next),
        last_run: before.and_then(|before| before.last_run.clone()),
        last: before.and_then(|before| before.last.clone()),
    }
}

fn describe(schedule: &Schedule) -> String {
    let Schedule { workflow, filter, cron, zone, starting_deadline, concurrency, .. } = schedule;
    let suspended = if schedule.suspended { ", suspended" } else { "" };
    format!(
        "workflow {workflow} on {filter}, {cron} {zone}, within {starting_deadline}, concurrency {concurrency}{suspended}"
    )
}
