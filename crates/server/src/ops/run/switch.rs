//! Nodes on which another run is in progress: a new run is refused, follows it, or takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::v1::run::BusyNodes;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::{Entity, TargetSource};
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::Record;
use bellwether_core::records::progress::Progress;
use bellwether_core::records::run::Run;
use bellwether_core::rollout::operations;
use bellwether_core::verdict::Write;
use bellwether_core::words::name::{EntityName, NodeName};
use bellwether_core::world::fleet::Fleet;

use crate::ops::{OpError, event};

/// Most runs that one switch takes nodes from: each is a record of the same transaction.
const MAX_RUNS: usize = 32;

/// Most nodes that an event names.
const NAMED: usize = 16;

/// What is written to take the nodes of a new run from the runs that are in progress on them.
#[derive(Default)]
pub(super) struct Switch {
    pub(super) writes: Vec<Write>,
    pub(super) events: Vec<EventDraft>,
}

/// Takes the nodes of a new run from those in progress there, if they are to switch. A run that has no other node is aborted.
///
/// # Errors
/// [`OpError::Refused`] when nothing is said of them, or too many runs are in progress.
pub(super) fn switched(
    fleet: &Fleet,
    (new, nodes): (&Run, &BTreeSet<NodeName>),
    busy_nodes: Option<BusyNodes>,
    annotation: &Annotation,
) -> Result<Switch, OpError> {
    let mut busy: BTreeMap<&EntityName, BTreeSet<&NodeName>> = BTreeMap::new();
    for node in nodes {
        // The run that it undoes is ended in any case.
        for run in fleet.runs_in_progress(node).filter(|run| Some(*run) != new.undoes.as_ref()) {
            busy.entry(run).or_default().insert(node);
        }
    }
    let Some((run, on)) = busy.first_key_value() else { return Ok(Switch::default()) };
    let refused = |reason: String, hint: String| OpError::Refused {
        reason: format!("run workflow {}: {reason}", new.workflow),
        hint: Some(hint),
    };
    match busy_nodes {
        Some(BusyNodes::Queue) => return Ok(Switch::default()),
        Some(BusyNodes::Switch) => {}
        None => {
            let all: BTreeSet<&&NodeName> = busy.values().flatten().collect();
            let node = on.first().map(ToString::to_string).unwrap_or_default();
            let reason = match all.len() {
                1 => format!("run {run} is in progress on node {node}"),
                all => format!("runs are in progress on {all} of its nodes, such as {run} on node {node}"),
            };
            let hint = "run it after those runs: --queue; or in their place, which ends their jobs: --force";
            return Err(refused(reason, hint.to_owned()));
        }
    }
    if busy.len() > MAX_RUNS {
        let reason =
            format!("{} runs are in progress on its nodes; at most {MAX_RUNS} are left at once", busy.len());
        return Err(refused(reason, "abort some: bellwether rollout abort RUN".to_owned()));
    }
    let mut switch = Switch::default();
    for (run, leaving) in busy {
        let Some(entity) = fleet.entities.get(run).map(|kept| &*kept.value) else { continue };
        let (write, event) =
            left(fleet, (entity, &leaving), annotation, format!("switched to run {}", new.name))?;
        switch.writes.push(write);
        switch.events.push(event);
    }
    Ok(switch)
}

/// What is written when these nodes leave a run in progress. It is aborted if it has no other one.
///
/// # Errors
/// [`OpError::Refused`] when it is not in progress.
pub(in crate::ops) fn left(
    fleet: &Fleet,
    (entity, leaving): (&Entity, &BTreeSet<&NodeName>),
    annotation: &Annotation,
    cause: String,
) -> Result<(Write, EventDraft), OpError> {
    let mut event = event("run.nodes_left", format!("entity/{}", entity.name), cause);
    event.after = Some(named(leaving));
    Ok((Write::put(Record::Entity(without(fleet, entity, leaving, annotation)?)), event))
}

/// The names of these nodes, or of the first of them and how many others there are.
fn named(nodes: &BTreeSet<&NodeName>) -> String {
    let mut names: Vec<String> = nodes.iter().take(NAMED).map(ToString::to_string).collect();
    if let Some(others) = nodes.len().checked_sub(NAMED).filter(|others| *others > 0) {
        names.push(format!("and {others} more"));
    }
    names.join(", ")
}

/// The entity of a run without these nodes; aborted if it has no other one.
fn without(
    fleet: &Fleet,
    entity: &Entity,
    leaving: &BTreeSet<&NodeName>,
    annotation: &Annotation,
) -> Result<Entity, OpError> {
    let TargetSource::Listed(listed) = &entity.source else { return Ok(entity.clone()) };
    let rest: BTreeSet<NodeName> = listed.iter().filter(|node| !leaving.contains(node)).cloned().collect();
    if rest.is_empty() {
        let none = Progress::default();
        let progress = fleet.progresses.get(&entity.name).map_or(&none, |kept| &*kept.value);
        return Ok(operations::abort(entity, progress, annotation.clone())?);
    }
    let mut retries = entity.retries.clone();
    retries.retain(|target, _| rest.iter().any(|node| target.as_str() == node.as_str()));
    Ok(Entity { source: TargetSource::Listed(Arc::new(rest)), retries, ..entity.clone() })
}
