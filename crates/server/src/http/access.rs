//! Tokens, joining and "who am I" over HTTP.

use axum::extract::State;
use bellwether_api::v1::access::{
    Join, JoinTokenInfo, Joined, NewJoinToken, NewToken, Renew, Secret, TokenInfo, WhoAmI,
};
use bellwether_api::v1::page::Page;
use bellwether_core::access::Identity;

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Node, Ns, TokenText};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;
use crate::pki::Issued;

pub(crate) async fn who_am_i(caller: Caller) -> Answer<WhoAmI> {
    let role = match &caller.0 {
        Identity::Bearer { role, .. } => Some(role.to_string()),
        Identity::Node(_) | Identity::Anonymous => None,
    };
    Answer(WhoAmI { actor: caller.actor().to_string(), role })
}

pub(crate) async fn tokens(State(app): State<App>) -> Answer<Page<TokenInfo>> {
    let world = app.world();
    let mut items: Vec<TokenInfo> = world.tokens.values().map(|kept| (&*kept.value).into()).collect();
    items.sort_by(|one, other| one.name.cmp(&other.name));
    Answer(Page { items, next: None, revision: world.revision.get() })
}

pub(crate) async fn create_token(
    State(app): State<App>,
    caller: Caller,
    Body(request): Body<NewToken>,
) -> Result<Answer<Secret>, Failure> {
    let secret = ops::token::create(&app.desk, &caller.actor(), &request).await?;
    Ok(Answer(Secret { secret: secret.expose().to_owned() }))
}

pub(crate) async fn delete_token(
    State(app): State<App>,
    caller: Caller,
    TokenText(name): TokenText,
) -> Result<Answer<Nothing>, Failure> {
    ops::token::delete(&app.desk, &caller.actor(), &name).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn join_tokens(State(app): State<App>) -> Answer<Page<JoinTokenInfo>> {
    let world = app.world();
    let items = world.join_tokens.values().map(|kept| (&*kept.value).into()).collect();
    Answer(Page { items, next: None, revision: world.revision.get() })
}

pub(crate) async fn create_join_token(
    State(app): State<App>,
    caller: Caller,
    Body(request): Body<NewJoinToken>,
) -> Result<Answer<Secret>, Failure> {
    let secret = ops::token::create_join(&app.desk, &app.pki, &caller.actor(), &request).await?;
    Ok(Answer(Secret { secret: secret.expose().to_owned() }))
}

pub(crate) async fn delete_join_token(
    State(app): State<App>,
    caller: Caller,
    TokenText(id): TokenText,
) -> Result<Answer<Nothing>, Failure> {
    ops::token::delete_join(&app.desk, &caller.actor(), &id).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn join(
    State(app): State<App>,
    Body(request): Body<Join>,
) -> Result<Answer<Joined>, Failure> {
    let issued = ops::node::join(&app.desk, &app.pki, request).await?;
    Ok(Answer(joined(&app, issued)))
}

pub(crate) async fn renew(
    State(app): State<App>,
    (Ns(namespace), Node(name)): (Ns, Node),
    Body(request): Body<Renew>,
) -> Result<Answer<Joined>, Failure> {
    let issued = ops::node::renew(&app.desk, &app.pki, (&namespace, &name), &request)?;
    Ok(Answer(joined(&app, issued)))
}

fn joined(app: &App, issued: Issued) -> Joined {
    let expires_at_ms = issued.expires_at.as_millis();
    Joined { certificate: issued.pem, ca: app.pki.ca_pem().to_owned(), expires_at_ms }
}
