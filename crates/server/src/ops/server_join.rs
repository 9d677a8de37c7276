//! Operations by which a machine becomes a server: its join token, and its use. The keys themselves are not seen here.

use bellwether_api::client::secret::Secret;
use bellwether_api::shape::{ShapeError, read, read_some};
use bellwether_api::v1::server_join::NewServerToken;
use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::records::token::{JoinToken, JoinsAs};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, NodeName, ServerName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;

use super::grant::access_namespace;
use super::{OpError, event};
use crate::pki::Pki;
use crate::secret;
use crate::transactor::Transactor;

/// How the actor begins of what a joining server does.
pub(super) const SERVER_ACTOR: &str = "server/";

/// Lifetime of a join token for a server: it is created for a machine that stands ready, and gives everything away.
const USUAL_LIFE: Span = Span::from_secs(900);

/// Longest lifetime of a join token for a server.
const MAX_LIFE: Span = Span::from_secs(3_600);

/// Creates a join token for a server and returns its secret, which cannot be read again.
///
/// # Errors
/// [`OpError::Invalid`] for a lifetime over an hour.
pub async fn create_token(
    transactor: &Transactor,
    pki: &Pki,
    actor: &Actor,
    request: &NewServerToken,
) -> Result<Secret, OpError> {
    let life = read_some("expires_in", request.expires_in.as_deref())?.unwrap_or(USUAL_LIFE);
    if life > MAX_LIFE || life == Span::ZERO {
        return Err(ShapeError::at("expires_in", "must be over 0s and at most 1h").into());
    }
    let authority = pki.live().active().to_owned();
    let secret = secret::new_server_token(&authority)?;
    let secret_hash = secret::hash(secret.expose().as_bytes());
    let namespace = access_namespace()?;
    transactor
        .change(&namespace, actor, |_, _, now| {
            let token = JoinToken {
                secret_hash: secret_hash.clone(),
                joins_as: JoinsAs::Server,
                namespace: namespace.clone(),
                node: None,
                labels: Vec::new(),
                services: Vec::new(),
                authority: Some(authority.clone()),
                created_by: actor.clone(),
                expires_at: now.plus(life),
                used: None,
            };
            let id: String = secret_hash.chars().take(12).collect();
            let event = event("token.created", format!("join-token/{id}"), "valid for one server");
            let writes = vec![Write::put(GlobalRecord::JoinToken(token))];
            Ok::<_, OpError>((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await?;
    Ok(secret)
}

/// Uses up the join token of a server of this name. The keys may be sent once this is committed.
///
/// # Errors
/// [`OpError::JoinToken`]; [`OpError::Exists`] if a live server has the name.
pub async fn join(transactor: &Transactor, token: &str, name: &ServerName) -> Result<(), OpError> {
    let hash = secret::hash(token.as_bytes());
    let actor = Actor::parse(&format!("{SERVER_ACTOR}{name}"))
        .map_err(|error| ShapeError::at("name", error.to_string()))?;
    let used_by: NodeName = read("name", name.as_str())?;
    transactor
        .change(&access_namespace()?, &actor, |world, _, now| {
            let token = usable(world, &hash, now)?;
            if world.servers.contains_key(name) {
                let reason = "a live server has the name; pick another".to_owned();
                return Err(OpError::Exists { what: format!("join as {name}"), reason });
            }
            let cause =
                format!("received the keys of the installation with a join token of {}", token.created_by);
            let event = event("server.joined", format!("server/{name}"), cause);
            let used = JoinToken { used: Some((used_by.clone(), now)), ..token };
            let writes = vec![Write::put(GlobalRecord::JoinToken(used))];
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// The token with this hash, if a server can join with it now.
fn usable(world: &World, hash: &str, now: Timestamp) -> Result<JoinToken, OpError> {
    let found = world.join_tokens.get(hash).map(|kept| &*kept.value);
    let token = found.ok_or(OpError::JoinToken("the join token is unknown or was revoked"))?;
    if token.joins_as != JoinsAs::Server {
        return Err(OpError::JoinToken("the join token is for a node: use it with `bellwether agent join`"));
    }
    if token.used.is_some() {
        return Err(OpError::JoinToken("the join token was used already; each is for one server"));
    }
    if token.expires_at <= now {
        return Err(OpError::JoinToken("the join token has expired"));
    }
    Ok(token.clone())
}
