//! A member as an instance of a service that has the name of its ensemble: others find it by its name, in DNS and in files, while it serves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::local::member::MemberKey;
use bellwether_core::local::ttl::down;
use bellwether_core::records::member::{
    MemberOrder, MemberReport, MemberState, MemberTask as OrderedTask, Replication, ReplicationOrder,
};
use bellwether_core::records::registrations::{CheckStatus, instance_of_member};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::EnsembleName;

use crate::config::service::{Service, ServiceAddress};
use crate::ledger::MemberEntry;
use crate::service::published::{InstanceKey, PublishedInstance};

/// The interface of the address of a member, as that of an address that is given without one.
const GIVEN: &str = "given";

/// The instance of a member that serves clients at this address; `None` for one that is not started, or is to leave.
pub(super) fn of(
    (ensemble, order): (&EnsembleName, &MemberOrder),
    report: &MemberReport,
    alarm: Option<&str>,
    client: SocketAddr,
) -> Option<PublishedInstance> {
    let serving = match (&order.task, report.state) {
        (OrderedTask::Prepare | OrderedTask::Leave, _)
        | (_, MemberState::Refused | MemberState::Prepared | MemberState::Left) => return None,
        (OrderedTask::Run(_), MemberState::Working) => match alarm {
            Some(_) => CheckStatus::Warning { reason: report.reason.as_str().into() },
            None => CheckStatus::Passing,
        },
        (OrderedTask::Run(_), MemberState::Starting | MemberState::Failed) => down(&report.reason),
    };
    let membership = report.membership.as_ref();
    let role = membership.map(|membership| if membership.is_leader { "leader" } else { "follower" });
    let role = role.or_else(|| report.replication.as_ref().map(|said| replication_role(order, said)));
    let store_id = membership.map(|membership| ("store_id", membership.own_id.clone()));
    let number = Some(("member", order.number.to_string()));
    let meta = number.into_iter().chain(store_id).map(|(key, value)| (key.to_owned(), value));
    let addresses = BTreeMap::from([(GIVEN.parse().ok()?, vec![client.ip()])]);
    let (name, id) = instance_of_member(ensemble, order.number)?;
    let service = Service {
        name,
        id,
        at: ServiceAddress::Address(Addresses(addresses)),
        port: Some(client.port()).filter(|port| *port > 0),
        tags: role.and_then(|role| role.parse().ok()).into_iter().collect(),
        meta: meta.collect(),
        entity: None,
        needs: Vec::new(),
        checks: BTreeMap::new(),
        ttl_checks: BTreeMap::new(),
    };
    Some(PublishedInstance {
        service: Arc::new(service),
        serving,
        has_results: true,
        waits_for: BTreeSet::new(),
    })
}

/// What a member is among those of which one is the primary. One that is to be none any more, and does not know yet, is nobody's primary.
fn replication_role(order: &MemberOrder, said: &Replication) -> &'static str {
    // Without an order, as after a restore of the control plane, it is what it is.
    let is_ordered = matches!(
        order.replication,
        None | Some(
            ReplicationOrder::Primary { .. }
                | ReplicationOrder::HandOver { .. }
                | ReplicationOrder::TakeOver { .. }
        )
    );
    if said.is_primary && is_ordered { "primary" } else { "replica" }
}

/// The instance of a member that an agent before had started, until it is looked at: nobody is told of it, or of the others, before.
pub(super) fn awaited(
    ensemble: &EnsembleName,
    order: &MemberOrder,
    entry: &MemberEntry,
) -> Option<PublishedInstance> {
    let is_same = entry.noted.key == MemberKey::of(order);
    let client =
        is_same.then_some(SocketAddr::new(entry.address, order.service.client_port().unwrap_or_default()))?;
    let report = MemberReport {
        reason: "not looked at yet".to_owned(),
        ..MemberReport::of(order.number, order.identity.clone(), MemberState::Failed)
    };
    let instance = of((ensemble, order), &report, None, client)?;
    Some(PublishedInstance { has_results: false, ..instance })
}

/// Replaces what was published of a member.
pub(super) fn show(
    published: &mut BTreeMap<InstanceKey, PublishedInstance>,
    shown: &mut Option<InstanceKey>,
    instance: Option<PublishedInstance>,
) -> bool {
    let key = instance.as_ref().map(|instance| instance.service.key());
    let before = shown.take().and_then(|former| match key.as_ref() == Some(&former) {
        true => published.get(&former).cloned(),
        false => published.remove(&former),
    });
    let is_news = before != instance;
    if let Some((key, instance)) = key.clone().zip(instance) {
        published.insert(key, instance);
    }
    *shown = key;
    is_news
}
