//! Operations on roles: set, delete, list. Nobody can put a claim into a role that their own rights do not cover.

use bellwether_api::shape::description;
use bellwether_api::v1::role::{Claim, Role as RoleView, RoleSpec};
use bellwether_core::access::BUILT_IN;
use bellwether_core::records::key::global::{GlobalKey, GlobalRecord};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, RoleName};
use bellwether_core::world::World;

use super::grant::{Grantor, access_namespace, grantable};
use super::{OpError, admins, event};
use crate::transactor::Transactor;

/// Creates a role, or replaces its claims; answers whether it is new.
///
/// # Errors
/// [`OpError::Forbidden`] naming the claim that the author lacks; [`OpError::Refused`] for a built-in role; [`OpError::Invalid`].
pub async fn set(
    transactor: &Transactor,
    author: Grantor<'_>,
    name: &RoleName,
    spec: &RoleSpec,
) -> Result<bool, OpError> {
    refuse_built_in(name, "change")?;
    let role = spec.role(name.clone())?;
    description(&spec.description, usize::MAX)?;
    grantable(author.rights, &role.claims, &format!("set role {name}"))?;
    let namespace = access_namespace()?;
    transactor
        .change(&namespace, author.actor, |world, _, _| {
            let before = world.roles.get(name).map(|kept| &*kept.value);
            if before == Some(&role) {
                return Ok::<_, OpError>((None, false));
            }
            let claims: Vec<String> = role.claims.iter().map(ToString::to_string).collect();
            let event = event("role.set", format!("role/{name}"), claims.join("; "));
            let writes = vec![Write::put(GlobalRecord::Role(role.clone()))];
            let guards = admins::left_by(world, &namespace, &writes, &format!("set role {name}"))?;
            let changeset = Changeset { writes, events: vec![event] };
            Ok((Some(changeset.guarded_by(guards)), before.is_none()))
        })
        .await
}

/// Deletes a role that no token has.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] for a built-in role and for one that a token has.
pub async fn delete(transactor: &Transactor, actor: &Actor, name: &RoleName) -> Result<(), OpError> {
    refuse_built_in(name, "delete")?;
    transactor
        .change(&access_namespace()?, actor, |world, _, _| {
            if world.roles.get(name).is_none() {
                return Err(OpError::NotFound(format!("role {name}")));
            }
            let bearer = world.tokens.values().find(|token| token.value.roles.contains(name));
            if let Some(bearer) = bearer {
                let token = &bearer.value.name;
                let reason = format!("delete role {name}: token {token} has it");
                let hint = Some(format!("delete the token first: bellwether token delete {token}"));
                return Err(OpError::Refused { reason, hint });
            }
            let event = event("role.deleted", format!("role/{name}"), "no token had it");
            let writes = vec![Write::delete(GlobalKey::Role(name.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// All roles by name, built-in ones first.
#[must_use]
pub fn list(world: &World) -> Vec<RoleView> {
    let names = BUILT_IN.iter().filter_map(|role| RoleName::parse(role.name).ok());
    names.chain(world.roles.keys().cloned()).filter_map(|name| get(world, &name)).collect()
}

/// One role; `None` if there is none of this name.
#[must_use]
pub fn get(world: &World, name: &RoleName) -> Option<RoleView> {
    let built_in = BUILT_IN.iter().find(|role| role.name == name.as_str());
    let own = world.roles.get(name).map(|kept| &kept.value);
    let claims = crate::rights::claims(world, name)?;
    let description = match (built_in, own) {
        (Some(role), _) => role.description.to_owned(),
        (None, own) => own.map(|role| role.description.to_string()).unwrap_or_default(),
    };
    let bearers = world.tokens.values().filter(|token| token.value.roles.contains(name));
    Some(RoleView {
        name: name.to_string(),
        claims: claims.iter().map(Claim::from).collect(),
        description,
        built_in: built_in.is_some(),
        tokens: u64::try_from(bearers.count()).unwrap_or(u64::MAX),
    })
}

fn refuse_built_in(name: &RoleName, verb: &str) -> Result<(), OpError> {
    if BUILT_IN.iter().all(|role| role.name != name.as_str()) {
        return Ok(());
    }
    let reason = format!("{verb} role {name}: it is built in");
    let hint = Some("create a role of another name: bellwether role set NAME CLAIM...".to_owned());
    Err(OpError::Refused { reason, hint })
}
