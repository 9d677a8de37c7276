//! The data stores of a cluster as they were after an event.

use std::collections::BTreeMap;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::cluster::past_view::{PastClusterView, PastCondition};
use bellwether_core::access::ObjectKind;
use bellwether_core::records::event::Event;
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::name::{ClusterName, Namespace, NodeName};
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::past_view::PastView;

use super::clusters::missing;
use super::events::read;
use super::input::{JsonAnswer, NamedCluster, NamespacePath, Number};
use super::problem::Failure;
use super::readable::Readable;
use super::state::AppState;

/// Events per read.
const PAGE: usize = 1_000;

/// Most events that are undone: more of them would be read than anybody waits for.
const MAX_EVENTS: u64 = 20_000;

pub(crate) async fn get(
    State(app): State<AppState>,
    readable: Readable,
    (NamespacePath(namespace), NamedCluster(name), Number(number)): (NamespacePath, NamedCluster, Number),
) -> Result<JsonAnswer<PastClusterView>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.clusters.contains_key(&name));
    let fleet = fleet.ok_or_else(|| missing(&name))?;
    let last = fleet.last_event().get();
    let first = fleet.oldest_event.get().saturating_sub(1).max(last.saturating_sub(MAX_EVENTS));
    if !(first..=last).contains(&number) {
        let failure = Failure::new(Code::NotFound, format!("cannot show cluster {name} at event {number}"));
        return Err(failure.hint(format!("it is known at events {first} to {last}: bellwether events")));
    }
    let mut view = PastView::now(fleet, &name);
    for event in since(&app, (&namespace, fleet, &name), (number, last)).await?.iter().rev() {
        view.undo(&name, event);
    }
    let at = number.checked_sub(1).map(Sequence::new);
    let at = match at {
        Some(before) => {
            read(&app, &namespace, before, 1).await?.into_iter().find(|event| event.seq == number)
        }
        None => None,
    };
    let is_seen = |node: &NodeName| readable.has_object(ObjectKind::Node, node.as_str());
    let sees_all = fleet.membership.members(&name).all(is_seen);
    let at_ms = at.map(|event| event.time_ms);
    Ok(JsonAnswer(shape(view, &name, (number, at_ms), (sees_all, &is_seen))))
}

/// The events of the cluster and of its members' stores in a range, the oldest first.
async fn since(
    app: &AppState,
    (namespace, fleet, cluster): (&Namespace, &Fleet, &ClusterName),
    (mut read_to, last): (u64, u64),
) -> Result<Vec<Event>, Failure> {
    let mut found = Vec::new();
    while read_to < last {
        let events = read(app, namespace, Sequence::new(read_to), PAGE).await?;
        let next = read_to + 1;
        let newest = events.last().filter(|_| events.first().is_some_and(|first| first.seq == next));
        // They have no gaps, unless the oldest were deleted meanwhile.
        let deleted =
            || Failure::new(Code::NotFound, format!("cannot find event {next}: it was deleted meanwhile"));
        read_to = newest.ok_or_else(deleted)?.seq;
        let of_it =
            events.into_iter().filter(|event| event.seq <= last && is_about(fleet, cluster, &event.subject));
        for event in of_it {
            found.push(Event::try_from(event)?);
        }
    }
    Ok(found)
}

fn is_about(fleet: &Fleet, cluster: &ClusterName, subject: &str) -> bool {
    match subject.split_once('/') {
        Some(("cluster", name)) => name == cluster.as_str(),
        Some(("store", of)) => {
            let node = of.split_once('/').and_then(|(node, _)| NodeName::parse(node).ok());
            node.is_some_and(|node| fleet.membership.of(&node) == Some(cluster))
        }
        _ => false,
    }
}

fn shape(
    view: PastView,
    name: &ClusterName,
    (event, at_ms): (u64, Option<u64>),
    (sees_all, is_seen): (bool, &dyn Fn(&NodeName) -> bool),
) -> PastClusterView {
    let mut nodes: BTreeMap<String, BTreeMap<_, _>> = BTreeMap::new();
    for ((node, probe), store) in view.stores {
        if is_seen(&node) {
            nodes.entry(node.to_string()).or_default().insert(probe.to_string(), store.into());
        }
    }
    let conditions = view.conditions.into_iter().filter(|_| sees_all);
    let conditions = conditions.map(|((probe, kind), reason)| PastCondition { probe, kind, reason });
    PastClusterView { cluster: name.to_string(), event, at_ms, conditions: conditions.collect(), nodes }
}
