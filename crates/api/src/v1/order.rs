//! Orders and the poll for them: answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::order as core;
use bellwether_core::words::counter::{AssignmentNumber, Epoch, FenceNumber, Generation, RescanNumber, Term};
use bellwether_core::words::time::Span;
use serde::{Deserialize, Serialize};

use super::access::{patterns, texts};
use super::authorities::TrustBundle;
use super::ensemble::orders::MemberOrder;
use super::ensemble::osd_orders::OsdsOrder;
use super::job_log::LogRequest;
use super::node_params::LiveParams;
use super::server::LiveServers;
use super::service::CatalogueUpdate;
use crate::shape::{ShapeError, is_zero, map_from, read, read_some, try_map_from};

/// How a node applies an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", from = "String")]
pub enum ApplyMethod {
    /// By the configuration of the entity in the node's own files.
    Apply,
    /// By rendering the entity's files from a profile revision.
    Render,
    /// By running an action once.
    Run,
    /// By carrying out the run of a workflow, once.
    Workflow,
    /// Without running the action: it ran before this node joined, and is reported as done.
    Acknowledge,
    /// A method that only newer servers know: the agent refuses the order and keeps the one it has.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    Unknown,
}

impl From<String> for ApplyMethod {
    fn from(word: String) -> Self {
        match word.as_str() {
            "apply" => Self::Apply,
            "render" => Self::Render,
            "run" => Self::Run,
            "workflow" => Self::Workflow,
            "acknowledge" => Self::Acknowledge,
            _ => Self::Unknown,
        }
    }
}

impl From<core::ApplyMethod> for ApplyMethod {
    fn from(from: core::ApplyMethod) -> Self {
        match from {
            core::ApplyMethod::Apply => Self::Apply,
            core::ApplyMethod::Render => Self::Render,
            core::ApplyMethod::Run => Self::Run,
            core::ApplyMethod::Workflow => Self::Workflow,
            core::ApplyMethod::Acknowledge => Self::Acknowledge,
        }
    }
}

impl TryFrom<ApplyMethod> for core::ApplyMethod {
    type Error = ShapeError;
    fn try_from(from: ApplyMethod) -> Result<Self, ShapeError> {
        match from {
            ApplyMethod::Apply => Ok(Self::Apply),
            ApplyMethod::Render => Ok(Self::Render),
            ApplyMethod::Run => Ok(Self::Run),
            ApplyMethod::Workflow => Ok(Self::Workflow),
            ApplyMethod::Acknowledge => Ok(Self::Acknowledge),
            ApplyMethod::Unknown => Err(ShapeError::at("method", "this release does not know the value")),
        }
    }
}

/// The desired state of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Order {
    /// Number of the order; it grows with every change.
    pub generation: u64,
    /// Term of the leader that wrote it.
    pub term: u64,
    /// The epoch in which it was written; absent before the first restore of the control plane. Runs of workflows that orders of this
    /// epoch have not named yet are not withdrawn by it: the restored control plane may not know of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// The assignment of each entity, by entity name.
    pub entities: BTreeMap<String, Assignment>,
    /// Why no update may start, one line; absent if the node is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Number of the last requested rescan of the node's facts; absent if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rescan: u64,
    /// The logical nodes that the node's agent hosts, by name; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Hosting>,
    /// Why the node begins no run of a workflow that it has not begun, one line; absent if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_runnable: Option<String>,
    /// The run that begins in spite of that, and before all others: it undoes the one that failed. Only for agents with the feature `undo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// The runs of workflows that failed on the node, or were given up there, as the control plane knows; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_runs: Vec<String>,
    /// The services that the node may register, as names or beginnings of names followed by `*`; absent if it may register all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<String>>,
    /// By ensemble: what the node does for the member that it has of it; absent if it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, MemberOrder>,
    /// By ensemble: what the node does for the OSDs that it has of it; absent if it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub osds: BTreeMap<String, OsdsOrder>,
}

/// A logical node that is hosted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Hosting {
    /// Fencing number of the role: another one means that another node hosted it in between.
    pub fence: u64,
    /// How long the host may be out of contact before another one takes its place, in milliseconds. The host ends what runs on the
    /// logical node at three quarters of it.
    pub lease_ms: u64,
}

/// A version that a node is assigned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Assignment {
    /// The version.
    pub version: String,
    /// Number of the assignment; it grows with each assignment of the target.
    pub number: u64,
    /// How the node applies the version; `apply` if absent.
    #[serde(default = "apply", skip_serializing_if = "is_apply")]
    pub method: ApplyMethod,
    /// How long the version must be healthy before the agent confirms it, in milliseconds; absent for agents that do not
    /// measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_ms: Option<u64>,
    /// With an action or the run of a workflow: the ledger of the agent that alone may begin it; absent until the node has reported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// With the run of a workflow: number of its tasks that are complete, as another ledger had it; it goes on after them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub complete: u64,
    /// The ledger that the node has instead, and that may not go on with the run of a workflow. Without `ledger`, with an action too: it may
    /// have begun with a ledger that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_for: Option<String>,
    /// With the run of a workflow: number of the failed assignment that is to be tried again; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<u64>,
    /// The probe of the data store that the version changes, as the entity's policy names it; absent if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

const fn apply() -> ApplyMethod {
    ApplyMethod::Apply
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_apply(method: &ApplyMethod) -> bool {
    *method == ApplyMethod::Apply
}

/// Answer to an agent's long poll for its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OrderPoll {
    /// The order; absent if it is not newer than the generation in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// Whether the server has no report of this node; the agent then sends its whole report.
    pub report_requested: bool,
    /// Whether somebody else has reported as this node, under another ledger than the one in the request, or registered services as it, after
    /// the revision in the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overwritten: bool,
    /// Changes of the catalogue since the index in the request; absent if the request had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<CatalogueUpdate>,
    /// The live servers; absent if the tag in the request is current, or if the request had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<LiveServers>,
    /// The params that reach the node without a rollout; absent if the tag in the request is current, or if the request had
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<LiveParams>,
    /// Parts of logs of jobs that readers wait for. They are in no stored order, and each is in one answer only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_requests: Vec<LogRequest>,
    /// The authorities that the node is to trust; absent if the version in the request is current, or if the request had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<TrustBundle>,
    /// Whether the certificate that was shown is of another authority than the active one, so that the node renews it now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub renew: bool,
}

impl From<&core::Order> for Order {
    fn from(from: &core::Order) -> Self {
        let entities = from.content.entities.iter();
        Self {
            generation: from.generation.get(),
            term: from.term.get(),
            epoch: from.epoch.get(),
            entities: map_from(entities.map(|(name, assignment)| (name.to_string(), assignment.into()))),
            paused: from.content.paused.clone(),
            rescan: from.content.rescan.get(),
            hosts: map_from(from.content.hosts.iter().map(|(name, hosting)| {
                let (fence, lease_ms) = (hosting.fence.get(), hosting.lease.as_millis());
                (name.to_string(), Hosting { fence, lease_ms })
            })),
            not_runnable: from.content.not_runnable.clone(),
            undo: from.content.undo.as_ref().map(ToString::to_string),
            failed_runs: from.content.failed_runs.iter().map(ToString::to_string).collect(),
            services: from.content.services.as_deref().map(texts),
            members: map_from(
                from.content.members.iter().map(|(name, order)| (name.to_string(), order.into())),
            ),
            osds: map_from(from.content.osds.iter().map(|(name, order)| (name.to_string(), order.into()))),
        }
    }
}

impl TryFrom<Order> for core::Order {
    type Error = ShapeError;
    fn try_from(from: Order) -> Result<Self, ShapeError> {
        let entities = from.entities.into_iter().map(|(name, assignment)| {
            let at = |error: ShapeError| error.within(&format!("entities.{name}"));
            Ok((read("name", &name).map_err(at)?, assignment.try_into().map_err(at)?))
        });
        let entities = try_map_from(entities)?;
        let hosts = from.hosts.iter().map(|(name, hosting)| {
            let (fence, lease) = (FenceNumber::new(hosting.fence), Span::from_millis(hosting.lease_ms));
            Ok((read("hosts", name)?, core::Hosting { fence, lease }))
        });
        let hosts = try_map_from(hosts)?;
        let failed_runs = from.failed_runs.iter().map(|name| read("failed_runs", name));
        let failed_runs = failed_runs.collect::<Result<_, _>>()?;
        let members = from.members.into_iter().map(|(name, order)| {
            let at = |error: ShapeError| error.within(&format!("members.{name}"));
            Ok((read("name", &name).map_err(at)?, order.try_into().map_err(at)?))
        });
        let members = try_map_from(members)?;
        let osds = from.osds.into_iter().map(|(name, order)| {
            let at = |error: ShapeError| error.within(&format!("osds.{name}"));
            Ok((read("name", &name).map_err(at)?, order.try_into().map_err(at)?))
        });
        let osds = try_map_from(osds)?;
        Ok(Self {
            generation: Generation::new(from.generation),
            term: Term::new(from.term),
            epoch: Epoch::new(from.epoch),
            content: core::OrderContent {
                entities,
                paused: from.paused,
                rescan: RescanNumber::new(from.rescan),
                hosts,
                not_runnable: from.not_runnable,
                undo: from.undo.map(|run| read("undo", &run)).transpose()?,
                failed_runs,
                services: from.services.as_deref().map(|all| patterns("services", all)).transpose()?,
                members,
                osds,
            },
        })
    }
}

impl From<&core::Assignment> for Assignment {
    fn from(from: &core::Assignment) -> Self {
        Self {
            version: from.version.to_string(),
            number: from.number.get(),
            method: from.method.into(),
            soak_ms: from.soak.map(Span::as_millis),
            ledger: from.binding.ledger.as_ref().map(ToString::to_string),
            complete: from.binding.complete.into(),
            lost_for: from.binding.lost_for.as_ref().map(ToString::to_string),
            retry: from.retry.map(AssignmentNumber::get),
            store: from.store.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<Assignment> for core::Assignment {
    type Error = ShapeError;
    fn try_from(from: Assignment) -> Result<Self, ShapeError> {
        let number = AssignmentNumber::new(from.number);
        Ok(Self {
            version: read("version", &from.version)?,
            number,
            method: from.method.try_into()?,
            soak: from.soak_ms.map(Span::from_millis),
            binding: core::LedgerBinding {
                ledger: read_some("ledger", from.ledger.as_deref())?,
                complete: u32::try_from(from.complete).map_err(|error| ShapeError::at("complete", error))?,
                lost_for: read_some("lost_for", from.lost_for.as_deref())?,
            },
            retry: from.retry.map(AssignmentNumber::new),
            store: read_some("store", from.store.as_deref())?,
        })
    }
}
