//! Routes of secrets.

use bellwether_api::paths;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::secret::{NodeSecrets, RevealedSecret, Secret, SecretKeys, SecretSpec};
use bellwether_core::access::{ObjectKind, RequiredAccess, Right};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::secrets;

/// Secrets, without their values.
pub(super) fn secrets(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Secret>, _, _>(
            route(
                Get,
                paths::SECRETS,
                RequiredAccess::get(ObjectKind::Secret),
                "List secrets, without their values",
            )
            .list(),
            secrets::list,
        )
        .add::<Empty, Secret, _, _>(
            route(
                Get,
                paths::SECRET,
                RequiredAccess::get(ObjectKind::Secret),
                "Get a secret, without its value",
            ),
            secrets::get,
        )
        .add::<SecretSpec, Secret, _, _>(
            route(Put, paths::SECRET, RequiredAccess::update(ObjectKind::Secret), "Set a secret")
                .creates()
                .conditional(),
            secrets::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::SECRET,
                RequiredAccess::delete(ObjectKind::Secret),
                "Delete a secret; params that have its value keep it",
            ),
            secrets::delete,
        )
        .add::<Empty, SecretKeys, _, _>(
            route(
                Get,
                paths::SECRET_KEYS,
                RequiredAccess::get(ObjectKind::Server),
                "List the keys that secrets are encrypted with",
            ),
            secrets::keys,
        )
}

/// The values of secrets.
pub(super) fn revealed(routes: Routes) -> Routes {
    let may = |kind| RequiredAccess::Right(Right::reveal(kind));
    routes
        .add::<Empty, RevealedSecret, _, _>(
            route(Get, paths::REVEALED_SECRET, may(ObjectKind::Secret), "Reveal the value of a secret"),
            secrets::reveal,
        )
        .add::<Empty, RevealedSecret, _, _>(
            route(
                Get,
                paths::REVEALED_PROFILE_PARAM,
                may(ObjectKind::Profile),
                "Reveal a secret param of the newest revision of a profile",
            ),
            secrets::reveal_of_profile,
        )
        .add::<Empty, RevealedSecret, _, _>(
            route(
                Get,
                paths::REVEALED_NODE_PARAM,
                may(ObjectKind::Node),
                "Reveal a secret param of a node's own",
            ),
            secrets::reveal_of_node,
        )
        .add::<Empty, NodeSecrets, _, _>(
            route(
                Get,
                paths::NODE_SECRETS,
                RequiredAccess::OwnNode,
                "Read the secrets of the params that the node's order names, and of its live params",
            ),
            secrets::of_node,
        )
}
