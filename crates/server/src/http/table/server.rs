//! Routes of the server itself: health, time, servers, metrics, namespaces.

use bellwether_api::media::JSON_LINES;
use bellwether_api::paths;
use bellwether_api::v1::access::Secret;
use bellwether_api::v1::audit::AuditEntry;
use bellwether_api::v1::authorities::{Authorities, ChangeAuthorities, TrustBundle};
use bellwether_api::v1::backup::NewBackup;
use bellwether_api::v1::namespace::NamespaceView;
use bellwether_api::v1::node::Reason;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::server::{ControlPlane, ServerTime, SteppedDown};
use bellwether_api::v1::server_join::{JoinServer, JoinedServer, NewServerToken};
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post};

use super::super::limits::MAX_JOIN_BYTES;
use super::super::routes::{Empty, Routes, route};
use super::super::{audit, authorities, backup, namespaces, probes, server_join, servers};

/// The server itself.
pub(super) fn server(routes: Routes) -> Routes {
    routes
        .add::<Empty, Empty, _, _>(
            route(Get, paths::HEALTHZ, RequiredAccess::Open, "Check that the process answers")
                .media(&["text/plain"]),
            probes::healthz,
        )
        .add::<Empty, Empty, _, _>(
            route(Get, paths::READYZ, RequiredAccess::Open, "Check that the store answers")
                .media(&["text/plain"]),
            probes::readyz,
        )
        .add::<Empty, ServerTime, _, _>(
            route(Get, paths::TIME, RequiredAccess::Open, "Get the time of the control plane"),
            servers::time,
        )
        .add::<Empty, ControlPlane, _, _>(
            route(
                Get,
                paths::SERVERS,
                RequiredAccess::get(ObjectKind::Server),
                "Get the servers of the control plane and the leader",
            ),
            servers::list,
        )
        .add::<Reason, SteppedDown, _, _>(
            route(
                Post,
                paths::STEP_DOWN,
                RequiredAccess::update(ObjectKind::Server),
                "Have the leader hand the leadership over; it stays a server. Only the leader does it",
            )
            .optional_body(),
            servers::step_down,
        )
        .add::<NewServerToken, Secret, _, _>(
            route(
                Post,
                paths::SERVER_TOKENS,
                RequiredAccess::update(ObjectKind::Server),
                "Create a join token for a server; the caller needs every right",
            )
            .optional_body(),
            server_join::create_token,
        )
        .add::<JoinServer, JoinedServer, _, _>(
            route(
                Post,
                paths::SERVER_JOIN,
                RequiredAccess::Open,
                "Join as a server, with a join token for servers",
            )
            .largest_body(MAX_JOIN_BYTES),
            server_join::join,
        )
}

/// Backups.
pub(super) fn backups(routes: Routes) -> Routes {
    let summary = "Take a backup of all records at one revision: a text with a line for each; the caller needs every right";
    routes.add::<NewBackup, Empty, _, _>(
        route(Post, paths::BACKUP, RequiredAccess::update(ObjectKind::Server), summary)
            .optional_body()
            .media(&[JSON_LINES]),
        backup::take,
    )
}

/// The certificate authorities.
pub(super) fn authorities(routes: Routes) -> Routes {
    let update = || RequiredAccess::update(ObjectKind::Server);
    routes
        .add::<Empty, Authorities, _, _>(
            route(
                Get,
                paths::AUTHORITIES,
                RequiredAccess::get(ObjectKind::Server),
                "Get the certificate authorities, and which nodes, servers and join tokens are behind",
            ),
            authorities::get,
        )
        .add::<Empty, TrustBundle, _, _>(
            route(
                Get,
                paths::TRUST_BUNDLE,
                RequiredAccess::Open,
                "Get the certificates of the authorities that clients trust",
            ),
            authorities::bundle,
        )
        .add::<ChangeAuthorities, Authorities, _, _>(
            route(
                Post,
                paths::ROTATE_AUTHORITY,
                update(),
                "Make another certificate authority, which nodes and servers trust before it is used",
            )
            .optional_body(),
            authorities::rotate,
        )
        .add::<ChangeAuthorities, Authorities, _, _>(
            route(
                Post,
                paths::ACTIVATE_AUTHORITY,
                update(),
                "Sign with the next certificate authority from now on; the one before is still trusted",
            )
            .optional_body(),
            authorities::activate,
        )
        .add::<ChangeAuthorities, Authorities, _, _>(
            route(
                Post,
                paths::RETIRE_AUTHORITY,
                update(),
                "Trust the previous certificate authority no more",
            )
            .optional_body(),
            authorities::retire,
        )
        .add::<ChangeAuthorities, Authorities, _, _>(
            route(
                Post,
                paths::CANCEL_AUTHORITY,
                update(),
                "Drop the next certificate authority, before it is used",
            )
            .optional_body(),
            authorities::cancel,
        )
}

/// Namespaces, the audit log and metrics.
pub(super) fn installation(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<NamespaceView>, _, _>(
            route(
                Get,
                paths::NAMESPACES,
                RequiredAccess::get(ObjectKind::Namespace),
                "List namespaces with the number of objects in each",
            )
            .list(),
            namespaces::list,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::NAMESPACE,
                RequiredAccess::delete(ObjectKind::Namespace),
                "Delete an empty namespace and its events",
            ),
            namespaces::delete,
        )
        .add::<Empty, Page<AuditEntry>, _, _>(
            route(
                Get,
                paths::AUDIT,
                RequiredAccess::get(ObjectKind::Audit),
                "List entries of the audit log of this server",
            )
            .list()
            .query(&["wait"]),
            audit::list,
        )
        .add::<Empty, Empty, _, _>(
            route(Get, paths::METRICS, RequiredAccess::get(ObjectKind::Server), "Get Prometheus metrics")
                .media(&["text/plain", "application/openmetrics-text"]),
            probes::metrics_page,
        )
}
