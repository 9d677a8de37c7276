//! Routes of joining, tokens and join tokens.

use bellwether_api::paths;
use bellwether_api::v1::access::{
    Join, JoinTokenInfo, Joined, NewJoinToken, NewToken, Secret, TokenInfo, WhoAmI,
};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::role::{AccessReview, NewAccessReview, Role, RoleSpec};
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::limits::MAX_JOIN_BYTES;
use super::super::routes::{Empty, Routes, route};
use super::super::{access, roles};

/// Joining, tokens and join tokens.
pub(super) fn access(routes: Routes) -> Routes {
    routes
        .add::<Join, Joined, _, _>(
            route(Post, paths::JOIN, RequiredAccess::Open, "Join with a join token")
                .largest_body(MAX_JOIN_BYTES),
            access::join,
        )
        .add::<Empty, WhoAmI, _, _>(
            route(Get, paths::WHOAMI, RequiredAccess::Token, "Get the caller's identity"),
            access::who_am_i,
        )
        .add::<Empty, Page<TokenInfo>, _, _>(
            route(Get, paths::TOKENS, RequiredAccess::get(ObjectKind::Token), "List tokens").list(),
            access::tokens,
        )
        .add::<NewToken, Secret, _, _>(
            route(Post, paths::TOKENS, RequiredAccess::update(ObjectKind::Token), "Create a token"),
            access::create_token,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::TOKEN, RequiredAccess::delete(ObjectKind::Token), "Delete a token"),
            access::delete_token,
        )
        .add::<NewAccessReview, AccessReview, _, _>(
            route(
                Post,
                paths::ACCESS_REVIEW,
                RequiredAccess::Token,
                "Ask whether the caller may do something",
            ),
            roles::review,
        )
        .add::<Empty, Page<JoinTokenInfo>, _, _>(
            route(Get, paths::JOIN_TOKENS, RequiredAccess::get(ObjectKind::JoinToken), "List join tokens")
                .list(),
            access::join_tokens,
        )
        .add::<NewJoinToken, Secret, _, _>(
            route(
                Post,
                paths::JOIN_TOKENS,
                RequiredAccess::update(ObjectKind::JoinToken),
                "Create a join token",
            ),
            access::create_join_token,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::JOIN_TOKEN,
                RequiredAccess::delete(ObjectKind::JoinToken),
                "Revoke a join token",
            ),
            access::delete_join_token,
        )
}

/// Roles.
pub(super) fn roles(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Role>, _, _>(
            route(Get, paths::ROLES, RequiredAccess::get(ObjectKind::Role), "List roles").list(),
            roles::list,
        )
        .add::<Empty, Role, _, _>(
            route(Get, paths::ROLE, RequiredAccess::get(ObjectKind::Role), "Get a role"),
            roles::get,
        )
        .add::<RoleSpec, Role, _, _>(
            route(Put, paths::ROLE, RequiredAccess::update(ObjectKind::Role), "Set the claims of a role")
                .creates(),
            roles::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::ROLE,
                RequiredAccess::delete(ObjectKind::Role),
                "Delete a role that no token has",
            ),
            roles::delete,
        )
}
