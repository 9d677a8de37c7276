//! Whether a join token lets a node in.

use bellwether_core::records::token::{JoinToken, JoinsAs};
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;

use crate::ops::OpError;

/// The token with this hash.
///
/// # Errors
/// [`OpError::JoinToken`] for one that is unknown, used, expired, or for another name or namespace.
pub(super) fn usable(
    world: &World,
    hash: &str,
    namespace: &Namespace,
    name: &NodeName,
    now: Timestamp,
) -> Result<JoinToken, OpError> {
    let token =
        world.join_tokens.get(hash).ok_or(OpError::JoinToken("the join token is unknown or was revoked"))?;
    let token = &*token.value;
    if token.joins_as != JoinsAs::Node {
        return Err(OpError::JoinToken(
            "the join token is for a server: use it with `bellwether server join`",
        ));
    }
    if token.used.is_some() {
        return Err(OpError::JoinToken("the join token was used already; each is for one node"));
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
