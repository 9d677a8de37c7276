//! Undoing a run on request: it is closed, and aborted if it is in progress; then what undoes it is started where it began.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::shape::reason;
use bellwether_api::v1::rollout::RolloutState;
use bellwether_api::v1::run::{Run as Shape, UndoRun};
use bellwether_core::decide::runs::undo::{Undo, undo as undone};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::{EntityKind, TargetSource};
use bellwether_core::records::key::Record;
use bellwether_core::records::policy::Policy;
use bellwether_core::records::progress::Progress;
use bellwether_core::records::run::{Run, UndoState};
use bellwether_core::rollout::operations;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName};
use bellwether_core::words::plural::plural;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::begin::started;
use super::switch::switched;
use super::view::state_of;
use crate::ops::run_policy::may_roll_back;
use crate::ops::{OpError, cause, entity, event};
use crate::transactor::Transactor;

/// Most newer runs that a warning names.
const NAMED: usize = 3;

/// Undoes a run: answers the run that does it. With `dry_run` nothing is started, and nothing ended.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when nothing undoes it, when it is undone already,
/// when no node began it, and when other runs are in progress on its nodes.
pub async fn undo(
    transactor: &Transactor,
    (namespace, actor): (&Namespace, &Actor),
    name: &EntityName,
    request: &UndoRun,
) -> Result<Shape, OpError> {
    if !request.dry_run {
        // Refused before anything is ended, if it would be refused after that.
        transactor
            .change(namespace, actor, |_, fleet, now| {
                begun(fleet, (name, actor), request, now)?;
                Ok::<_, OpError>((ended(fleet, (name, actor), request, now)?, ()))
            })
            .await?;
    }
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let (changeset, shape) = begun(fleet, (name, actor), request, now)?;
            Ok(((!request.dry_run).then_some(changeset), shape))
        })
        .await
}

/// What closes a run, aborts it, and ends others in whose place it is undone; `None` if nothing of that is left to do.
fn ended(
    fleet: &Fleet,
    (name, actor): (&EntityName, &Actor),
    request: &UndoRun,
    now: Timestamp,
) -> Result<Option<Changeset>, OpError> {
    let run = known(fleet, name)?;
    let mut changeset = Changeset::default();
    if run.undo.is_none() {
        let closed = Run { undo: Some(UndoState::Closed), ..run.clone() };
        changeset.writes.push(Write::put(Record::Run(closed)));
    }
    if fleet.is_run_in_progress(name)
        && let Some(entity) = fleet.entities.get(name)
    {
        let none = Progress::default();
        let progress = fleet.progresses.get(name).map_or(&none, |kept| &*kept.value);
        let annotation = Annotation { by: actor.clone(), reason: why(request, name)?, at: now };
        // With the abort: none of those that wait behind it begins in its place.
        let switch = undone(fleet, run, annotation.clone())
            .map(|undo| switched(fleet, (&undo.run, &undo.nodes), request.busy, &annotation));
        let switch = switch.transpose()?.unwrap_or_default();
        changeset.writes.push(Write::put(Record::Entity(operations::abort(
            &entity.value,
            progress,
            annotation,
        )?)));
        changeset.writes.extend(switch.writes);
        changeset.events.extend(switch.events);
        let cause = cause(&request.reason);
        changeset.events.push(event("run.undo_requested", format!("entity/{name}"), cause));
    }
    Ok((!changeset.writes.is_empty()).then_some(changeset))
}

/// What starts the run that undoes a run, and what to tell of it.
fn begun(
    fleet: &Fleet,
    (name, actor): (&EntityName, &Actor),
    request: &UndoRun,
    now: Timestamp,
) -> Result<(Changeset, Shape), OpError> {
    let run = known(fleet, name)?;
    let annotation = Annotation { by: actor.clone(), reason: why(request, name)?, at: now };
    let undo = undone(fleet, run, annotation);
    let Undo { run: new, nodes, undone: old } = undo.ok_or_else(|| {
        let workflow = &run.workflow;
        let reason = format!("undo run {name}: workflow {workflow} named no other one that undoes it");
        let hint = "start what undoes it with: bellwether workflow run WORKFLOW -l FILTER".to_owned();
        OpError::Refused { reason, hint: Some(hint) }
    })?;
    if nodes.is_empty() {
        let reason = match run.undo {
            Some(UndoState::By(_)) => format!("undo run {name}: it is undone on every node that is left"),
            Some(UndoState::Closed | UndoState::Nothing) | None => match begun_by_others(fleet, name) {
                0 => format!("undo run {name}: no node began a task of it"),
                gone => format!(
                    "undo run {name}: {} began a task of it, and {} not part of the run any more",
                    plural(gone, "node"),
                    if gone == 1 { "is" } else { "are" },
                ),
            },
        };
        let abort = || format!("abort it with: bellwether rollout abort {name}");
        return Err(OpError::Refused { reason, hint: fleet.is_run_in_progress(name).then(abort) });
    }
    let policy = policy(fleet, &new, request)?;
    let (mut changeset, shape) = started(fleet, (&new, &nodes), policy, request.busy)?;
    changeset.writes.push(Write::put(Record::Run(old)));
    let warnings = [since(fleet, run, &nodes), shape.warning];
    let warnings: Vec<String> = warnings.into_iter().flatten().collect();
    let warning = (!warnings.is_empty()).then(|| format!("warning: {}", warnings.join("; ")));
    Ok((changeset, Shape { warning, ..shape }))
}

/// The newer runs of which a task was begun on these nodes: what undoes an older one does not look at what they did.
fn since(fleet: &Fleet, run: &Run, nodes: &BTreeSet<NodeName>) -> Option<String> {
    let is_newer =
        |other: &&Run| other.annotation.at > run.annotation.at && other.undoes.as_ref() != Some(&run.name);
    let has_begun = |other: &&Run| {
        let jobs = |node: &NodeName| fleet.jobs.get(&(other.name.clone(), node.clone()));
        nodes.iter().any(|node| jobs(node).is_some_and(|kept| !kept.value.jobs.is_empty()))
    };
    let newer = fleet.runs.values().map(|kept| &*kept.value).filter(is_newer).filter(has_begun);
    let mut newer: Vec<&Run> = newer.collect();
    newer.sort_by_key(|run| std::cmp::Reverse(run.annotation.at));
    let named: Vec<&str> = newer.iter().take(NAMED).map(|run| run.name.as_str()).collect();
    let more = match newer.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let on = if nodes.len() == 1 { "its node" } else { "its nodes" };
    (!named.is_empty())
        .then(|| format!("newer runs ran on {on}: {}{more}; what they did stays as it is", named.join(", ")))
}

/// The policy that was asked for; as many nodes at once as that of the run has for rollbacks, if nothing else is said.
fn policy(fleet: &Fleet, new: &Run, request: &UndoRun) -> Result<Policy, OpError> {
    let mut asked = request.policy.clone();
    let of_undone = new.undoes.as_ref().and_then(|name| fleet.entities.get(name));
    asked.batch = asked.batch.or_else(|| of_undone.map(|kept| kept.value.policy.rollback.to_string()));
    let kind = EntityKind::Workflow(new.workflow.clone());
    let policy = entity::policy(&kind, &TargetSource::Listed(Arc::default()), &asked)?;
    may_roll_back(new, &policy)?;
    Ok(policy)
}

fn why(request: &UndoRun, name: &EntityName) -> Result<String, OpError> {
    let given = reason(&request.reason)?;
    Ok(if given.is_empty() { format!("undo run {name}") } else { given })
}

/// A run that is not undone.
fn known<'a>(fleet: &'a Fleet, name: &EntityName) -> Result<&'a Run, OpError> {
    let run = fleet.runs.get(name).ok_or_else(|| OpError::NotFound(format!("run {name}")))?;
    match &run.value.undo {
        None | Some(UndoState::Closed) => Ok(&run.value),
        Some(UndoState::Nothing) => {
            let reason = format!("undo run {name}: no node had begun a task of it");
            Err(OpError::Refused { reason, hint: None })
        }
        Some(UndoState::By(by)) => match fleet.runs.get(by).map(|kept| state_of(fleet, &kept.value)) {
            // The rest of it is done by another.
            Some(state) if is_incomplete(state) => Ok(&run.value),
            Some(_) => {
                let reason = format!("undo run {name}: run {by} undoes it already");
                let hint = Some(format!("see: bellwether run get {by}"));
                Err(OpError::Refused { reason, hint })
            }
            // Nobody knows where it was done.
            None => {
                let plan = run.value.rollback.as_ref();
                let workflow = plan.map_or("WORKFLOW", |plan| plan.workflow.as_str());
                let reason =
                    format!("undo run {name}: run {by} undid it, and was deleted with what it did where");
                let hint =
                    format!("undo it by hand where it was not: bellwether workflow run {workflow} -l FILTER");
                Err(OpError::Refused { reason, hint: Some(hint) })
            }
        },
    }
}

/// Whether a run ended without success on each node.
const fn is_incomplete(state: RolloutState) -> bool {
    match state {
        RolloutState::Aborted | RolloutState::Failed | RolloutState::PartiallySucceeded => true,
        RolloutState::InProgress
        | RolloutState::Waiting
        | RolloutState::Paused
        | RolloutState::RollingBack
        | RolloutState::Succeeded
        | RolloutState::RolledBack
        | RolloutState::RollbackFailed
        | RolloutState::Superseded => false,
    }
}

/// Number of nodes that began a task of a run, all of which have left it.
fn begun_by_others(fleet: &Fleet, run: &EntityName) -> usize {
    fleet.jobs_of(run).filter(|kept| !kept.value.jobs.is_empty()).count()
}
