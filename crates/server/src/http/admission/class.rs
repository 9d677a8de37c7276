//! The class of a request and its requester: which limits it counts towards.

use std::net::IpAddr;

use axum::extract::Request;
use bellwether_api::paths;
use bellwether_core::access::{Identity, ObjectKind, RequiredAccess};
use http::Method;

use super::super::listen::Peer;
use bellwether_rt::host_network::host_network;

/// The class of a request. Classes do not share limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestClass {
    /// Changes that stop or hold something (freezes, pauses, operations on a rollout), and all changes of tokens that may do everything.
    Urgent,
    /// Other requests of people and programs.
    People,
    /// Blocking reads.
    Watchers,
    /// Reports, registrations and logs of nodes.
    Machines,
    /// Order polls of agents.
    Syncs,
    /// Joins of nodes and servers, which have shown no identity yet.
    Joins,
}

/// Whose share a request counts towards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) enum Requester {
    /// A token or a job, by the name of its actor.
    Token(String),
    /// A node, by its namespace and name.
    Node(String, String),
    /// A peer without an identity, by its address; of IPv6 the /64 that a host has to itself. None without a network.
    Address(Option<IpAddr>),
}

impl Requester {
    /// The requester of a request of this identity.
    pub(in crate::http) fn of(identity: &Identity, request: &Request) -> Self {
        let peer = request.extensions().get::<Peer>();
        match identity {
            Identity::Token { name, .. } => Self::Token(name.to_string()),
            Identity::Node(node) => {
                let home = peer.and_then(|peer| peer.bearer.as_ref());
                Self::Node(home.map(|home| home.namespace.to_string()).unwrap_or_default(), node.to_string())
            }
            Identity::Anonymous => {
                Self::Address(peer.and_then(|peer| peer.address).map(|address| host_network(address.ip())))
            }
        }
    }
}

impl RequestClass {
    /// All of them.
    pub(super) const ALL: [Self; 6] =
        [Self::Urgent, Self::People, Self::Watchers, Self::Machines, Self::Syncs, Self::Joins];

    /// The class of a request of this identity to the route `path`. None for requests about the state of the server itself, which are
    /// always admitted.
    pub(in crate::http) fn of(
        (path, need): (&'static str, RequiredAccess),
        request: &Request,
        identity: &Identity,
    ) -> Option<Self> {
        let is_machine = || request.extensions().get::<Peer>().is_some_and(|peer| peer.bearer.is_some());
        match path {
            paths::NODE_ORDER => Some(Self::Syncs),
            paths::JOIN | paths::SERVER_JOIN => Some(Self::Joins),
            paths::METRICS => None,
            _ if need == RequiredAccess::Open => None,
            _ if *request.method() != Method::GET && is_urgent(path, need, identity) => Some(Self::Urgent),
            _ if is_machine() => Some(Self::Machines),
            _ if may_wait(request) => Some(Self::Watchers),
            _ => Some(Self::People),
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Urgent => "urgent",
            Self::People => "people",
            Self::Watchers => "watchers",
            Self::Machines => "machines",
            Self::Syncs => "syncs",
            Self::Joins => "joins",
        }
    }

    pub(super) const fn describe(self) -> &'static str {
        match self {
            Self::Urgent => "of those that stop, or of admins",
            Self::People => "of people",
            Self::Watchers => "that waits for changes",
            Self::Machines => "of nodes",
            Self::Syncs => "that polls for an order",
            Self::Joins => "to join",
        }
    }
}

/// Whether a request asks to be answered once there is news.
pub(in crate::http) fn may_wait(request: &Request) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part.starts_with("wait=")))
}

/// Whether a change must find room whatever else is asked.
fn is_urgent(path: &str, need: RequiredAccess, identity: &Identity) -> bool {
    let Some(rights) = identity.rights() else { return false };
    let holds = need.right().is_some_and(|right| match right.kind {
        ObjectKind::Freeze | ObjectKind::GlobalFreeze | ObjectKind::Pause => true,
        ObjectKind::Audit
        | ObjectKind::Cluster
        | ObjectKind::Ensemble
        | ObjectKind::Entity
        | ObjectKind::Filter
        | ObjectKind::JoinToken
        | ObjectKind::Namespace
        | ObjectKind::Node
        | ObjectKind::Param
        | ObjectKind::Profile
        | ObjectKind::Reaction
        | ObjectKind::Role
        | ObjectKind::Rollout
        | ObjectKind::Run
        | ObjectKind::Schedule
        | ObjectKind::Secret
        | ObjectKind::Server
        | ObjectKind::Service
        | ObjectKind::Sink
        | ObjectKind::Slot
        | ObjectKind::Stage
        | ObjectKind::Task
        | ObjectKind::Token
        | ObjectKind::Workflow => false,
    });
    let operates = path == paths::ROLLOUT_OPERATION || path == paths::NODE_PAUSE;
    holds || operates || rights.is_everything()
}
