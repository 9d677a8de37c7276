//! What the templates of catalogue files can speak of: services, this node, and facts of the machine.

use std::collections::BTreeMap;
use std::fs;

use bellwether_core::catalogue::instance::InstanceState;
use bellwether_core::catalogue::selection::CatalogueSelection;
use bellwether_core::catalogue::{Catalogue, CatalogueService as Known};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{Namespace, NodeName};
use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use super::format::{InstanceView, by_interface};

/// Where a template is rendered.
#[derive(Debug, Clone)]
pub(super) struct CatalogueContext {
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) addresses: Addresses,
    pub(super) catalogue: Catalogue,
    /// Whether a catalogue was ever received.
    pub(super) known: bool,
    /// Whether the control plane answered in this agent's life. Before, the stored catalogue may be older than the files.
    pub(super) connected: bool,
}

/// One service as templates see it.
#[derive(Serialize)]
struct ServiceContext<'a> {
    functional: Vec<InstanceView<'a>>,
    addressable: Vec<InstanceView<'a>>,
    /// Those of the file's own level.
    instances: Vec<InstanceView<'a>>,
}

impl CatalogueContext {
    /// What a template sees of it. Reads the facts from the kernel: not for the runtime's threads.
    pub(super) fn context(&self, selection: &CatalogueSelection) -> Value {
        let services: BTreeMap<&str, ServiceContext<'_>> = selection
            .services(&self.catalogue)
            .into_iter()
            .map(|(name, service)| (name.as_str(), self::service(selection, service)))
            .collect();
        let kernel = |name: &str| {
            let read = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
            read.trim().to_owned()
        };
        minijinja::context! {
            services => Value::from(Serde(&services)),
            node => minijinja::context! {
                name => self.node.as_str(),
                namespace => self.namespace.as_str(),
                addresses => Value::from(Serde(&by_interface(&self.addresses))),
            },
            facts => minijinja::context! {
                hostname => kernel("hostname"),
                kernel => kernel("osrelease"),
                os => std::env::consts::OS,
                architecture => std::env::consts::ARCH,
            },
        }
    }
}

fn service<'a>(selection: &CatalogueSelection, service: Option<&'a Known>) -> ServiceContext<'a> {
    let all = || service.into_iter().flat_map(Known::instances);
    let serves = |level: &InstanceState| level.serves();
    ServiceContext {
        functional: all().filter(|instance| serves(&instance.level)).map(InstanceView::of).collect(),
        addressable: all().map(InstanceView::of).collect(),
        instances: selection.instances(service).map(InstanceView::of).collect(),
    }
}
