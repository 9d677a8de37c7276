//! The rights of tokens: the claims of their roles, built-in ones and those of the installation.

use std::sync::LazyLock;

use bellwether_core::access::{BUILT_IN, Claims, Rights, built_in};
use bellwether_core::records::token::Token;
use bellwether_core::words::name::RoleName;
use bellwether_core::world::World;

/// The built-in roles, read once.
static BUILT_IN_CLAIMS: LazyLock<Vec<(RoleName, Claims)>> = LazyLock::new(|| {
    let names = BUILT_IN.iter().filter_map(|role| RoleName::parse(role.name).ok());
    names.filter_map(|name| built_in(&name).map(|claims| (name, claims))).collect()
});

/// The claims of a role; `None` if there is none of this name.
pub(crate) fn claims(world: &World, role: &RoleName) -> Option<Claims> {
    let of_all = BUILT_IN_CLAIMS.iter().find(|(name, _)| name == role).map(|(_, claims)| claims.clone());
    of_all.or_else(|| world.roles.get(role).map(|kept| kept.value.claims.clone()))
}

/// What a token may do. A role that was deleted permits nothing.
pub(crate) fn of(world: &World, token: &Token) -> Rights {
    let roles = token.roles.iter().filter_map(|role| Some((role.clone(), claims(world, role)?)));
    Rights::new(roles.collect(), token.only_in.clone())
}
