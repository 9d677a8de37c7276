//! Operations on nodes: join, renew, label, pause, cordon, drain, decommission.

pub mod decommission;
mod join_token;
mod predecessor;

use bellwether_api::problem::LATER_IS_KNOWN;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_api::v1::labels::labels_in;
use bellwether_core::decide::registrations;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::authorities::NodeTrust;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::node::{Cordon, Node};
use bellwether_core::records::versioned::Versioned;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::AuthoritiesVersion;
use bellwether_core::words::label::{Label, Labels};
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::scope::NodeScope;
use super::{OpError, cause, event, reason};
use crate::pki::{IssuedCertificate, Pki};
use crate::secret;
use crate::transactor::Transactor;

/// Joins a node: uses up its join token and issues its certificate, in one commit.
///
/// # Errors
/// [`OpError::JoinToken`] for a token that is unknown, used, expired or for another name; [`OpError::Exists`] when an active
/// node has the name. The token is not used up then.
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
    predecessor::make_room(transactor, (&namespace, &name), &actor, &hash).await?;
    transactor
        .change(&namespace, &actor, |world, fleet, now| {
            if has_joined_already(world, fleet, &hash, &name, &issued.key_fingerprint) {
                return Ok::<_, OpError>((None, ()));
            }
            let token = join_token::usable(world, &hash, &namespace, &name, now)?;
            let labels = labels_of(&token, &labels)?;
            refuse_taken(fleet, &name, &issued.key_fingerprint)?;
            let node = Node {
                name: name.clone(),
                labels,
                joined_at: now,
                key_fingerprint: issued.key_fingerprint.clone(),
                next_key_fingerprint: None,
                trust: (issued.trusted.0 > 0).then(|| NodeTrust {
                    version: AuthoritiesVersion::new(issued.trusted.0),
                    issuer: issued.issuer.clone(),
                }),
                // An operator set the pause: joining again does not end it.
                pause: fleet.active_node(&name).and_then(|kept| kept.value.pause.clone()),
                // The same holds for a cordon.
                cordon: fleet.active_node(&name).and_then(|kept| kept.value.cordon.clone()),
                decommissioned: None,
                rescan: Default::default(),
                logical: None,
                services: token.services.clone(),
            };
            let used =
                bellwether_core::records::token::JoinToken { used: Some((name.clone(), now)), ..token };
            let mut writes = vec![Write::put(GlobalRecord::JoinToken(used)), Write::put(Record::Node(node))];
            writes.extend(predecessor::records(fleet, &name));
            writes.extend(fleet.expected.get(&name).map(|_| Write::delete(Key::Expected(name.clone()))));
            let event = event("node.joined", format!("node/{name}"), "joined with a join token");
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await?;
    Ok(issued)
}

/// Whether this machine has already joined with this token, and only the response was lost.
fn has_joined_already(world: &World, fleet: &Fleet, hash: &str, name: &NodeName, fingerprint: &str) -> bool {
    let used = world.join_tokens.get(hash).and_then(|token| token.value.used.as_ref());
    let same =
        fleet.active_node(name).is_some_and(|node| secret::same(&node.value.key_fingerprint, fingerprint));
    same && used.is_some_and(|(node, _)| node == name)
}

/// The labels of a node that joins: those that its token gives, and what the machine chose of those that it allows. A label decides
/// what a machine is given, so that it may not choose freely.
fn labels_of(token: &bellwether_core::records::token::JoinToken, chosen: &Labels) -> Result<Labels, OpError> {
    let mut labels = token.given_labels().map_err(|reason| ShapeError::at("labels", reason))?;
    for (key, value) in chosen.iter() {
        let label = format!("{key}={value}");
        if !token.labels.iter().any(|pattern| pattern.matches(&label)) {
            return Err(OpError::Refused {
                reason: format!("join with label {label}: the join token does not allow it"),
                hint: Some(format!("create one that does: bellwether join-token create --label {label}")),
            });
        }
        let at = |error| ShapeError::at("labels", error);
        labels.set(Label::new(key, value).map_err(at)?).map_err(at)?;
    }
    Ok(labels)
}

/// Issues a new certificate to a node. It may be for another key than the one that it has shown: that is the next one of the node, and
/// the only one once it is shown.
///
/// # Errors
/// [`OpError::NotFound`] for a node that does not exist.
pub async fn renew(
    transactor: &Transactor,
    pki: &Pki,
    scope: NodeScope<'_>,
    shown: &str,
    request: &v1::access::Renew,
) -> Result<IssuedCertificate, OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    let issued = pki
        .issue(namespace, name, &request.certificate_request, transactor.now())
        .map_err(|error| ShapeError::at("certificate_request", error))?;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let node = active(fleet, name)?;
            if node.has_key(&issued.key_fingerprint) {
                return Ok((None, ()));
            }
            let mut node = if node.is_next_key(shown) { node.with_next_key() } else { node };
            node.next_key_fingerprint = Some(issued.key_fingerprint.clone());
            Ok::<_, OpError>((
                Some(Changeset { writes: vec![Write::put(Record::Node(node))], events: Vec::new() }),
                (),
            ))
        })
        .await?;
    Ok(issued)
}

/// Notes what a node has shown: a key, of which the one before is none of it any more if it is the next one, and whom it trusts.
///
/// # Errors
/// [`OpError::NotFound`] for a node that does not exist.
pub async fn key_shown(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    (shown, trust): (&str, Option<&NodeTrust>),
) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let before = active(fleet, name)?;
            let mut node =
                if before.is_next_key(shown) { before.clone().with_next_key() } else { before.clone() };
            if let Some(trust) = trust {
                node.trust = Some(trust.clone());
            }
            if node == before {
                return Ok((None, ()));
            }
            let writes = vec![Write::put(Record::Node(node))];
            Ok::<_, OpError>((Some(Changeset { writes, events: Vec::new() }), ()))
        })
        .await
}

/// Refuses a name that another node has, or may run under still, and a key that others may have.
fn refuse_taken(fleet: &Fleet, name: &NodeName, key: &str) -> Result<(), OpError> {
    let other = |node: &&Versioned<Node>| node.value.key_fingerprint != key;
    if fleet.active_node(name).filter(other).is_some() {
        return Err(OpError::Exists {
            what: format!("join as {name}"),
            reason: "the name is in use; pick another, or decommission that node first".to_owned(),
        });
    }
    let mut former = fleet.nodes.get(name).map(|kept| &kept.value).into_iter();
    if former.any(|node| node.decommissioned.is_some() && node.has_key(key)) {
        let reason = format!(
            "join as {name}: its key is the one of the node that was decommissioned, which others may have"
        );
        let hint = Some("join with another one: bellwether agent join --force".to_owned());
        return Err(OpError::Refused { reason, hint });
    }
    // The host that was decommissioned may run it still: this machine is not to be taken for it.
    if let Some(cluster) = fleet.hosts_still(name) {
        return Err(OpError::Refused {
            reason: format!(
                "join as {name}: a node of this name was decommissioned just now and hosts the manager of cluster {cluster}"
            ),
            hint: Some("try again in a moment, once a server leads the control plane".to_owned()),
        });
    }
    Ok(())
}

/// Sets and removes labels.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn label(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    change: v1::node::LabelChange,
) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
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
                cause: "labels changed".to_owned(),
            };
            Ok((Some(put(node, event)), ()))
        })
        .await
}

/// Sets which services a node may register. Those that it registers and may not leave the catalogue at once, and return when they
/// are allowed.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn allow_services(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    request: &v1::node::AllowedServices,
) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    let services = v1::access::service_patterns("services", &request.services)?;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let before = active(fleet, name)?;
            if before.services == services {
                return Ok((None, ()));
            }
            let node = Node { services: services.clone(), ..before.clone() };
            let text = |patterns: &[bellwether_core::access::NamePattern]| match patterns {
                [] => "none".to_owned(),
                some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            };
            let event = EventDraft {
                kind: "node.changed",
                subject: format!("node/{name}"),
                before: Some(text(&before.services)),
                after: Some(text(&services)),
                cause: "the services that it may register changed".to_owned(),
            };
            let of_services = registrations::allowed(fleet, &before, &node);
            let mut changes = put(node, event);
            changes.events.extend(of_services);
            Ok((Some(changes), ()))
        })
        .await
}

/// Pauses a node: it starts no new work, and keeps checking and reporting. A node that is paused for the same reason is
/// unchanged.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn pause(transactor: &Transactor, scope: NodeScope<'_>, text: &str) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    let reason = reason(text)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let mut node = active(fleet, name)?;
            if node.pause.as_ref().is_some_and(|pause| pause.reason == reason) {
                return Ok((None, ()));
            }
            node.pause = Some(Annotation { by: actor.clone(), at: now, reason: reason.clone() });
            Ok((Some(put(node, event("node.paused", format!("node/{name}"), cause(&reason)))), ()))
        })
        .await
}

/// Ends a node's own pause; returns the pauses by selector that still hold it. A node that is not paused is unchanged.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn resume(transactor: &Transactor, scope: NodeScope<'_>) -> Result<v1::pause::Resumed, OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let mut node = active(fleet, name)?;
            let held_by = fleet.pauses_of(&node).map(v1::pause::Pause::from).collect();
            let resumed = v1::pause::Resumed { held_by };
            if node.pause.take().is_none() {
                return Ok((None, resumed));
            }
            let event = event("node.resumed", format!("node/{name}"), "pause ended");
            Ok((Some(put(node, event)), resumed))
        })
        .await
}

/// Cordons a node: no new version is assigned to it. Running programs keep running. A node that is cordoned for the same
/// reason is unchanged; a drain ends.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn cordon(transactor: &Transactor, scope: NodeScope<'_>, text: &str) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    let reason = reason(text)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let mut node = active(fleet, name)?;
            let same = |old: &Cordon| old.drain.is_none() && old.annotation.reason == reason;
            if node.cordon.as_ref().is_some_and(same) {
                return Ok((None, ()));
            }
            let annotation = Annotation { by: actor.clone(), at: now, reason: reason.clone() };
            node.cordon = Some(Cordon { annotation, drain: None });
            Ok((Some(put(node, event("node.cordoned", format!("node/{name}"), cause(&reason)))), ()))
        })
        .await
}

/// Ends a cordon or drain. A node that has neither is unchanged.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn uncordon(transactor: &Transactor, scope: NodeScope<'_>) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let mut node = active(fleet, name)?;
            let Some(cordon) = node.cordon.take() else { return Ok((None, ())) };
            let event = event("node.uncordoned", format!("node/{name}"), format!("it was {}", cordon.line()));
            Ok((Some(put(node, event)), ()))
        })
        .await
}

/// The record of an active node.
pub(super) fn active(fleet: &Fleet, name: &NodeName) -> Result<Node, OpError> {
    let found = fleet.active_node(name).map(|kept| Node::clone(&kept.value));
    found.ok_or_else(|| OpError::NotFound(format!("node {name}")))
}

/// Checks that a node reports about itself.
///
/// # Errors
/// [`OpError::Invalid`].
pub(super) fn about_itself(reported: &str, node: &NodeName) -> Result<(), OpError> {
    if reported == node.as_str() {
        return Ok(());
    }
    let reason = format!("{reported:?} is not {node}: a node reports about itself only");
    Err(ShapeError::at("node", reason).into())
}

/// The refusal of what a node reported before what is known of it already.
pub(super) fn overtaken(what: &str, node: &NodeName) -> OpError {
    let reason = format!("take the {what} of node {node}: {LATER_IS_KNOWN}");
    OpError::Moved { reason, hint: "give the next one a larger `sequence`".to_owned() }
}

/// One write of a node, with its event.
pub(super) fn put(node: Node, event: EventDraft) -> Changeset {
    Changeset { writes: vec![Write::put(Record::Node(node))], events: vec![event] }
}
