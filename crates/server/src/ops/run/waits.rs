//! What keeps nodes from beginning a run that is started now, for whoever starts it.

use std::collections::BTreeSet;

use bellwether_core::records::node::PresenceState;
use bellwether_core::records::run::Run;
use bellwether_core::words::feature::Feature;
use bellwether_core::words::name::NodeName;
use bellwether_core::words::plural::plural;
use bellwether_core::world::fleet::Fleet;

/// How many of the nodes do not begin the run now, and why one of them does not; `None` if all may.
pub(super) fn warning(fleet: &Fleet, run: &Run, nodes: &BTreeSet<NodeName>) -> Option<String> {
    let mut kept = nodes.iter().filter_map(|node| Some((node, reason(fleet, run, node)?)));
    let (node, reason) = kept.next()?;
    let what = match 1 + kept.count() {
        1 => format!("node {node} does not begin it now"),
        all => format!("{} of {} do not begin it now, such as {node}", all, plural(nodes.len(), "node")),
    };
    Some(format!("{what}: {reason}"))
}

fn reason(fleet: &Fleet, run: &Run, node: &NodeName) -> Option<String> {
    let mark = fleet.not_runnable.get(node).map(|kept| &*kept.value);
    if let Some(mark) = mark.filter(|mark| mark.run.is_none() || mark.run != run.undoes) {
        return Some(mark.line());
    }
    let presence = fleet.presences.get(node).map_or(PresenceState::Never, |kept| kept.value.contact);
    match presence {
        PresenceState::Unreachable => return Some("it is unreachable".to_owned()),
        PresenceState::Never => return Some("it was never in contact".to_owned()),
        PresenceState::Up | PresenceState::Suspect => {}
    }
    let allows = fleet.reports.get(node)?.value.features.has(Feature::Workflows);
    (!allows).then(|| "its agent does not allow tasks".to_owned())
}
