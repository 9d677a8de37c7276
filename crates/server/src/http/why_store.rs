//! Why a data store of a node is as it is.

use bellwether_api::problem::Code;
use bellwether_core::access::ObjectKind;
use bellwether_core::records::probes::StoreState;
use bellwether_core::records::reaction::ConditionSubject;
use bellwether_core::words::name::{NodeName, ProbeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::problem::Failure;
use super::readable::Readable;

/// Whether it is not up; its state, since when and why, and the conditions that are true of it and of the stores of its cluster.
pub(super) fn store(
    fleet: &Fleet,
    readable: &Readable,
    (node, probe): (&NodeName, &ProbeName),
    now: Timestamp,
) -> Result<(bool, Vec<String>), Failure> {
    let probes = fleet.probes.get(node).map(|kept| &*kept.value);
    let store = probes.and_then(|probes| probes.stores.get(probe)).ok_or_else(|| missing(node, probe))?;
    let is_down = store.state != StoreState::Up;
    let reason = if store.reason.is_empty() { String::new() } else { format!(": {}", store.reason) };
    let mut lines = vec![format!("{} for {}{reason}", store.state.as_str(), now.since(store.since).brief())];
    lines.extend(probes.map(|probes| format!("reported {} ago", now.since(probes.received_at).brief())));
    let cluster = fleet.membership.of(node);
    let cluster = cluster.filter(|name| readable.has_object(ObjectKind::Cluster, name.as_str()));
    let is_own = |subject: &ConditionSubject| match subject {
        ConditionSubject::Node(of) => of == node,
        ConditionSubject::Store(of, own) => of == node && own == probe,
        ConditionSubject::Cluster(of, own) => Some(of) == cluster && own == probe,
    };
    let conditions = fleet.true_conditions().filter(|condition| is_own(condition.subject));
    lines.extend(
        conditions
            .map(|of| format!("{} of {} is true for {}", of.name, of.subject, now.since(of.since).brief())),
    );
    lines.extend(cluster.map(|name| format!("the stores of its cluster: bellwether cluster view {name}")));
    Ok((is_down, lines))
}

fn missing(node: &NodeName, probe: &ProbeName) -> Failure {
    let detail = format!("cannot find data store {probe} of node {node}");
    let hint = format!("list them: bellwether node get {node}, or bellwether cluster view CLUSTER");
    Failure::new(Code::NotFound, detail).hint(hint)
}
