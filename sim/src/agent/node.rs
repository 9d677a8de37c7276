//! An agent's machine, as all of the agent's tasks see it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_core::local::account::EntityAccount;
use bellwether_core::local::memory::EntityMemory;
use bellwether_core::local::work::WorkMemory;
use bellwether_core::records::order::Order;
use bellwether_core::words::name::{EntityName, LedgerId, Namespace, NodeName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use bellwether_server::pki::CertificateIdentity;

use crate::executions::{Executions, HostLease};
use crate::network::Network;
use crate::rules::DisabledRule;
use crate::stores::TrueStores;
use crate::trace::Trace;

/// What an agent remembers of a run.
#[derive(Debug, Clone)]
pub(super) struct StoredWork {
    pub(super) memory: WorkMemory,
    pub(super) is_idempotent: bool,
}

/// What an agent's machine keeps.
#[derive(Debug, Default)]
pub(super) struct AgentDisk {
    pub(super) order: Option<Order>,
    pub(super) memories: BTreeMap<EntityName, EntityMemory>,
    /// How far each run of a workflow is.
    pub(super) works: BTreeMap<EntityName, StoredWork>,
    /// What logical nodes that it hosts keep, by name and fencing number.
    pub(super) logical: BTreeMap<(NodeName, u64), Arc<Mutex<AgentDisk>>>,
}

/// What all of an agent's tasks share.
#[derive(Debug, Clone)]
pub(super) struct AgentNode {
    pub(super) name: NodeName,
    /// The machine: another node for one that is logical.
    pub(super) host: NodeName,
    /// The lease of a logical node.
    pub(super) lease: Option<HostLease>,
    /// Length of that.
    pub(super) lease_length: Span,
    /// Fencing number of the host of a logical node.
    pub(super) fence: Option<u64>,
    pub(super) network: Network,
    pub(super) servers: usize,
    pub(super) trace: Trace,
    pub(super) disk: Arc<Mutex<AgentDisk>>,
    /// How often the machine lost its disk.
    pub(super) losses: Arc<AtomicU64>,
    /// How often each run of an action was begun, whatever the disk says.
    pub(super) begun: Arc<Mutex<BTreeMap<Version, u32>>>,
    pub(super) executions: Executions,
    /// The data stores of the machines; none on a logical node.
    pub(super) stores: Option<TrueStores>,
    /// Whether it offers to host logical nodes.
    pub(super) hosts_logical: bool,
    /// A rule that it ignores.
    pub(super) without: Option<DisabledRule>,
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
    /// The id of the node's ledger: another one after the disk was lost, and on another host.
    pub(super) fn ledger(&self) -> LedgerId {
        let (fence, losses) = (self.fence.unwrap_or_default(), self.losses.load(Ordering::Relaxed));
        LedgerId::parse(&format!("{}-{fence}-{losses}", self.host)).expect("a node name is a DNS label")
    }

    /// A run of an action begins.
    pub(super) fn begins(&self, run: &Version) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun.entry(run.clone()).or_insert(0) += 1;
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
        issuer: None,
        expires_at: Timestamp::from_millis(u64::MAX),
    }
}
