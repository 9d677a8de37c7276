//! API tokens, join tokens, joining, and the identity of the caller, over HTTP.

use axum::Extension;
use axum::extract::State;
use bellwether_api::list::tables::{JOIN_TOKENS, TOKENS};
use bellwether_api::shape::read;
use bellwether_api::v1::access::{
    Join, JoinTokenInfo, Joined, NewJoinToken, NewToken, Renew, Secret, TokenInfo, WhoAmI,
};
use bellwether_api::v1::role::Claim;
use bellwether_core::access::{Identity, ObjectKind, Right, Rights};
use bellwether_core::records::authorities::NodeTrust;
use bellwether_core::words::counter::AuthoritiesVersion;
use bellwether_core::words::name::{Namespace, NodeName};

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Node, QueryParams, TokenText};
use super::list::{ListAnswer, ListQuery};
use super::listen::Peer;
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::expectation::member_pointer;
use crate::ops::grant::Grantor;
use crate::ops::scope::NodeScope;
use crate::pki::IssuedCertificate;

pub(crate) async fn who_am_i(caller: Authenticated) -> JsonAnswer<WhoAmI> {
    let rights = caller.0.rights();
    let claims = rights.map(Rights::claims).unwrap_or_default();
    JsonAnswer(WhoAmI {
        actor: caller.actor().to_string(),
        roles: rights.into_iter().flat_map(Rights::roles).map(ToString::to_string).collect(),
        only_in: rights.and_then(Rights::only_in).map(ToString::to_string),
        claims: claims.iter().map(Claim::from).collect(),
    })
}

pub(crate) async fn tokens(State(app): State<AppState>, query: QueryParams) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &TOKENS, &[])?;
    let world = app.world();
    let mut items: Vec<TokenInfo> = world.tokens.values().map(|kept| (&*kept.value).into()).collect();
    items.sort_by(|one, other| one.name.cmp(&other.name));
    list.answer_json((&TOKENS, app.clock.now()), items.into_iter(), world.revision)
}

pub(crate) async fn create_token(
    State(app): State<AppState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<NewToken>,
) -> Result<JsonAnswer<Secret>, Failure> {
    caller.require(Right::update(ObjectKind::Token), Some(&request.name), None)?;
    let actor = caller.actor();
    let author = Grantor { actor: &actor, rights: caller.rights()? };
    let secret = ops::token::create(&app.records.transactor, author, &request).await?;
    Ok(JsonAnswer(Secret { secret: secret.expose().to_owned() }))
}

pub(crate) async fn delete_token(
    State(app): State<AppState>,
    caller: Authenticated,
    TokenText(name): TokenText,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::token::delete(&app.records.transactor, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn join_tokens(
    State(app): State<AppState>,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &JOIN_TOKENS, &[])?;
    let world = app.world();
    let all = world.join_tokens.values().map(|kept| &*kept.value);
    let tokens = all.filter(|token| {
        let info = JoinTokenInfo::from(*token);
        query.readable.has_in(ObjectKind::JoinToken, &info.id, &token.namespace)
    });
    let tokens = tokens.map(JoinTokenInfo::from);
    list.answer_json((&JOIN_TOKENS, app.clock.now()), tokens, world.revision)
}

pub(crate) async fn create_join_token(
    State(app): State<AppState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<NewJoinToken>,
) -> Result<JsonAnswer<Secret>, Failure> {
    let namespace = read("namespace", request.namespace.as_deref().unwrap_or("default"))?;
    caller.require(Right::update(ObjectKind::JoinToken), None, Some(&namespace))?;
    let right = match request.node {
        Some(_) => Right::update_field(ObjectKind::Node, "/labels"),
        None => Right::update_field(ObjectKind::Node, "/labels").of_all(),
    };
    for label in &request.labels {
        // Who lets a machine choose a label could set it: nobody gets around their own rights through a machine.
        let field = label.split_once('=').map(|(key, _)| format!("/labels{}", member_pointer(key)));
        let field = field.as_deref().unwrap_or("/labels");
        caller.require_field(right, field, (request.node.as_deref(), Some(&namespace)))?;
    }
    let secret =
        ops::token::create_join(&app.records.transactor, &app.identity.pki, &caller.actor(), &request)
            .await?;
    Ok(JsonAnswer(Secret { secret: secret.expose().to_owned() }))
}

pub(crate) async fn delete_join_token(
    State(app): State<AppState>,
    caller: Authenticated,
    TokenText(id): TokenText,
) -> Result<JsonAnswer<Empty>, Failure> {
    let right = Right::delete(ObjectKind::JoinToken);
    let world = app.world();
    let named = world.join_tokens.iter().filter(|(hash, _)| !id.is_empty() && hash.starts_with(&id));
    for (_, token) in named {
        caller.require(right, Some(&id), Some(&token.value.namespace))?;
    }
    ops::token::delete_join(&app.records.transactor, &caller.actor(), &id).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn join(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<Join>,
) -> Result<JsonAnswer<Joined>, Failure> {
    let issued = ops::node::join(&app.records.transactor, &app.identity.pki, request).await?;
    Ok(JsonAnswer(joined(issued)))
}

pub(crate) async fn renew(
    State(app): State<AppState>,
    caller: Authenticated,
    peer: Option<Extension<Peer>>,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
    JsonBody(request): JsonBody<Renew>,
) -> Result<JsonAnswer<Joined>, Failure> {
    let actor = caller.actor();
    let scope = NodeScope { namespace: &namespace, node: &name, actor: &actor };
    let shown = peer.and_then(|Extension(peer)| peer.bearer).map(|bearer| bearer.key_fingerprint);
    let (transactor, pki) = (&app.records.transactor, &app.identity.pki);
    let issued = ops::node::renew(transactor, pki, scope, &shown.unwrap_or_default(), &request).await?;
    Ok(JsonAnswer(joined(issued)))
}

/// Notes that a node has shown the key that its certificate was renewed for, and, once there is more than one authority, which of them it
/// knows. What cannot be noted now is noted at its next poll.
pub(super) async fn note_shown(
    app: &AppState,
    (namespace, name): (&Namespace, &NodeName),
    (peer, authorities): (Option<Peer>, Option<u64>),
) {
    let Some(bearer) = peer.and_then(|peer| peer.bearer).filter(|bearer| bearer.node == *name) else {
        return;
    };
    let version = AuthoritiesVersion::new(authorities.unwrap_or_default());
    let trust = bearer.issuer.as_deref().map(|issuer| NodeTrust { version, issuer: issuer.to_owned() });
    let (is_news, trust) = {
        let world = app.world();
        let trust = trust.filter(|_| world.authorities.is_some());
        let node = world.fleets.get(namespace).and_then(|fleet| fleet.active_node(name));
        let is_news = node.is_some_and(|node| {
            node.value.is_next_key(&bearer.key_fingerprint) || trust.is_some() && node.value.trust != trust
        });
        (is_news, trust)
    };
    if !is_news {
        return;
    }
    let actor = Identity::Node(name.clone()).actor();
    let scope = NodeScope { namespace, node: name, actor: &actor };
    let shown = (bearer.key_fingerprint.as_str(), trust.as_ref());
    if let Err(error) = ops::node::key_shown(&app.records.transactor, scope, shown).await {
        tracing::warn!(node = %name, %error, "cannot note what a node has shown");
    }
}

fn joined(issued: IssuedCertificate) -> Joined {
    let expires_at_ms = issued.expires_at.as_millis();
    Joined { certificate: issued.pem, ca: issued.trusted.1, expires_at_ms }
}
