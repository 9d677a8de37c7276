//! Joining of servers over HTTP: a join token, and the keys that are sent for it.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::shape::read;
use bellwether_api::v1::access::Secret;
use bellwether_api::v1::server_join::{EtcdAccess, JoinServer, JoinedServer, NewServerToken};

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, OptionalBody};
use super::problem::Failure;
use super::state::AppState;
use crate::config::etcd::Etcd;
use crate::key_files::KeyFiles;
use crate::ops;
use crate::ops::OpError;

pub(crate) async fn create_token(
    State(app): State<AppState>,
    caller: Authenticated,
    OptionalBody(request): OptionalBody<NewServerToken>,
) -> Result<JsonAnswer<Secret>, Failure> {
    shared(&app)?;
    // Who has the authority's key can be anybody: nobody gets there with fewer rights than all.
    if !caller.rights()?.is_everything() {
        let detail = "forbidden: a join token for a server gives the keys of the installation, so it needs every right";
        return Err(Failure::new(Code::Forbidden, detail).hint("use a token with the role admin"));
    }
    let (transactor, pki) = (&app.records.transactor, &app.identity.pki);
    let secret = ops::server_join::create_token(transactor, pki, &caller.actor(), &request).await?;
    Ok(JsonAnswer(Secret { secret: secret.expose().to_owned() }))
}

pub(crate) async fn join(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<JoinServer>,
) -> Result<JsonAnswer<JoinedServer>, Failure> {
    let name = read("name", &request.name)?;
    let etcd = shared(&app)?;
    // Read before the token is used up: afterwards nothing may fail.
    let files = app.identity.key_files.clone();
    let KeyFiles { ca_key, secret_keys } = tokio::task::spawn_blocking(move || files.read())
        .await
        .map_err(|error| Failure::new(Code::Internal, error.to_string()))?
        .map_err(|error| Failure::new(Code::Internal, format!("cannot {error}")))?;
    let used = ops::server_join::join(&app.records.transactor, &request.token, &name).await;
    used.map_err(|error| {
        let is_token = matches!(error, OpError::JoinToken(_));
        let failure = Failure::from(error);
        if is_token { failure.hint("create a new one: bellwether server join-token") } else { failure }
    })?;
    Ok(JsonAnswer(JoinedServer {
        installation: app.identity.installation.id.clone(),
        ca: app.identity.pki.ca_pem().to_owned(),
        ca_key,
        secret_keys,
        etcd: access(etcd),
    }))
}

/// The etcd that servers share; a refusal if the store is this server's own.
fn shared(app: &AppState) -> Result<&Etcd, Failure> {
    app.identity.etcd.as_ref().ok_or_else(|| {
        let detail = "cannot bring in another server: the store is in the data directory of this one, and no other can use it";
        Failure::new(Code::Refused, detail)
            .hint("move the records to an etcd first: bellwether server migrate")
    })
}

fn access(etcd: &Etcd) -> EtcdAccess {
    let (cert_file, key_file) = etcd.identity.clone().unzip();
    let Etcd { endpoints, prefix, ca_file, .. } = etcd.clone();
    EtcdAccess { endpoints, prefix, ca_file, cert_file, key_file }
}
