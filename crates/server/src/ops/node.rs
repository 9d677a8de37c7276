//! Nodes: joining, labels, pause, decommissioning.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_api::v1::node::labels_in;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::node::{Cordon, Marked, Node};
use bellwether_core::records::versioned::Versioned;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::label::Label;
use bellwether_core::words::name::{Actor, Namespace, NodeName, TargetName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::{OpError, cause, event, reason};
use crate::pki::{IssuedCertificate, Pki};
use crate::secret;
use crate::transactor::Transactor;

/// Lets a machine join: uses up its token and makes its certificate, in one commit.
///
/// # Errors
/// [`OpError::JoinToken`] for a token that is unknown, used, expired or for another name; [`OpError::Exists`] when the name
/// belongs to an active node. Nothing is used up then.
pub async fn join(
    transactor: &Transactor,
    pki: &Pki,
    request: v1::access::Join,
) -> Result<IssuedCertificate, OpError> {
    let namespace: Namespace = bellwether_api::shape::read("namespace", &request.namespace)?;
    let name: NodeName = bellwether_api::shape::read("node", &request.node)?;
    let labels = labels_in(&request.labels)?;
    let hash = secret::hash(request.token.as_bytes());
    let issued = pki
        .issue(&namespace, &name, &request.certificate_request, transactor.now())
        .map_err(|error| ShapeError::at("certificate_request", error))?;
    let actor = bellwether_core::access::Identity::Node(name.clone()).actor();
    transactor
        .change(&namespace, &actor, |world, fleet, now| {
            if again(world, fleet, &hash, (&name, &issued.key_fingerprint)) {
                return Ok((None, ()));
            }
            let token = usable(world, &hash, (&namespace, &name), now)?;
            let other = |node: &&Versioned<Node>| node.value.key_fingerprint != issued.key_fingerprint;
            if fleet.active_node(&name).filter(other).is_some() {
                return Err(OpError::Exists {
                    what: format!("a second node {name}"),
                    reason: "the name is in use; pick another, or decommission that node first".to_owned(),
                });
            }
            let node = Node {
                name: name.clone(),
                labels: labels.clone(),
                joined_at: now,
                key_fingerprint: issued.key_fingerprint.clone(),
                // A pause is the operator's: a machine that joins again does not end it.
                pause: fleet.active_node(&name).and_then(|kept| kept.value.pause.clone()),
                // So is a cordon.
                cordon: fleet.active_node(&name).and_then(|kept| kept.value.cordon.clone()),
                decommissioned: None,
            };
            let used =
                bellwether_core::records::token::JoinToken { used: Some((name.clone(), now)), ..token };
            let mut writes = vec![Write::put(Record::JoinToken(used)), Write::put(Record::Node(node))];
            writes.extend(predecessor(fleet, &name));
            writes.extend(fleet.expected.get(&name).map(|_| Write::Delete(Key::Expected(name.clone()))));
            let event = event("node.joined", format!("node/{name}"), "it showed a join token");
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await?;
    Ok(issued)
}

/// Whether this very machine has joined with this token already, and only the answer was lost.
fn again(world: &World, fleet: &Fleet, hash: &str, (name, fingerprint): (&NodeName, &str)) -> bool {
    let used = world.join_tokens.get(hash).and_then(|token| token.value.used.as_ref());
    let same =
        fleet.active_node(name).is_some_and(|node| secret::same(&node.value.key_fingerprint, fingerprint));
    same && used.is_some_and(|(node, _)| node == name)
}

fn usable(
    world: &World,
    hash: &str,
    (namespace, name): (&Namespace, &NodeName),
    now: Timestamp,
) -> Result<bellwether_core::records::token::JoinToken, OpError> {
    let token =
        world.join_tokens.get(hash).ok_or(OpError::JoinToken("the join token is unknown or was revoked"))?;
    let token = &*token.value;
    if token.used.is_some() {
        return Err(OpError::JoinToken("the join token has been used; each lets one machine in, once"));
    }
    if token.expires_at <= now {
        return Err(OpError::JoinToken("the join token has expired"));
    }
    if token.node.as_ref().is_some_and(|only| only != name) {
        return Err(OpError::JoinToken("the join token is for another name"));
    }
    if token.namespace != *namespace {
        return Err(OpError::JoinToken("the join token is for another namespace"));
    }
    Ok(token.clone())
}

/// What is left of a decommissioned machine of this name: none of it is true of the one that joins now.
fn predecessor(fleet: &Fleet, name: &NodeName) -> Vec<Write> {
    if fleet.nodes.get(name).is_none_or(|kept| kept.value.decommissioned.is_none()) {
        return Vec::new();
    }
    let target = TargetName::from(name);
    let told = fleet
        .entities
        .keys()
        .filter(|entity| fleet.targets.contains_key(&((*entity).clone(), target.clone())));
    let told = told.map(|entity| Key::Target(entity.clone(), target.clone()));
    let kept = [
        fleet.reports.get(name).map(|_| Key::Report(name.clone())),
        fleet.presences.get(name).map(|_| Key::Presence(name.clone())),
        fleet.orders.get(name).map(|_| Key::Order(name.clone())),
        fleet.registrations.get(name).map(|_| Key::Registrations(name.clone())),
    ];
    let logs = fleet.logs_of(name).map(|kept| &kept.value);
    let logs = logs.map(|log| Key::Log(name.clone(), log.category.clone(), log.entity.clone()));
    kept.into_iter().flatten().chain(told).chain(logs).map(Write::Delete).collect()
}

/// Makes a node a fresh certificate for the key it has.
///
/// # Errors
/// [`OpError::NotFound`] for a node that is gone, [`OpError::Refused`] when the request is for another key.
pub fn renew(
    transactor: &Transactor,
    pki: &Pki,
    (namespace, name): (&Namespace, &NodeName),
    request: &v1::access::Renew,
) -> Result<IssuedCertificate, OpError> {
    let world = transactor.world();
    let node = world.fleets.get(namespace).and_then(|fleet| fleet.active_node(name));
    let node = node.ok_or_else(|| OpError::NotFound(format!("node {name}")))?;
    let issued = pki
        .issue(namespace, name, &request.certificate_request, transactor.now())
        .map_err(|error| ShapeError::at("certificate_request", error))?;
    if secret::same(&issued.key_fingerprint, &node.value.key_fingerprint) {
        return Ok(issued);
    }
    let reason = "renew for another key than the one it joined with".to_owned();
    Err(OpError::Refused { reason, hint: Some("decommission the node and join it again".to_owned()) })
}

/// Sets and removes labels.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn label(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
    change: v1::node::LabelChange,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let mut node = active(fleet, name)?;
            let before = node.labels.clone();
            for key in &change.remove {
                node.labels.remove(key);
            }
            for (key, value) in &change.set {
                let at = |error| ShapeError::at(&format!("set.{key}"), error);
                node.labels.set(Label::new(key, value).map_err(at)?).map_err(at)?;
            }
            if node.labels == before {
                return Ok((None, ()));
            }
            let text = |labels: &bellwether_core::words::label::Labels| {
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
            };
            let event = EventDraft {
                kind: "node.changed",
                subject: format!("node/{name}"),
                before: Some(text(&before)),
                after: Some(text(&node.labels)),
                cause: "labels were changed".to_owned(),
            };
            Ok((Some(put(node, event)), ()))
        })
        .await
}

/// Pauses a node: it starts nothing new, and goes on checking and reporting.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn pause(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
    why: &str,
) -> Result<(), OpError> {
    let why = reason(why)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let mut node = active(fleet, name)?;
            node.pause = Some(Marked { by: actor.clone(), at: now, why: why.clone() });
            Ok((Some(put(node, event("node.paused", format!("node/{name}"), cause(&why)))), ()))
        })
        .await
}

/// Ends a node's own pause, and answers what else holds it. A node that is not paused stays as it is.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn resume(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
) -> Result<v1::pause::Resumed, OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let mut node = active(fleet, name)?;
            let held_by = fleet.pauses_of(&node).map(v1::pause::Pause::from).collect();
            let resumed = v1::pause::Resumed { held_by };
            if node.pause.take().is_none() {
                return Ok((None, resumed));
            }
            let event = event("node.resumed", format!("node/{name}"), "the pause was ended");
            Ok((Some(put(node, event)), resumed))
        })
        .await
}

/// Tells a node nothing new; when it is drained, what it offers serves nobody else any more. What runs goes on.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn cordon(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
    (why, drained): (&str, bool),
) -> Result<(), OpError> {
    let why = reason(why)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let mut node = active(fleet, name)?;
            let mark = Marked { by: actor.clone(), at: now, why: why.clone() };
            node.cordon = Some(Cordon { mark, drained });
            let kind = if drained { "node.drained" } else { "node.cordoned" };
            Ok((Some(put(node, event(kind, format!("node/{name}"), cause(&why)))), ()))
        })
        .await
}

/// Ends a cordon or a draining. A node that has neither stays as it is.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn uncordon(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let mut node = active(fleet, name)?;
            let Some(cordon) = node.cordon.take() else { return Ok((None, ())) };
            let event = event("node.uncordoned", format!("node/{name}"), format!("it was {}", cordon.line()));
            Ok((Some(put(node, event)), ()))
        })
        .await
}

/// Takes a node out for good: its certificate stops working, and no rollout counts it.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn decommission(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
    why: &str,
) -> Result<(), OpError> {
    let why = reason(why)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let mut node = active(fleet, name)?;
            node.decommissioned = Some(Marked { by: actor.clone(), at: now, why: why.clone() });
            Ok((Some(put(node, event("node.decommissioned", format!("node/{name}"), cause(&why)))), ()))
        })
        .await
}

fn active(fleet: &Fleet, name: &NodeName) -> Result<Node, OpError> {
    let found = fleet.active_node(name).map(|kept| Node::clone(&kept.value));
    found.ok_or_else(|| OpError::NotFound(format!("node {name}")))
}

fn put(node: Node, event: EventDraft) -> Changeset {
    Changeset { writes: vec![Write::put(Record::Node(node))], events: vec![event] }
}
