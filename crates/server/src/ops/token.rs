//! Operations on API tokens and join tokens: create, delete.

use bellwether_api::client::secret::Secret;
use bellwether_api::shape::{ShapeError, read, read_some};
use bellwether_api::v1::access::{NewJoinToken, NewToken, only_in, patterns, service_patterns};
use bellwether_api::v1::role::role_names;
use bellwether_core::access::NamePattern;
use bellwether_core::access::Role;
use bellwether_core::records::key::global::{GlobalKey, GlobalRecord};
use bellwether_core::records::node::PresenceState;
use bellwether_core::records::token::{JoinToken, JoinsAs, Token};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, Namespace, NodeName, RoleName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;

use super::grant::{Grantor, access_namespace, grantable};
use super::{OpError, admins, event};
use crate::pki::Pki;
use crate::transactor::Transactor;
use crate::{rights, secret};

/// Longest lifetime of a token that expires: whoever names one forgets it over a longer time.
const LONGEST_LIFE: Span = Span::from_secs(365 * 86_400);

/// Who the events of a recovery name.
pub(crate) const RECOVERY: &str = "recovery";

/// Longest lifetime of a join token.
const JOIN_TOKEN_LIFE: Span = Span::from_secs(3_600);

/// Creates a token and returns its secret, which cannot be read again.
///
/// # Errors
/// [`OpError::Exists`] when the name is taken, [`OpError::Ungrantable`] for rights that the author lacks, [`OpError::Invalid`].
pub async fn create(
    transactor: &Transactor,
    author: Grantor<'_>,
    request: &NewToken,
) -> Result<Secret, OpError> {
    let name: Actor = read("name", &request.name)?;
    refuse_name(name.as_str())?;
    let (roles, only_in) = (role_names(&request.roles)?, only_in(request.only_in.as_deref())?);
    let life: Option<Span> = read_some("expires_in", request.expires_in.as_deref())?;
    if life.is_some_and(|life| life == Span::ZERO || life > LONGEST_LIFE) {
        return Err(ShapeError::at("expires_in", "must be over 0s and at most 365d").into());
    }
    let secret = secret::new_token()?;
    let secret_hash = secret::hash(secret.expose().as_bytes());
    transactor
        .change(&access_namespace()?, author.actor, |world, _, now| {
            if world.tokens.values().any(|token| token.value.name == name) {
                let reason = "the name is in use; delete that token first".to_owned();
                return Err(OpError::Exists { what: format!("create token {name}"), reason });
            }
            let expires_at = life.map(|life| now.plus(life));
            outlives(world, author.actor, expires_at, now)?;
            let token = Token {
                name: name.clone(),
                roles: roles.clone(),
                only_in: only_in.clone(),
                secret_hash: secret_hash.clone(),
                created_at: now,
                expires_at,
            };
            let unknown = roles.iter().find(|role| rights::claims(world, role).is_none());
            if let Some(role) = unknown {
                return Err(unknown_role(world, role));
            }
            let granted = rights::of(world, &token);
            grantable(author.rights, &granted.claims(), &format!("create token {name}"))?;
            let event = event("token.created", format!("token/{name}"), granted.describe());
            // Its roles are written again, so that none of them is deleted at the same time.
            let held = roles.iter().filter_map(|role| world.roles.get(role));
            let held = held.map(|kept| Write::put(GlobalRecord::Role(Role::clone(&kept.value))));
            let writes = held.chain([Write::put(GlobalRecord::Token(token))]).collect();
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await?;
    Ok(secret)
}

/// Refuses a token that would outlive the one that makes it.
fn outlives(
    world: &World,
    author: &Actor,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), ShapeError> {
    let own = world.tokens.values().find(|token| token.value.name == *author);
    let Some(end) = own.and_then(|token| token.value.expires_at) else { return Ok(()) };
    if expires_at.is_some_and(|expires_at| expires_at <= end) {
        return Ok(());
    }
    let left = end.since(now).brief();
    Err(ShapeError::at("expires_in", format!("must be at most {left}: your own token expires then")))
}

/// Refuses names of new tokens that are those of other callers, whose names have a slash, or are no name within a path.
fn refuse_name(name: &str) -> Result<(), ShapeError> {
    if name == "bellwether" || name == RECOVERY {
        return Err(ShapeError::at("name", "the name is reserved"));
    }
    if name.contains('/') || matches!(name, "." | "..") {
        return Err(ShapeError::at("name", "must not contain '/', nor be '.' or '..'"));
    }
    Ok(())
}

/// Deletes a token, which stops working at once.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] for the last admin token.
pub async fn delete(transactor: &Transactor, actor: &Actor, name: &str) -> Result<(), OpError> {
    let namespace = access_namespace()?;
    transactor
        .change(&namespace, actor, |world, _, _| {
            // Of two that were created at the same time with one name, none must be left.
            let named = world.tokens.values().filter(|token| token.value.name.as_str() == name);
            let writes: Vec<Write> =
                named.map(|token| Write::delete(GlobalKey::Token(token.value.secret_hash.clone()))).collect();
            if writes.is_empty() {
                return Err(OpError::NotFound(format!("token {name}")));
            }
            let guards = admins::left_by(world, &namespace, &writes, &format!("delete token {name}"))?;
            let event = event("token.deleted", format!("token/{name}"), "deleted");
            Ok((Some(Changeset { writes, events: vec![event] }.guarded_by(guards)), ()))
        })
        .await
}

/// What a join token gives, in one line.
fn describe(token: &JoinToken) -> String {
    let join =
        |patterns: &[NamePattern]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    format!("valid for one node, labels [{}], services [{}]", join(&token.labels), join(&token.services))
}

/// Creates a join token and returns its secret, which cannot be read again.
///
/// # Errors
/// [`OpError::Invalid`] for a lifetime over an hour, or an invalid name; [`OpError::Refused`] for the name of a node that is up.
pub async fn create_join(
    transactor: &Transactor,
    pki: &Pki,
    actor: &Actor,
    request: &NewJoinToken,
) -> Result<Secret, OpError> {
    let node: Option<NodeName> = read_some("node", request.node.as_deref())?;
    let namespace: Namespace = read("namespace", request.namespace.as_deref().unwrap_or("default"))?;
    let life = read_some("expires_in", request.expires_in.as_deref())?.unwrap_or(JOIN_TOKEN_LIFE);
    if life > JOIN_TOKEN_LIFE || life == Span::ZERO {
        return Err(ShapeError::at("expires_in", "must be over 0s and at most 1h").into());
    }
    let (labels, services) =
        (patterns("labels", &request.labels)?, service_patterns("services", &request.services)?);
    let authority = pki.live().active().to_owned();
    let secret = secret::new_join_token(&authority)?;
    let secret_hash = secret::hash(secret.expose().as_bytes());
    transactor
        .change(&access_namespace()?, actor, |world, _, now| {
            if let Some(node) = &node {
                refuse_if_up(world, &namespace, node)?;
            }
            let token = JoinToken {
                secret_hash: secret_hash.clone(),
                joins_as: JoinsAs::Node,
                namespace: namespace.clone(),
                node: node.clone(),
                labels: labels.clone(),
                services: services.clone(),
                authority: Some(authority.clone()),
                created_by: actor.clone(),
                expires_at: now.plus(life),
                used: None,
            };
            token.given_labels().map_err(|reason| ShapeError::at("labels", reason))?;
            let id: String = secret_hash.chars().take(12).collect();
            let event = event("token.created", format!("join-token/{id}"), describe(&token));
            let writes = vec![Write::put(GlobalRecord::JoinToken(token))];
            Ok::<_, OpError>((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await?;
    Ok(secret)
}

/// Refuses a join token for a node that is up: no other machine can join under its name. One that is cut off can join again
/// with its own key.
fn refuse_if_up(world: &World, namespace: &Namespace, node: &NodeName) -> Result<(), OpError> {
    let fleet = world.fleets.get(namespace);
    let active = fleet.filter(|fleet| fleet.active_node(node).is_some());
    let presence = active.and_then(|fleet| fleet.presences.get(node));
    if presence.is_none_or(|presence| presence.value.contact != PresenceState::Up) {
        return Ok(());
    }
    let reason = format!("create a join token for {node}: a node of this name is up");
    let hint = format!("if another machine is to have the name: bellwether node decommission {node}");
    Err(OpError::Refused { reason, hint: Some(hint) })
}

/// Deletes a join token, given by the first characters of its hash.
///
/// # Errors
/// [`OpError::NotFound`] when no join token's hash begins so, or more than one.
pub async fn delete_join(transactor: &Transactor, actor: &Actor, id: &str) -> Result<(), OpError> {
    transactor
        .change(&access_namespace()?, actor, |world, _, _| {
            let mut found = world.join_tokens.keys().filter(|hash| !id.is_empty() && hash.starts_with(id));
            let (Some(hash), None) = (found.next(), found.next()) else {
                return Err(OpError::NotFound(format!("join token {id}")));
            };
            let event = event("token.deleted", format!("join-token/{id}"), "revoked");
            let writes = vec![Write::delete(GlobalKey::JoinToken(hash.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// The error for a role that does not exist, with all there are.
fn unknown_role(world: &World, role: &RoleName) -> OpError {
    let known: Vec<String> = super::role::list(world).into_iter().map(|role| role.name).collect();
    ShapeError::at("roles", format!("there is no role {role}; known: {}", known.join(", "))).into()
}
