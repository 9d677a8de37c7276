//! The certificate authorities, over HTTP.

use std::time::Duration;

use axum::extract::State;
use bellwether_api::v1::authorities::{
    Authorities, Authority, AuthorityPhase, ChangeAuthorities, TrustBundle,
};
use bellwether_core::decide::authorities::{FoundingAuthority, progress};
use bellwether_core::words::time::Timestamp;

use super::auth::Authenticated;
use super::input::{JsonAnswer, OptionalBody};
use super::problem::Failure;
use super::state::AppState;
use crate::ops;
use crate::pki;

/// Longest wait for this server to take in what was changed, which takes milliseconds.
const TAKEN_IN: Duration = Duration::from_secs(5);

pub(crate) async fn get(State(app): State<AppState>) -> Result<JsonAnswer<Authorities>, Failure> {
    shown(&app)
}

pub(crate) async fn bundle(State(app): State<AppState>) -> JsonAnswer<TrustBundle> {
    let live = app.identity.pki.live();
    JsonAnswer(TrustBundle { version: live.version(), certificates: live.bundle().to_owned() })
}

pub(crate) async fn rotate(
    State(app): State<AppState>,
    caller: Authenticated,
    OptionalBody(change): OptionalBody<ChangeAuthorities>,
) -> Result<JsonAnswer<Authorities>, Failure> {
    ops::authorities::rotate(&app.records.transactor, &founding(&app), &caller.actor(), &change).await?;
    taken_in(&app).await;
    shown(&app)
}

pub(crate) async fn activate(
    State(app): State<AppState>,
    caller: Authenticated,
    OptionalBody(change): OptionalBody<ChangeAuthorities>,
) -> Result<JsonAnswer<Authorities>, Failure> {
    ops::authorities::activate(&app.records.transactor, &founding(&app), &caller.actor(), &change).await?;
    taken_in(&app).await;
    shown(&app)
}

pub(crate) async fn retire(
    State(app): State<AppState>,
    caller: Authenticated,
    OptionalBody(change): OptionalBody<ChangeAuthorities>,
) -> Result<JsonAnswer<Authorities>, Failure> {
    ops::authorities::retire(&app.records.transactor, &founding(&app), &caller.actor(), &change).await?;
    taken_in(&app).await;
    shown(&app)
}

pub(crate) async fn cancel(
    State(app): State<AppState>,
    caller: Authenticated,
    OptionalBody(change): OptionalBody<ChangeAuthorities>,
) -> Result<JsonAnswer<Authorities>, Failure> {
    ops::authorities::cancel(&app.records.transactor, &caller.actor(), &change).await?;
    taken_in(&app).await;
    shown(&app)
}

fn founding(app: &AppState) -> FoundingAuthority {
    ops::authorities::founding(&app.identity.pki, &app.identity.installation)
}

/// Waits until this server has taken in what was changed, so that whoever asks for the certificates next receives those.
async fn taken_in(app: &AppState) {
    let version = app.world().authorities.as_ref().map_or(0, |kept| kept.value.version.get());
    let mut live = app.identity.pki.follow();
    let waited = tokio::time::timeout(TAKEN_IN, live.wait_for(|live| live.version() >= version)).await;
    if waited.is_err() {
        tracing::warn!(version, "this server has not taken in the certificate authorities yet");
    }
}

fn shown(app: &AppState) -> Result<JsonAnswer<Authorities>, Failure> {
    let (world, founding) = (app.world(), founding(app));
    let behind = progress(&world, &founding, app.clock.now());
    let mut authorities = Vec::new();
    let present = world.authorities.as_ref().map(|kept| &*kept.value);
    for authority in present.into_iter().flat_map(|present| &present.all) {
        authorities.push(Authority {
            fingerprint: authority.fingerprint.clone(),
            phase: authority.phase.into(),
            since_ms: Some(authority.since.as_millis()),
            expires_at_ms: pki::expires(&authority.certificate).map_err(ops::OpError::from)?.as_millis(),
        });
    }
    if present.is_none() {
        authorities.push(Authority {
            expires_at_ms: pki::expires(&founding.certificate).map_err(ops::OpError::from)?.as_millis(),
            fingerprint: founding.fingerprint,
            phase: AuthorityPhase::Active,
            since_ms: founding.since.map(Timestamp::as_millis),
        });
    }
    Ok(JsonAnswer(Authorities {
        version: present.map_or(0, |present| present.version.get()),
        authorities,
        nodes: u64::try_from(behind.nodes).unwrap_or(u64::MAX),
        not_trusting_next: behind.not_trusting_next,
        not_renewed: behind.not_renewed,
        servers_without_key: behind.servers_without_key.iter().map(ToString::to_string).collect(),
        old_join_tokens: behind.old_join_tokens,
    }))
}
