//! What an ensemble is to be, and what it has, in one line each.

use std::collections::BTreeSet;

use bellwether_core::records::ensemble::{Ensemble, EnsembleMode, EnsembleService, EnsembleSize};
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::words::name::SecretName;
use bellwether_core::words::plural::plural;

/// What an ensemble is to be, in one line.
pub(super) fn describe(ensemble: &Ensemble) -> String {
    let Ensemble { service, filter, failover_after, join_within, .. } = ensemble;
    let ports: Vec<String> = service.ports().into_iter().map(|(_, port)| port.to_string()).collect();
    let ports = match ports.as_slice() {
        [] => String::new(),
        [port] => format!(" on port {port}"),
        ports => format!(" on ports {}", ports.join(" and ")),
    };
    let tls = if service.has_tls() { "" } else { " without TLS" };
    let (name, details) = match service {
        EnsembleService::Ceph(ceph) => {
            let devices = plural(ceph.devices.len(), "device");
            (String::new(), format!(", {} copies, {devices}", ceph.replicas))
        }
        EnsembleService::Etcd(_) => (String::new(), tls.to_owned()),
        EnsembleService::Redis(redis) => {
            let replicas = plural(redis.min_replicas as usize, "replica");
            let secrets: Vec<&str> = redis.password_secrets.iter().map(SecretName::as_str).collect();
            let passwords = match secrets.as_slice() {
                [] => String::new(),
                secrets => format!(", with passwords of {}", secrets.join(" and ")),
            };
            (String::new(), format!("{tls}, writes with {replicas} at least{passwords}"))
        }
        EnsembleService::Independent(independent) => {
            (format!(" {}", independent.workload.name()), String::new())
        }
    };
    let size = match ensemble.size {
        EnsembleSize::Number(number) => number.to_string(),
        EnsembleSize::Quorum => "quorum".to_owned(),
    };
    let spread = ensemble.spread.as_ref().map(|key| format!(", spread {key}")).unwrap_or_default();
    let mode = match ensemble.mode {
        EnsembleMode::Managed => "",
        EnsembleMode::Unmanaged => ", unmanaged",
    };
    let snapshots = match ensemble.snapshots.every {
        Some(every) => format!(", a snapshot every {every}, {} kept", ensemble.snapshots.keep),
        None => String::new(),
    };
    let restored = ensemble.restore.as_ref().map(|source| format!(", from {}", source.describe()));
    let adopted = ensemble.adopt.as_ref().map(|source| format!(", adopts {}", source.describe()));
    let restored = restored.or(adopted).unwrap_or_default();
    format!(
        "{}{name}{ports}{details}, size {size}, filter {filter}{spread}, replaced after {failover_after}, joins within {join_within}{snapshots}{restored}{mode}",
        service.as_str()
    )
}

/// How many members there are, and on which nodes.
pub(crate) fn on_nodes(members: &EnsembleMembers) -> String {
    let nodes: Vec<&str> = members.members.values().map(|member| member.node.as_str()).collect();
    let osds: BTreeSet<&str> = members.osds.osds.values().map(|osd| osd.node.as_str()).collect();
    let noun = |count: usize| if count == 1 { "node" } else { "nodes" };
    let of_osds = || {
        let names: Vec<&str> = osds.iter().copied().collect();
        format!("OSDs on {} {}", noun(names.len()), names.join(", "))
    };
    let of_members = format!("{} on {} {}", nodes.len(), noun(nodes.len()), nodes.join(", "));
    match (nodes.is_empty(), osds.is_empty()) {
        (true, false) => of_osds(),
        (false, false) => format!("{of_members}, and {}", of_osds()),
        (_, true) => of_members,
    }
}
