//! Routes of joining, tokens and join tokens.

use bellwether_api::paths;
use bellwether_api::v1::access::{
    Join, JoinTokenInfo, Joined, NewJoinToken, NewToken, Secret, TokenInfo, WhoAmI,
};
use bellwether_api::v1::page::Page;
use bellwether_core::access::RequiredAccess;
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post};

use super::super::access;
use super::super::routes::{Empty, Routes, route};

/// Joining, tokens and join tokens.
pub(super) fn access(routes: Routes) -> Routes {
    routes
        .add::<Join, Joined, _, _>(
            route(Post, paths::JOIN, RequiredAccess::Open, "Join with a join token"),
            access::join,
        )
        .add::<Empty, WhoAmI, _, _>(
            route(Get, paths::WHOAMI, RequiredAccess::Read, "Get the caller's identity"),
            access::who_am_i,
        )
        .add::<Empty, Page<TokenInfo>, _, _>(
            route(Get, paths::TOKENS, RequiredAccess::Administer, "List tokens").list(),
            access::tokens,
        )
        .add::<NewToken, Secret, _, _>(
            route(Post, paths::TOKENS, RequiredAccess::Administer, "Create a token"),
            access::create_token,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::TOKEN, RequiredAccess::Administer, "Delete a token"),
            access::delete_token,
        )
        .add::<Empty, Page<JoinTokenInfo>, _, _>(
            route(Get, paths::JOIN_TOKENS, RequiredAccess::Administer, "List join tokens").list(),
            access::join_tokens,
        )
        .add::<NewJoinToken, Secret, _, _>(
            route(Post, paths::JOIN_TOKENS, RequiredAccess::Administer, "Create a join token"),
            access::create_join_token,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::JOIN_TOKEN, RequiredAccess::Administer, "Revoke a join token"),
            access::delete_join_token,
        )
}
