//! Routes of ensembles.

mod requests;

use bellwether_api::paths;
use bellwether_api::v1::ensemble::certificates::{ClientCertificateRequest, EnsembleCertificate};
use bellwether_api::v1::ensemble::{Ensemble, EnsembleSpec, FailoverEnsemble, PlanEnsemble, ScaleEnsemble};
use bellwether_api::v1::page::Page;
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::ensembles as handlers;
use super::super::routes::{Empty, Routes, route};

/// Ensembles.
pub(super) fn ensembles(routes: Routes) -> Routes {
    actions(objects(routes))
}

/// Ensembles themselves.
fn objects(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Ensemble);
    let update = RequiredAccess::update(ObjectKind::Ensemble);
    let delete = RequiredAccess::delete(ObjectKind::Ensemble);
    requests::requests(routes)
        .add::<Empty, Page<Ensemble>, _, _>(
            route(Get, paths::ENSEMBLES, get(), "List ensembles").list(),
            handlers::list,
        )
        .add::<Empty, Ensemble, _, _>(
            route(
                Get,
                paths::ENSEMBLE,
                get(),
                "Get an ensemble, with its members and what is to happen to them",
            ),
            handlers::get,
        )
        .add::<EnsembleSpec, Ensemble, _, _>(
            route(Put, paths::ENSEMBLE, update, "Create an ensemble, or change it").creates().conditional(),
            handlers::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::ENSEMBLE,
                delete,
                "Delete an ensemble; its members stop, and their data are set aside on their nodes",
            )
            .conditional(),
            handlers::delete,
        )
}

/// What is asked and requested of one.
fn actions(routes: Routes) -> Routes {
    let get = RequiredAccess::get(ObjectKind::Ensemble);
    let certify = RequiredAccess::update_field(ObjectKind::Ensemble, "/certificates");
    let lead = RequiredAccess::update_field(ObjectKind::Ensemble, "/primary");
    let resize = RequiredAccess::update_field(ObjectKind::Ensemble, "/size");
    routes
        .add::<PlanEnsemble, Ensemble, _, _>(
            route(
                Post,
                paths::ENSEMBLE_PLAN,
                get,
                "Predict what happens to the members of an ensemble; nothing is written. With a spec it also needs the right update \
                 ensemble",
            ),
            handlers::plan,
        )
        .add::<ScaleEnsemble, Ensemble, _, _>(
            route(Post, paths::ENSEMBLE_SCALE, resize, "Change the number of members of an ensemble")
                .conditional(),
            handlers::scale,
        )
        .add::<FailoverEnsemble, Ensemble, _, _>(
            route(
                Post,
                paths::ENSEMBLE_FAILOVER,
                lead,
                "Have the primary of an ensemble hand over, or another member become it",
            )
            .optional_body()
            .conditional(),
            handlers::failover,
        )
        .add::<ClientCertificateRequest, EnsembleCertificate, _, _>(
            route(
                Post,
                paths::ENSEMBLE_CERTIFICATE,
                certify,
                "Issue a certificate with which a client reads and writes the data of an ensemble",
            ),
            handlers::certify,
        )
}
