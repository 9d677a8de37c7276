//! Routes of entities, documents and external targets.

use bellwether_api::paths;
use bellwether_api::v1::apply::{Applied, ApplyRequest, Document, MAX_APPLY_BYTES};
use bellwether_api::v1::entity::patch::{EntityPatch, EntityWarning, PatchedEntity};
use bellwether_api::v1::entity::{Entity, EntitySpec};
use bellwether_api::v1::external::{ExpectedVersions, TargetReports};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::target::TargetView;
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Patch, Post, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::{apply, entities, external, rollouts};

/// Entities and documents.
pub(super) fn entities(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Entity>, _, _>(
            route(Get, paths::ENTITIES, RequiredAccess::get(ObjectKind::Entity), "List entities").list(),
            entities::list,
        )
        .add::<Empty, Entity, _, _>(
            route(Get, paths::ENTITY, RequiredAccess::get(ObjectKind::Entity), "Get an entity"),
            entities::get,
        )
        .add::<EntitySpec, EntityWarning, _, _>(
            route(Put, paths::ENTITY, RequiredAccess::update(ObjectKind::Entity), "Set an entity"),
            entities::put,
        )
        .add::<EntityPatch, PatchedEntity, _, _>(
            route(Patch, paths::ENTITY, RequiredAccess::update(ObjectKind::Entity), "Change single fields of an entity; with If-Match, only at that revision").conditional(),
            entities::patch,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::ENTITY, RequiredAccess::delete(ObjectKind::Entity), "Delete an entity and its history"),
            entities::delete,
        )
        .add::<ApplyRequest, Applied, _, _>(
            route(
                Post,
                paths::APPLY,
                RequiredAccess::Token,
                "Apply documents, in one transaction if it takes them; each needs the right of its own operation, a dry run none",
            )
            .largest_body(MAX_APPLY_BYTES),
            apply::apply,
        )
        .add::<Empty, Page<Document>, _, _>(
            route(Get, paths::DOCUMENTS, RequiredAccess::Token, "List objects as documents that can be applied"),
            apply::documents,
        )
}

/// External targets.
pub(super) fn external(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<TargetView>, _, _>(
            route(Get, paths::TARGETS, RequiredAccess::get(ObjectKind::Entity), "List targets")
                .list()
                .query(&["group"]),
            rollouts::targets,
        )
        .add::<TargetReports, ExpectedVersions, _, _>(
            route(
                Post,
                paths::ORCHESTRATE,
                RequiredAccess::update_field(ObjectKind::Entity, "/targets"),
                "Report external targets and get the versions they are to run",
            ),
            external::orchestrate,
        )
        .add::<TargetReports, Empty, _, _>(
            route(
                Post,
                paths::REPORTS,
                RequiredAccess::update_field(ObjectKind::Entity, "/targets"),
                "Report external targets",
            ),
            external::report,
        )
}
