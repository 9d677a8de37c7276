//! The service registrations of this node, from its instances, its addresses, and the progress of its entities.

use std::collections::BTreeMap;

use bellwether_api::v1::registrations::{ServiceRegistration, ServiceRegistrations};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::NodeName;

use super::published::{InstanceKey, PublishedInstance};
use crate::config::service::ServiceAddress;
use crate::report_board::ReportBoard;

/// The registrations of this node. An instance of an entity is registered after that entity's static part was done.
pub(crate) fn registrations(
    node: &NodeName,
    shown: &BTreeMap<InstanceKey, PublishedInstance>,
    addresses: &Addresses,
    board: &ReportBoard,
) -> ServiceRegistrations {
    let there = shown.values().filter(|shown| is_registered(shown, board));
    ServiceRegistrations {
        node: node.to_string(),
        addresses: shape(addresses),
        instances: there.map(|shown| registration(shown, addresses)).collect(),
    }
}

/// Whether an instance is registered yet.
pub(crate) fn is_registered(shown: &PublishedInstance, board: &ReportBoard) -> bool {
    let entity = shown.service.entity.as_ref();
    entity.is_none_or(|entity| board.entities.get(entity).is_some_and(|account| account.addressable))
}

fn registration(
    PublishedInstance { service, serving, waits_for, has_results: _ }: &PublishedInstance,
    addresses: &Addresses,
) -> ServiceRegistration {
    ServiceRegistration {
        service: service.name.to_string(),
        name: service.id.to_string(),
        addresses: match &service.at {
            ServiceAddress::Machine => None,
            ServiceAddress::Interface(interface) => {
                let there = addresses.0.get(interface).cloned().unwrap_or_default();
                Some(BTreeMap::from([(interface.to_string(), there)]))
            }
            ServiceAddress::Address(there) => Some(shape(there)),
        },
        port: service.port,
        tags: service.tags.iter().map(ToString::to_string).collect(),
        meta: service.meta.clone(),
        entity: service.entity.as_ref().map(ToString::to_string),
        waits_for: waits_for.iter().map(ToString::to_string).collect(),
        status: serving.into(),
        reason: serving.reason().to_owned(),
        since_ms: 0,
    }
}

fn shape(addresses: &Addresses) -> BTreeMap<String, Vec<std::net::IpAddr>> {
    addresses.0.iter().map(|(interface, list)| (interface.to_string(), list.clone())).collect()
}
