//! The last admin: whoever changes tokens or roles leaves one token behind that may do everything and does not expire.

use bellwether_core::records::key::AnyKey;
use bellwether_core::records::key::global::GlobalKey;
use bellwether_core::records::token::Token;
use bellwether_core::verdict::Write;
use bellwether_core::words::name::Namespace;
use bellwether_core::world::World;

use super::OpError;
use crate::rights;

/// The records that make a token one that may do everything for good, of the first such token; `None` if there is none. A change
/// that is committed only if these are unchanged cannot race with another one to the last admin.
fn lasting(world: &World) -> Option<Vec<AnyKey>> {
    let lasts = |token: &Token| token.expires_at.is_none() && rights::of(world, token).is_everything();
    let token = world.tokens.values().map(|kept| &*kept.value).find(|token| lasts(token))?;
    let roles = token.roles.iter().filter(|role| world.roles.contains_key(*role));
    let roles = roles.map(|role| AnyKey::from(GlobalKey::Role(role.clone())));
    Some([AnyKey::from(GlobalKey::Token(token.secret_hash.clone()))].into_iter().chain(roles).collect())
}

/// What must be unchanged when these writes are committed, so that an admin is left.
///
/// # Errors
/// [`OpError::Refused`], with `what`, if they would leave none.
pub(super) fn left_by(
    world: &World,
    namespace: &Namespace,
    writes: &[Write],
    what: &str,
) -> Result<Vec<AnyKey>, OpError> {
    let mut after = world.clone();
    let own: Vec<AnyKey> = writes.iter().map(Write::key).collect();
    for write in writes {
        write.clone().apply_to(&mut after, namespace, world.revision);
    }
    match (lasting(&after), lasting(world)) {
        // What is written is compared already.
        (Some(keys), _) => Ok(keys.into_iter().filter(|key| !own.contains(key)).collect()),
        (None, None) => Ok(Vec::new()),
        (None, Some(_)) => Err(OpError::Refused {
            reason: format!("{what}: no admin token that does not expire would be left"),
            hint: Some("create another one first: bellwether token create NAME --role admin".to_owned()),
        }),
    }
}
