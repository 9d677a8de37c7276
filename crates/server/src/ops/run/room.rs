//! Room for another run on its nodes: a node keeps its newest runs, and the oldest of those that ended are forgotten for new ones.

use std::collections::BTreeSet;

use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::Key;
use bellwether_core::records::report::MAX_ENTITIES;
use bellwether_core::verdict::Write;
use bellwether_core::words::name::{EntityName, NodeName, WorkflowName};
use bellwether_core::words::plural::plural;
use bellwether_core::world::fleet::Fleet;

use crate::ops::{OpError, event};

/// Runs that a node keeps, ended ones among them: enough to see what went wrong, few enough for a report that names each.
const KEPT: usize = 200;

/// Most entities and runs of a node: its report names each, and entities may match it later.
const MOST: usize = MAX_ENTITIES - 64;

/// Most runs that are forgotten for a new one, in its transaction. One that needs more leaves some for the next.
const AT_ONCE: usize = 16;

/// What is written so that these nodes can have another run.
///
/// # Errors
/// [`OpError::Refused`] when a node has too many that have not ended.
pub(super) fn made(
    fleet: &Fleet,
    workflow: &WorkflowName,
    nodes: &BTreeSet<NodeName>,
) -> Result<(Vec<Write>, Vec<EventDraft>), OpError> {
    let mut forgotten = BTreeSet::new();
    for node in nodes {
        let held = fleet.entities_of_node.get(node).count();
        if held < KEPT {
            continue;
        }
        oldest(fleet, node, &mut forgotten);
        if held >= MOST {
            let reason = format!(
                "run workflow {workflow}: node {node} has {}, and no more than {MOST} of both fit",
                plural(held, "entity or run")
            );
            let hint = format!("see and abort those that wait: bellwether run list --node {node}");
            return Err(OpError::Refused { reason, hint: Some(hint) });
        }
    }
    let told = |run: &EntityName| {
        let cause = format!("it ended, and a node has {KEPT} runs that are newer or in progress");
        event("run.forgotten", format!("entity/{run}"), cause)
    };
    let events = forgotten.iter().map(|run| told(run)).collect();
    let keys = forgotten.into_iter().flat_map(|run| [Key::Run(run.clone()), Key::Entity(run.clone())]);
    Ok((keys.map(Write::delete).collect(), events))
}

/// Adds the oldest runs of a node that ended, as many as it has too many.
fn oldest<'a>(fleet: &'a Fleet, node: &NodeName, forgotten: &mut BTreeSet<&'a EntityName>) {
    let runs = fleet.entities_of_node.get(node).filter_map(|name| fleet.runs.get(name));
    let mut runs: Vec<_> = runs.map(|kept| (kept.value.annotation.at, &kept.value.name)).collect();
    let gone = runs.iter().filter(|(_, name)| forgotten.contains(name)).count();
    let over = (runs.len() + 1).saturating_sub(KEPT + gone);
    runs.retain(|(_, name)| !fleet.is_run_in_progress(name) && !forgotten.contains(name));
    runs.sort_unstable();
    let room = AT_ONCE.saturating_sub(forgotten.len());
    forgotten.extend(runs.into_iter().map(|(_, name)| name).take(over.min(room)));
}
