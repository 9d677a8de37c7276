//! Encoding of keys: the only place that knows how a key is written.
//!
//! ```text
//! /bw/meta                      the installation
//! /bw/moving                    the installation whose records are being moved into this store
//! /bw/leader                    the leader; its create revision makes the term
//! /bw/server/NAME               the membership of a server
//! /bw/freeze/NAME               a freeze of all namespaces
//! /bw/token/HASH                /bw/join-token/HASH           /bw/role/NAME
//! /bw/ns/NS/sequence            number of the last event
//! /bw/ns/NS/node/NAME           …/presence/NAME  …/report/NAME  …/order/NAME
//! /bw/ns/NS/registrations/NODE  …/service/NAME  …/wait-cycles/current
//! /bw/ns/NS/expected/NAME
//! /bw/ns/NS/node-log/NODE/CATEGORY/ENTITY
//! /bw/ns/NS/entity/NAME         …/progress/NAME
//! /bw/ns/NS/rollout/NAME/00000000000000000007
//! /bw/ns/NS/target/ENTITY/TARGET
//! /bw/ns/NS/profile/NAME
//! /bw/ns/NS/profile-revision/NAME/00000000000000000007
//! /bw/ns/NS/external/ENTITY/TARGET           …/controllers/ENTITY
//! /bw/ns/NS/hook-answers/NAME   /bw/ns/NS/freeze/NAME
//! /bw/ns/NS/slot/NAME          …/pause/NAME
//! /bw/ns/NS/event/00000000000000000042
//! ```

use std::collections::BTreeSet;

use bellwether_core::records::definition::DefinitionId;
use bellwether_core::records::key::global::GlobalKey;
use bellwether_core::records::key::{AnyKey, Key};
use bellwether_core::words::counter::{ProfileRevisionNumber, RolloutNumber, Sequence};
use bellwether_core::words::name::{EntityName, Namespace, NodeName, ProfileName, ServerName, TargetName};
use bellwether_store::Range;
use bytes::Bytes;

/// Prefix of all keys.
pub const ROOT: &str = "/bw/";

/// Key of the installation.
pub const META: &str = "/bw/meta";

/// Key of the installation whose records are being moved into this store.
pub const MOVING: &str = "/bw/moving";

/// Prefix of the memberships of servers.
pub const SERVERS: &str = "/bw/server/";

/// Key of the leader.
pub const LEADER: &str = "/bw/leader";

/// The key of the certificate authorities.
const AUTHORITIES: &str = "/bw/authorities";

/// A key, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocation {
    /// The key of a record in this namespace.
    Namespaced(Namespace, Key),
    /// The key of a record in no namespace.
    Global(GlobalKey),
    /// A key that is not of a record: of the installation or of a sequence.
    Aside,
}

impl KeyLocation {
    /// Whether servers write it about themselves while they live.
    #[must_use]
    pub fn is_of_servers(&self) -> bool {
        matches!(self, Self::Global(GlobalKey::Server(_) | GlobalKey::Leader))
    }

    /// Whether `init` writes it before the record of the installation.
    #[must_use]
    pub fn is_of_init(&self) -> bool {
        match self {
            Self::Global(GlobalKey::Token(_)) | Self::Namespaced(_, Key::Event(_)) | Self::Aside => true,
            Self::Global(_) | Self::Namespaced(..) => false,
        }
    }
}

/// Encodes the key of a record of a namespace.
#[must_use]
pub fn of(namespace: &Namespace, key: &Key) -> Bytes {
    let ns = |kind: &str, rest: &str| format!("/bw/ns/{namespace}/{kind}/{rest}");
    let text = match key {
        Key::Node(name) => ns("node", name.as_str()),
        Key::NodeParams(name) => ns("node-params", name.as_str()),
        Key::Facts(name) => ns("facts", name.as_str()),
        Key::Probes(name) => ns("probes", name.as_str()),
        Key::NodeMembers(name) => ns("node-members", name.as_str()),
        Key::Presence(name) => ns("presence", name.as_str()),
        Key::Expected(name) => ns("expected", name.as_str()),
        Key::Report(name) => ns("report", name.as_str()),
        Key::Order(name) => ns("order", name.as_str()),
        Key::Registrations(node) => ns("registrations", node.as_str()),
        Key::Service(name) => ns("service", name.as_str()),
        Key::WaitCycles => ns("wait-cycles", "current"),
        Key::Log(node, category, entity) => ns("node-log", &format!("{node}/{category}/{entity}")),
        Key::Entity(name) => ns("entity", name.as_str()),
        Key::Progress(name) => ns("progress", name.as_str()),
        Key::Rollout(name, number) => ns("rollout", &format!("{name}/{number:020}")),
        Key::Target(entity, target) => ns("target", &format!("{entity}/{target}")),
        Key::ExternalTarget(entity, target) => ns("external", &format!("{entity}/{target}")),
        Key::Controllers(entity) => ns("controllers", entity.as_str()),
        Key::Profile(name) => ns("profile", name.as_str()),
        Key::ProfileRevision(name, number) => ns("profile-revision", &format!("{name}/{number:020}")),
        Key::HookAnswers(name) => ns("hook-answers", name.as_str()),
        Key::Cluster(name) => ns("cluster", name.as_str()),
        Key::ClusterRoles(name) => ns("cluster-roles", name.as_str()),
        Key::ClusterView(name) => ns("cluster-view", name.as_str()),
        Key::ClusterDiscovery(name) => ns("cluster-discovery", name.as_str()),
        Key::Ensemble(name) => ns("ensemble", name.as_str()),
        Key::EnsembleMembers(name) => ns("ensemble-members", name.as_str()),
        Key::Schedule(name) => ns("schedule", name.as_str()),
        Key::Reaction(name) => ns("reaction", name.as_str()),
        Key::Sink(name) => ns("sink", name.as_str()),
        Key::SinkState(name) => ns("sink-state", name.as_str()),
        Key::Filter(name) => ns("filter", name.as_str()),
        Key::Freeze(name) => ns("freeze", name.as_str()),
        Key::Definition(id) => ns(id.kind(), id.name()),
        Key::Run(name) => ns("run", name.as_str()),
        Key::Jobs(run, node) => ns("jobs", &format!("{run}/{node}")),
        Key::TaskList(run, node) => ns("task-list", &format!("{run}/{node}")),
        Key::NotRunnable(name) => ns("not-runnable", name.as_str()),
        Key::Param(key) => ns("param", key.as_str()),
        Key::Pause(name) => ns("pause", name.as_str()),
        Key::Secret(name) => ns("secret", name.as_str()),
        Key::Slot(name) => ns("slot", name.as_str()),
        Key::Event(sequence) => ns("event", &format!("{sequence:020}")),
    };
    text.into()
}

/// Encodes the key of a record of no namespace.
#[must_use]
pub fn global(key: &GlobalKey) -> Bytes {
    let text = match key {
        GlobalKey::Freeze(name) => format!("/bw/freeze/{name}"),
        GlobalKey::Server(name) => return server(name),
        GlobalKey::Leader => LEADER.to_owned(),
        GlobalKey::Token(hash) => format!("/bw/token/{hash}"),
        GlobalKey::JoinToken(hash) => format!("/bw/join-token/{hash}"),
        GlobalKey::Role(name) => format!("/bw/role/{name}"),
        GlobalKey::Authorities => AUTHORITIES.to_owned(),
    };
    text.into()
}

/// Encodes the key of a record of `namespace` or of none.
#[must_use]
pub fn of_any(namespace: &Namespace, key: &AnyKey) -> Bytes {
    match key {
        AnyKey::Namespaced(key) => of(namespace, key),
        AnyKey::Global(key) => global(key),
    }
}

/// The key of a server's membership.
#[must_use]
pub fn server(name: &ServerName) -> Bytes {
    format!("/bw/server/{name}").into()
}

/// The key with the number of a namespace's last event.
#[must_use]
pub fn sequence(namespace: &Namespace) -> Bytes {
    format!("/bw/ns/{namespace}/sequence").into()
}

/// The events of a namespace after `after`.
#[must_use]
pub fn events_after(namespace: &Namespace, after: Sequence) -> Range {
    events(namespace).after(&of(namespace, &Key::Event(after)))
}

/// All events of a namespace.
#[must_use]
pub fn events(namespace: &Namespace) -> Range {
    Range::prefix(format!("/bw/ns/{namespace}/event/"))
}

/// Kinds that may have a record per node, or more, in key order.
const MANY: [&str; 11] = [
    "event",
    "facts",
    "jobs",
    "node-log",
    "node",
    "order",
    "presence",
    "probes",
    "registrations",
    "report",
    "target",
];

/// All keys as consecutive ranges, so that several can be read at once: split where, in `namespaces` and `default`, the
/// kinds with many records begin. The events of each namespace are a range of their own.
#[must_use]
pub fn ranges<'a>(namespaces: impl Iterator<Item = &'a Namespace>) -> Vec<Range> {
    let all = Range::prefix(ROOT);
    let spaces: BTreeSet<Namespace> = namespaces.cloned().chain(Namespace::parse("default").ok()).collect();
    let many = |namespace: &Namespace| MANY.map(|kind| format!("/bw/ns/{namespace}/{kind}/").into());
    let cuts = spaces.iter().flat_map(|namespace| many(namespace).into_iter().chain([events(namespace).end]));
    let cuts: BTreeSet<Bytes> = cuts.collect();
    let starts = [all.start].into_iter().chain(cuts.iter().cloned());
    let ends = cuts.iter().cloned().chain([all.end]);
    starts.zip(ends).map(|(start, end)| Range { start, end }).collect()
}

/// Parses a key; none if it is not one of ours.
#[must_use]
pub fn read(key: &[u8]) -> Option<KeyLocation> {
    let text = std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?;
    match text.split_once('/') {
        None if text == "leader" => Some(KeyLocation::Global(GlobalKey::Leader)),
        None if text == "authorities" => Some(KeyLocation::Global(GlobalKey::Authorities)),
        None => matches!(text, "meta" | "moving").then_some(KeyLocation::Aside),
        Some(("server", name)) => Some(KeyLocation::Global(GlobalKey::Server(name.parse().ok()?))),
        Some(("freeze", name)) => Some(KeyLocation::Global(GlobalKey::Freeze(name.parse().ok()?))),
        Some(("token", hash)) => Some(KeyLocation::Global(GlobalKey::Token(hash.to_owned()))),
        Some(("join-token", hash)) => Some(KeyLocation::Global(GlobalKey::JoinToken(hash.to_owned()))),
        Some(("role", name)) => Some(KeyLocation::Global(GlobalKey::Role(name.parse().ok()?))),
        Some(("ns", rest)) => {
            let (namespace, rest) = rest.split_once('/')?;
            if rest == "sequence" {
                return Some(KeyLocation::Aside);
            }
            let (kind, name) = rest.split_once('/')?;
            Some(KeyLocation::Namespaced(Namespace::parse(namespace).ok()?, record(kind, name)?))
        }
        Some(_) => None,
    }
}

#[expect(clippy::too_many_lines, reason = "one line for each kind")]
fn record(kind: &str, name: &str) -> Option<Key> {
    Some(match kind {
        "node" => Key::Node(name.parse().ok()?),
        "node-params" => Key::NodeParams(name.parse().ok()?),
        "facts" => Key::Facts(name.parse().ok()?),
        "probes" => Key::Probes(name.parse().ok()?),
        "node-members" => Key::NodeMembers(name.parse().ok()?),
        "presence" => Key::Presence(name.parse().ok()?),
        "expected" => Key::Expected(name.parse().ok()?),
        "report" => Key::Report(name.parse().ok()?),
        "order" => Key::Order(name.parse().ok()?),
        "registrations" => Key::Registrations(name.parse().ok()?),
        "service" => Key::Service(name.parse().ok()?),
        "wait-cycles" if name == "current" => Key::WaitCycles,
        "entity" => Key::Entity(name.parse().ok()?),
        "progress" => Key::Progress(name.parse().ok()?),
        "controllers" => Key::Controllers(name.parse().ok()?),
        "external" => {
            let (entity, target) = name.split_once('/')?;
            Key::ExternalTarget(EntityName::parse(entity).ok()?, TargetName::parse(target).ok()?)
        }
        "hook-answers" => Key::HookAnswers(name.parse().ok()?),
        "freeze" => Key::Freeze(name.parse().ok()?),
        "task" => Key::Definition(DefinitionId::Task(name.parse().ok()?)),
        "stage" => Key::Definition(DefinitionId::Stage(name.parse().ok()?)),
        "workflow" => Key::Definition(DefinitionId::Workflow(name.parse().ok()?)),
        "run" => Key::Run(name.parse().ok()?),
        "cluster" => Key::Cluster(name.parse().ok()?),
        "cluster-roles" => Key::ClusterRoles(name.parse().ok()?),
        "cluster-view" => Key::ClusterView(name.parse().ok()?),
        "cluster-discovery" => Key::ClusterDiscovery(name.parse().ok()?),
        "ensemble" => Key::Ensemble(name.parse().ok()?),
        "ensemble-members" => Key::EnsembleMembers(name.parse().ok()?),
        "jobs" => run_and_node(name).map(|(run, node)| Key::Jobs(run, node))?,
        "task-list" => run_and_node(name).map(|(run, node)| Key::TaskList(run, node))?,
        "not-runnable" => Key::NotRunnable(name.parse().ok()?),
        "schedule" => Key::Schedule(name.parse().ok()?),
        "reaction" => Key::Reaction(name.parse().ok()?),
        "sink" => Key::Sink(name.parse().ok()?),
        "sink-state" => Key::SinkState(name.parse().ok()?),
        "filter" => Key::Filter(name.parse().ok()?),
        "param" => Key::Param(name.parse().ok()?),
        "pause" => Key::Pause(name.parse().ok()?),
        "secret" => Key::Secret(name.parse().ok()?),
        "slot" => Key::Slot(name.parse().ok()?),
        "event" => Key::Event(Sequence::new(name.parse().ok()?)),
        "profile" => Key::Profile(name.parse().ok()?),
        "profile-revision" => {
            let (profile, number) = name.split_once('/')?;
            Key::ProfileRevision(
                ProfileName::parse(profile).ok()?,
                ProfileRevisionNumber::new(number.parse().ok()?),
            )
        }
        "node-log" => {
            let (node, rest) = name.split_once('/')?;
            let (category, entity) = rest.split_once('/')?;
            Key::Log(node.parse().ok()?, category.parse().ok()?, entity.parse().ok()?)
        }
        "rollout" => {
            let (entity, number) = name.split_once('/')?;
            Key::Rollout(EntityName::parse(entity).ok()?, RolloutNumber::new(number.parse().ok()?))
        }
        "target" => {
            let (entity, target) = name.split_once('/')?;
            Key::Target(EntityName::parse(entity).ok()?, TargetName::parse(target).ok()?)
        }
        _ => return None,
    })
}

/// The name of what is kept of a run on a node.
fn run_and_node(name: &str) -> Option<(EntityName, NodeName)> {
    let (run, node) = name.split_once('/')?;
    Some((run.parse().ok()?, node.parse().ok()?))
}

#[cfg(test)]
mod tests;
