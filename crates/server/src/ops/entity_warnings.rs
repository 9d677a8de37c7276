//! Warnings about an entity that is valid and may not be meant: secrets that machines choose themselves, labels that no node has.

use bellwether_core::records::entity::{Entity, EntityKind, TargetSource};
use bellwether_core::words::label::Labels;
use bellwether_core::words::node_data::NodeData;
use bellwether_core::words::selector::Selector;
use bellwether_core::world::fleet::Fleet;

/// What to know of an entity; `None` if there is nothing.
pub(crate) fn warning(fleet: &Fleet, entity: &Entity) -> Option<String> {
    let selector = match &entity.source {
        TargetSource::Nodes(selector) => selector,
        TargetSource::Listed(_) | TargetSource::External(_) => return None,
    };
    let found: Vec<String> =
        fact_secrets(fleet, entity, selector).into_iter().chain(unknown_field(fleet, selector)).collect();
    (!found.is_empty()).then(|| format!("warning: {}", found.join("; ")))
}

/// A selector that tests facts, of an entity whose profile has secrets.
fn fact_secrets(fleet: &Fleet, entity: &Entity, selector: &Selector) -> Option<String> {
    let profile = match &entity.kind {
        EntityKind::Profile(profile) => profile,
        EntityKind::Version | EntityKind::Action(_) | EntityKind::Workflow(_) => return None,
    };
    let newest = fleet.profiles.get(profile)?.value.newest;
    let revision = fleet.profile_revisions.get(&(profile.clone(), newest))?;
    (selector.tests_facts() && !revision.value.secrets.is_empty()).then(|| {
        format!(
            "the selector tests facts, which a machine reports of itself, and profile {profile} has secrets: any node can \
             get them; select by labels"
        )
    })
}

/// A label or fact in a selector that no node has: it may be mistyped, or come with nodes that join later.
fn unknown_field(fleet: &Fleet, selector: &Selector) -> Option<String> {
    let field = selector.unknown_field(|| active(fleet))?;
    Some(format!("the selector tests {field}, which no node has; see: bellwether node list -o wide"))
}

/// The labels and facts of the nodes that are not decommissioned.
pub(super) fn active(fleet: &Fleet) -> impl Iterator<Item = (&Labels, &NodeData)> {
    let nodes = fleet.nodes.values().filter(|node| node.value.decommissioned.is_none());
    nodes.map(|node| (&node.value.labels, fleet.data_of(&node.value.name)))
}
