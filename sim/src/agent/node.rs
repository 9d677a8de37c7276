//! An agent's machine, as all of the agent's tasks see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_core::local::account::EntityAccount;
use bellwether_core::local::memory::EntityMemory;
use bellwether_core::records::order::Order;
use bellwether_core::words::name::{EntityName, LedgerId, Namespace, NodeName};
use bellwether_core::words::version::Version;
use bellwether_server::pki::CertificateIdentity;

use crate::network::Network;
use crate::trace::Trace;

/// What an agent's machine keeps.
#[derive(Debug, Default)]
pub(super) struct AgentDisk {
    pub(super) order: Option<Order>,
    pub(super) memories: BTreeMap<EntityName, EntityMemory>,
    /// How often each run was begun.
    pub(super) begun: BTreeMap<Version, u32>,
}

/// What all of an agent's tasks share.
#[derive(Debug, Clone)]
pub(super) struct AgentNode {
    pub(super) name: NodeName,
    pub(super) network: Network,
    pub(super) servers: usize,
    pub(super) trace: Trace,
    pub(super) disk: Arc<Mutex<AgentDisk>>,
    pub(super) seed: u64,
    /// Whether runs fail for bad versions only.
    pub(super) is_steady: bool,
}

/// What an agent has to say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AgentReport {
    pub(super) generation: u64,
    pub(super) entities: BTreeMap<EntityName, EntityAccount>,
}

impl AgentNode {
    /// The id of the node's ledger. A simulated disk is never lost.
    pub(super) fn ledger(&self) -> LedgerId {
        LedgerId::parse(self.name.as_str()).expect("a node name is a DNS label")
    }

    pub(super) fn disk(&self) -> MutexGuard<'_, AgentDisk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The identity in a node's certificate.
#[must_use]
pub fn bearer(node: &NodeName) -> CertificateIdentity {
    CertificateIdentity {
        namespace: Namespace::parse("default").expect("plain letters are a label"),
        node: node.clone(),
        key_fingerprint: format!("key-of-{node}"),
    }
}
