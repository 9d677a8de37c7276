//! Calls about nodes, by people and by the node itself.

use std::time::Duration;

use http::Method;

use super::super::connection::{BEYOND_WAIT, Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, encode, fill};
use crate::v1::ensemble::reports::NodeMembers;
use crate::v1::facts::{NodeFacts, RequestedRescan};
use crate::v1::failure::Failures;
use crate::v1::log::{NewLog, NodeLog};
use crate::v1::node::{
    AllowedServices, DecommissionRequest, DrainRequest, LabelChange, NodeView, Reason, SilentNode,
};
use crate::v1::not_runnable::Runnable;
use crate::v1::order::OrderPoll;
use crate::v1::page::Page;
use crate::v1::pause::Resumed;
use crate::v1::probes::NodeProbes;
use crate::v1::registrations::{Registered, ServiceRegistrations};
use crate::v1::report::Report;
use crate::v1::status::Status;

/// Identifies the log of a node's last failed run of a category and entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLogKey<'a> {
    /// Namespace of the node.
    pub namespace: &'a str,
    /// Name of the node.
    pub node: &'a str,
    /// Category of the run.
    pub category: &'a str,
    /// Name of the entity.
    pub entity: &'a str,
}

impl NodeLogKey<'_> {
    fn path(self) -> String {
        fill(paths::NODE_LOG, &[self.namespace, self.node, self.category, self.entity])
    }
}

/// What a node has already received when it polls for its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeKnowledge {
    /// Generation of its order; 0 if it has none.
    pub generation: u64,
    /// Index of its copy of the catalogue; `None` if it keeps no copy.
    pub catalogue: Option<u64>,
    /// Tag of the live servers that it knows, empty if it knows none; `None` if it does not use the list.
    pub servers: Option<String>,
    /// Tag of the params that it read without a rollout, empty if it has none; `None` if it uses no such params.
    pub params: Option<String>,
    /// Version of the authorities that it trusts, 0 if it knows of none; `None` if it does not take in others.
    pub authorities: Option<u64>,
    /// Number of the last report that its agent sent; `None` before the first one.
    pub reported: Option<u64>,
    /// Revision at which its service registrations were recorded last; `None` before, and while others are sent.
    pub registered: Option<u64>,
    /// Ledger of its reports; `None` before the first one has arrived.
    pub ledger: Option<String>,
}

impl From<(u64, Option<u64>)> for NodeKnowledge {
    /// The first poll: no order and no catalogue.
    fn from((generation, catalogue): (u64, Option<u64>)) -> Self {
        Self { generation, catalogue, ..Self::default() }
    }
}

impl Client {
    /// Lists nodes.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn nodes(&self, namespace: &str, decommissioned: bool) -> Result<Page<NodeView>, CallError> {
        self.list(&format!("{}?decommissioned={decommissioned}", fill(paths::NODES, &[namespace]))).await
    }

    /// Reads one node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn node(&self, namespace: &str, name: &str) -> Result<NodeView, CallError> {
        self.get(&fill(paths::NODE, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Changes a node's labels.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn label_node(
        &self,
        namespace: &str,
        name: &str,
        change: &LabelChange,
    ) -> Result<(), CallError> {
        let path = fill(paths::NODE_LABELS, &[namespace, name]);
        self.send::<_, Nothing>(Method::PATCH, &path, change, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sets which services a node may register.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn allow_node_services(
        &self,
        namespace: &str,
        name: &str,
        allowed: &AllowedServices,
    ) -> Result<(), CallError> {
        let path = fill(paths::NODE_SERVICES, &[namespace, name]);
        self.send::<_, Nothing>(Method::PUT, &path, allowed, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Pauses a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn pause_node(&self, namespace: &str, name: &str, reason: &str) -> Result<(), CallError> {
        self.because(&fill(paths::NODE_PAUSE, &[namespace, name]), reason).await
    }

    /// Ends a node's own pause; returns the pauses that still apply to it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn resume_node(&self, namespace: &str, name: &str) -> Result<Resumed, CallError> {
        let path = fill(paths::NODE_RESUME, &[namespace, name]);
        self.send(Method::POST, &path, &Reason::default(), DEFAULT_DEADLINE).await
    }

    /// Cordons a node: it is assigned no new versions.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cordon_node(&self, namespace: &str, name: &str, reason: &str) -> Result<(), CallError> {
        self.because(&fill(paths::NODE_CORDON, &[namespace, name]), reason).await
    }

    /// Requests the drain of a node: it is assigned no new versions, and once its budget allows it, its services are
    /// not returned to other nodes.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn drain_node(
        &self,
        namespace: &str,
        name: &str,
        request: &DrainRequest,
    ) -> Result<(), CallError> {
        let path = fill(paths::NODE_DRAIN, &[namespace, name]);
        self.send::<_, Nothing>(Method::POST, &path, request, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Says whether a node begins runs of workflows.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_node_runnable(
        &self,
        namespace: &str,
        name: &str,
        request: &Runnable,
    ) -> Result<(), CallError> {
        let path = fill(paths::NODE_RUNNABLE, &[namespace, name]);
        self.send::<_, Nothing>(Method::POST, &path, request, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Ends the cordon or drain of a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn uncordon_node(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        self.because(&fill(paths::NODE_UNCORDON, &[namespace, name]), "").await
    }

    /// Decommissions a node permanently.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn decommission_node(
        &self,
        namespace: &str,
        name: &str,
        reason: &str,
    ) -> Result<(), CallError> {
        self.because(&fill(paths::NODE_DECOMMISSION, &[namespace, name]), reason).await
    }

    /// Decommissions a node permanently, as this says.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn decommission_node_as(
        &self,
        namespace: &str,
        name: &str,
        request: &DecommissionRequest,
    ) -> Result<(), CallError> {
        let path = fill(paths::NODE_DECOMMISSION, &[namespace, name]);
        self.send::<_, Nothing>(Method::POST, &path, request, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Records that a node is expected to join.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn expect_node(&self, namespace: &str, name: &str, reason: &str) -> Result<(), CallError> {
        let (path, reason) = (fill(paths::NODE_EXPECTED, &[namespace, name]), reason.to_owned());
        self.send::<_, Nothing>(Method::PUT, &path, &Reason { reason }, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Removes the expectation that a node joins.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn unexpect_node(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::NODE_EXPECTED, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &Reason::default(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists expected nodes that have not joined, and joined nodes that do not report.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn unaccounted(&self, namespace: &str) -> Result<Page<SilentNode>, CallError> {
        self.list(&fill(paths::SILENT_NODES, &[namespace])).await
    }

    async fn because(&self, path: &str, reason: &str) -> Result<(), CallError> {
        let because = Reason { reason: reason.to_owned() };
        self.send::<_, Nothing>(Method::POST, path, &because, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sets one status of a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_status(
        &self,
        namespace: &str,
        name: &str,
        category: &str,
        status: &Status,
    ) -> Result<(), CallError> {
        let path = fill(paths::NODE_STATUS, &[namespace, name, category]);
        self.send::<_, Nothing>(Method::PUT, &path, status, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Deletes one status of a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_status(&self, namespace: &str, name: &str, category: &str) -> Result<(), CallError> {
        let path = fill(paths::NODE_STATUS, &[namespace, name, category]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sends this node's service registrations. Returns where they are recorded.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn registration(
        &self,
        namespace: &str,
        registrations: &ServiceRegistrations,
    ) -> Result<Registered, CallError> {
        let path = fill(paths::NODE_REGISTRATIONS, &[namespace, &registrations.node]);
        self.send(Method::PUT, &path, registrations, DEFAULT_DEADLINE).await
    }

    /// Sends this node's facts.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn facts(&self, namespace: &str, facts: &NodeFacts) -> Result<(), CallError> {
        let path = fill(paths::NODE_FACTS, &[namespace, &facts.node]);
        self.send::<_, Nothing>(Method::PUT, &path, facts, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sends this node's data stores.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn probes(&self, namespace: &str, probes: &NodeProbes) -> Result<(), CallError> {
        let path = fill(paths::NODE_PROBES, &[namespace, &probes.node]);
        self.send::<_, Nothing>(Method::PUT, &path, probes, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sends the members of ensembles that this node has.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn members(&self, namespace: &str, members: &NodeMembers) -> Result<(), CallError> {
        let path = fill(paths::NODE_MEMBERS, &[namespace, &members.node]);
        self.send::<_, Nothing>(Method::PUT, &path, members, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Requests a rescan of a node's facts.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn rescan_node(&self, namespace: &str, name: &str) -> Result<RequestedRescan, CallError> {
        let path = fill(paths::NODE_RESCAN, &[namespace, name]);
        self.send(Method::POST, &path, &(), DEFAULT_DEADLINE).await
    }

    /// Reads the failed, outdated and unreachable statuses of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn failures(&self, namespace: &str) -> Result<Failures, CallError> {
        self.get(&fill(paths::FAILURES, &[namespace]), DEFAULT_DEADLINE).await
    }

    /// Lists the stored logs of a node's failed runs, without their texts.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn node_logs(&self, namespace: &str, name: &str) -> Result<Page<NodeLog>, CallError> {
        self.get(&fill(paths::NODE_LOGS, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Reads one stored log of a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn node_log(&self, log: NodeLogKey<'_>) -> Result<NodeLog, CallError> {
        self.get(&log.path(), DEFAULT_DEADLINE).await
    }

    /// Sends the log of this node's last failed run of a category and entity.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn keep_log(&self, key: NodeLogKey<'_>, log: &NewLog) -> Result<(), CallError> {
        self.send::<_, Nothing>(Method::PUT, &key.path(), log, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sends this node's report.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn report(&self, namespace: &str, report: &Report) -> Result<(), CallError> {
        let path = fill(paths::NODE_REPORT, &[namespace, &report.node]);
        self.send::<_, Nothing>(Method::PUT, &path, report, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Long poll: returns once there is an order newer than the known one, the catalogue has changed past the
    /// index, or `wait` is over. It is also this node's heartbeat.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn sync(
        &self,
        namespace: &str,
        name: &str,
        known: impl Into<NodeKnowledge>,
        wait: Duration,
    ) -> Result<OrderPoll, CallError> {
        let known = known.into();
        let path = fill(paths::NODE_ORDER, &[namespace, name]);
        let mut path = format!("{path}?generation={}&wait={}ms", known.generation, wait.as_millis());
        if let Some(index) = known.catalogue {
            path.push_str(&format!("&catalogue={index}"));
        }
        if let Some(tag) = &known.servers {
            path.push_str(&format!("&servers={}", encode(tag)));
        }
        if let Some(tag) = &known.params {
            path.push_str(&format!("&params={}", encode(tag)));
        }
        if let Some(version) = known.authorities {
            path.push_str(&format!("&authorities={version}"));
        }
        if let Some(number) = known.reported {
            path.push_str(&format!("&reported={number}"));
        }
        if let Some(revision) = known.registered {
            path.push_str(&format!("&registered={revision}"));
        }
        if let Some(ledger) = &known.ledger {
            path.push_str(&format!("&ledger={}", encode(ledger)));
        }
        self.get(&path, wait + BEYOND_WAIT).await
    }
}
