//! Reactions to conditions: setting and deleting them, and what happens when one is due.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::reaction::{DesiredReaction, ReactionSpec};
use bellwether_api::v1::run::{BusyNodes, NewRun, Run as RunShape};
use bellwether_core::decide::reactions::{DueCondition, Turn, explain_limit, fired, started, turn};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::{EntityKind, TargetSource};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::policy::Policy;
use bellwether_core::records::reaction::{
    ConditionSubject, FiringResult, MAX_OUTCOME_BYTES, MAX_REACTIONS, Reaction, ReactionFiring, ReactionNodes,
};
use bellwether_core::rollout::environment::Watch;
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::ReactionRevision;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, Namespace, NodeName, ReactionName};
use bellwether_core::words::selector::unknown_field;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::conditions;
use bellwether_core::world::fleet::Fleet;

use super::at_revision::at_revision;
use super::{OpError, cause, entity, entity_warnings, event, run, schedule};
use crate::transactor::Transactor;

/// A reaction, for a change.
#[derive(Debug, Clone, Copy)]
pub struct ReactionScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// The reaction.
    pub name: &'a ReactionName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// The revision that it must have, 0 if it must not exist; `None` for any.
    pub only_at: Option<u64>,
}

/// The nodes that a filter matches at a time.
pub type MatchingNodes = fn(&Fleet, &str, Timestamp) -> Result<BTreeSet<NodeName>, ShapeError>;

/// Creates a reaction, or changes one; answers it, and whether it is new. The same again changes nothing.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Moved`] when it is not at the revision that was named; [`OpError::Refused`]
/// when there are too many.
pub async fn set(
    transactor: &Transactor,
    scope: ReactionScope<'_>,
    spec: &ReactionSpec,
) -> Result<(Reaction, bool), OpError> {
    let ReactionScope { namespace, name, actor, only_at } = scope;
    let desired = spec.desired()?;
    let kind = EntityKind::Workflow(desired.workflow.clone());
    let nodes = TargetSource::Listed(Arc::new(BTreeSet::new()));
    let policy = entity::policy(&kind, &nodes, &spec.policy)?;
    transactor
        .compare(namespace, actor, &Key::Reaction(name.clone()).into(), |_, fleet, now| {
            let before = fleet.reactions.get(name).map(|kept| &*kept.value);
            let at = before.map(|before| (before.revision.get(), &before.annotation.by));
            at_revision("reaction", name.as_str(), at, only_at)?;
            if before.is_none() && fleet.reactions.size() >= MAX_REACTIONS {
                let reason =
                    format!("create reaction {name}: the namespace has {MAX_REACTIONS}, which is the most");
                let hint = Some("delete those that nobody needs: bellwether reaction list".to_owned());
                return Err(OpError::Refused { reason, hint });
            }
            let annotation = Annotation { by: actor.clone(), reason: desired.reason.clone(), at: now };
            let after = written(name, before, (&desired, &policy), annotation);
            if let Some(before) = before.filter(|before| is_same(before, &after)) {
                return Ok((None, (before.clone(), false)));
            }
            let after = Reaction { revision: after.revision.next_in(fleet.epoch), ..after };
            let what = if before.is_none() { "reaction.created" } else { "reaction.changed" };
            let mut said = event(what, format!("reaction/{name}"), cause(&desired.reason));
            said.before = before.map(describe);
            said.after = Some(describe(&after));
            if said.before == said.after {
                said.cause = format!("another policy: {}", said.cause);
            }
            let writes = vec![Write::put(Record::Reaction(after.clone()))];
            Ok((Some(Changeset { writes, events: vec![said] }), (after, before.is_none())))
        })
        .await
}

/// Deletes a reaction. Its runs go on.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Moved`] when it is not at the revision that was named.
pub async fn delete(transactor: &Transactor, scope: ReactionScope<'_>) -> Result<(), OpError> {
    let ReactionScope { namespace, name, actor, only_at } = scope;
    transactor
        .compare(namespace, actor, &Key::Reaction(name.clone()).into(), |_, fleet, _| {
            let before = fleet.reactions.get(name).map(|kept| &*kept.value);
            let at = before.map(|before| (before.revision.get(), &before.annotation.by));
            at_revision("reaction", name.as_str(), at, only_at)?;
            let before = before.ok_or_else(|| OpError::NotFound(format!("reaction {name}")))?;
            let mut deleted = event("reaction.deleted", format!("reaction/{name}"), "its runs go on");
            deleted.before = Some(describe(before));
            let writes = vec![Write::delete(Key::Reaction(name.clone()))];
            Ok((Some(Changeset { writes, events: vec![deleted] }), ()))
        })
        .await
}

/// Has a reaction do what it is to do: start a run for a condition, or note that it may start none. The run and the firing are written
/// together, so that no episode gets two. `watch` says from when what is recorded is believed.
///
/// # Errors
/// [`OpError::Commit`]. A run that cannot be started is no error: the reaction says why.
pub async fn take_turn(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &ReactionName),
    watch: Watch,
    matching: MatchingNodes,
) -> Result<(), OpError> {
    let actor: Actor = bellwether_api::shape::read("reaction", &format!("reaction/{name}"))?;
    transactor
        .change(namespace, &actor, |_, fleet, now| {
            let Some(kept) = fleet.reactions.get(name) else { return Ok((None, ())) };
            let reaction = &*kept.value;
            let guarded = match turn(reaction, fleet, watch, now) {
                Turn::Wait(_) => None,
                Turn::Limit(after) => {
                    let why = explain_limit(&after, now);
                    let said = event("reaction.limited", format!("reaction/{name}"), why);
                    let writes = vec![Write::put(Record::Reaction(*after))];
                    Some(Changeset { writes, events: vec![said] }.into())
                }
                Turn::Fire(due) => {
                    let begun = begun(fleet, now, &actor, (reaction, &due), matching);
                    Some(begun.unwrap_or_else(|error| failed(fleet, now, (reaction, due), error.to_string())))
                }
            };
            Ok((guarded, ()))
        })
        .await
}

/// The nodes and the run that a reaction would start for a condition that were true now; nothing is written.
///
/// # Errors
/// Why it could start none.
pub(crate) fn rehearse(
    fleet: &Fleet,
    now: Timestamp,
    (reaction, (condition, subject)): (&Reaction, (&str, &ConditionSubject)),
    matching: MatchingNodes,
) -> Result<(BTreeSet<NodeName>, RunShape), OpError> {
    let since = now.minus(reaction.hold);
    let due = DueCondition { condition: condition.to_owned(), subject: subject.clone(), since };
    let actor: Actor = bellwether_api::shape::read("reaction", &format!("reaction/{}", reaction.name))?;
    let nodes = nodes(fleet, now, (reaction, &due), matching)?;
    let (_, run) = run::begun(fleet, now, &actor, &request(reaction, &due), &nodes)?;
    Ok((nodes, run))
}

/// What starts the run for a condition.
fn begun(
    fleet: &Fleet,
    now: Timestamp,
    actor: &Actor,
    (reaction, due): (&Reaction, &DueCondition),
    matching: MatchingNodes,
) -> Result<GuardedChangeset, OpError> {
    let nodes = nodes(fleet, now, (reaction, due), matching)?;
    let (mut guarded, run) = run::begun(fleet, now, actor, &request(reaction, due), &nodes)?;
    let mut said = event("reaction.fired", format!("reaction/{}", reaction.name), why(due, now));
    said.after = Some(format!("run/{}", run.name));
    let firing = firing(due, now, FiringResult::Started, run.name);
    guarded.changeset.writes.push(Write::put(Record::Reaction(fired(reaction, fleet, firing))));
    guarded.changeset.events.insert(0, said);
    Ok(guarded)
}

fn request(reaction: &Reaction, DueCondition { condition, subject, .. }: &DueCondition) -> NewRun {
    NewRun {
        workflow: reaction.workflow.to_string(),
        on: reaction.nodes.to_string(),
        policy: (&reaction.policy).into(),
        reason: format!("reaction {}: {condition} of {subject}", reaction.name),
        // Nobody is there to be asked: nodes begin it after what they do.
        busy: Some(BusyNodes::Queue),
        ..NewRun::default()
    }
}

/// The nodes that run the workflow for a condition.
fn nodes(
    fleet: &Fleet,
    now: Timestamp,
    (reaction, due): (&Reaction, &DueCondition),
    matching: MatchingNodes,
) -> Result<BTreeSet<NodeName>, OpError> {
    let refused = |reason: String| {
        let hint = Some(format!("bellwether reaction set {} --nodes FILTER", reaction.name));
        OpError::Refused { reason, hint }
    };
    let subject = &due.subject;
    let cluster = || {
        let name = fleet.cluster_of_subject(subject);
        let cluster = name.and_then(|name| fleet.clusters.get(name)).map(|kept| &kept.value);
        cluster
            .ok_or_else(|| refused(format!("run workflow {}: {subject} is in no cluster", reaction.workflow)))
    };
    match &reaction.nodes {
        ReactionNodes::Subject => {
            let node = subject.node().cloned();
            let node = node.ok_or_else(|| {
                let what = &reaction.workflow;
                refused(format!(
                    "run workflow {what} on the subject: {subject} is no node, but a whole cluster"
                ))
            })?;
            Ok(BTreeSet::from([node]))
        }
        ReactionNodes::Manager => Ok(BTreeSet::from([cluster()?.manager.clone()])),
        ReactionNodes::Members => Ok(fleet.membership.members(&cluster()?.name).cloned().collect()),
        ReactionNodes::Filter(filter) => Ok(matching(fleet, filter, now)?),
    }
}

/// A firing for which no run could be started.
fn failed(
    fleet: &Fleet,
    now: Timestamp,
    (reaction, due): (&Reaction, DueCondition),
    error: String,
) -> GuardedChangeset {
    let error = shortened(error);
    let said = event(
        "reaction.failed",
        format!("reaction/{}", reaction.name),
        format!("{}: {error}", why(&due, now)),
    );
    let firing = firing(&due, now, FiringResult::Failed, error);
    let writes = vec![Write::put(Record::Reaction(fired(reaction, fleet, firing)))];
    Changeset { writes, events: vec![said] }.into()
}

fn why(due: &DueCondition, now: Timestamp) -> String {
    format!("{} of {} for {}", due.condition, due.subject, now.since(due.since).brief())
}

fn firing(due: &DueCondition, at: Timestamp, result: FiringResult, text: String) -> ReactionFiring {
    let DueCondition { condition, subject, since } = due.clone();
    ReactionFiring { condition, subject, since, at, result, text }
}

fn shortened(text: String) -> String {
    match text.len() > MAX_OUTCOME_BYTES {
        true => text.chars().take(MAX_OUTCOME_BYTES / 4).chain(['…']).collect(),
        false => text,
    }
}

/// The reaction with what it is to be, at its present revision.
fn written(
    name: &ReactionName,
    before: Option<&Reaction>,
    (desired, policy): (&DesiredReaction, &Policy),
    annotation: Annotation,
) -> Reaction {
    let DesiredReaction { on, workflow, nodes, hold, cooldown, max_per_hour, suspended, .. } =
        desired.clone();
    Reaction {
        name: name.clone(),
        revision: before.map_or(ReactionRevision::ZERO, |before| before.revision),
        on,
        workflow,
        nodes,
        hold,
        cooldown,
        max_per_hour,
        suspended,
        policy: policy.clone(),
        labels: before.map_or_else(Labels::default, |before| before.labels.clone()),
        annotation,
        // What could not be started, or not so often, may be another matter now.
        firings: before.map_or_else(Vec::new, |before| started(&before.firings)),
        limited_since: None,
    }
}

/// What to know of a reaction that is valid and may not be meant; `None` if there is nothing.
pub(crate) fn warning(fleet: &Fleet, reaction: &Reaction) -> Option<String> {
    let text = match &reaction.nodes {
        ReactionNodes::Subject => return clusters_warning(&reaction.on),
        ReactionNodes::Manager | ReactionNodes::Members => return None,
        ReactionNodes::Filter(text) => text,
    };
    let filter = Filter::parse(text, &NODES).ok()?;
    let field = unknown_field(&filter, || entity_warnings::active(fleet))?;
    Some(format!(
        "warning: nodes is the filter {text}, which tests {field}, and no node has it; see: bellwether node list -o wide; \
         words that are no filter are subject, manager and members"
    ))
}

/// That some of the conditions that the subject is to react to are of a whole cluster.
fn clusters_warning(on: &Filter) -> Option<String> {
    let of_clusters: Vec<_> = conditions::matching(on).filter(|name| !conditions::has_node(name)).collect();
    (!of_clusters.is_empty()).then(|| {
        format!(
            "warning: on can match {}, of which the subject is a whole cluster and no node: firings for these fail; write \
             node, as in: node and ..., or nodes manager, members or a filter",
            of_clusters.join(", ")
        )
    })
}

/// What a reaction lacks so that no run would start, and what to know of it besides.
pub(super) fn note(fleet: &Fleet, reaction: &Reaction) -> Option<String> {
    let lacks = schedule::lacks(fleet, &reaction.workflow, &reaction.policy);
    let found: Vec<String> = lacks.into_iter().chain(warning(fleet, reaction)).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

fn is_same(before: &Reaction, after: &Reaction) -> bool {
    let Reaction { annotation, limited_since, firings, .. } = before.clone();
    Reaction { annotation, limited_since, firings, ..after.clone() } == *before
}

fn describe(reaction: &Reaction) -> String {
    let Reaction { on, workflow, nodes, hold, cooldown, max_per_hour, .. } = reaction;
    let suspended = if reaction.suspended { ", suspended" } else { "" };
    format!(
        "on {on} for {hold}: workflow {workflow} on {nodes}, cooldown {cooldown}, at most {max_per_hour} per hour{suspended}"
    )
}
