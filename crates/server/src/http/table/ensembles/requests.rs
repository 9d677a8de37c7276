//! Routes of what people ask to be done with the members of an ensemble.

use bellwether_api::paths;
use bellwether_api::v1::ensemble::Ensemble;
use bellwether_api::v1::ensemble::adoption::RemoveForeignMember;
use bellwether_api::v1::ensemble::osds::{RemoveOsd, ReplaceOsd};
use bellwether_api::v1::ensemble::requests::{ReplaceMember, ResumeEnsemble, RollMembers};
use bellwether_api::v1::ensemble::snapshots::TakeSnapshot;
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::Post;

use crate::http::ensembles as handlers;
use crate::http::routes::{Routes, route};

/// What people ask to be done with members.
pub(super) fn requests(routes: Routes) -> Routes {
    let snapshot = RequiredAccess::update_field(ObjectKind::Ensemble, "/snapshots");
    let replace = RequiredAccess::update_field(ObjectKind::Ensemble, "/members");
    let routes = routes.add::<TakeSnapshot, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_SNAPSHOT,
            snapshot,
            "Take a snapshot of the data of an ensemble, which is kept on the node of a member",
        )
        .optional_body(),
        handlers::snapshot,
    );
    let routes = rolling(routes).add::<ResumeEnsemble, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_RESUME,
            replace,
            "Go on with an ensemble as it is recorded, after a restore of the control plane",
        )
        .optional_body(),
        handlers::resume,
    );
    let routes = routes.add::<RemoveForeignMember, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_REMOVE_FOREIGN_MEMBER,
            replace,
            "Remove a member of the store of an ensemble that something else runs, or withdraw that",
        ),
        handlers::remove_foreign_member,
    );
    let routes = routes.add::<RemoveOsd, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_REMOVE_OSD,
            RequiredAccess::update_field(ObjectKind::Ensemble, "/osds"),
            "Remove an OSD of an ensemble of Ceph once its data are on others, or withdraw that",
        ),
        handlers::remove_osd,
    );
    let routes = routes.add::<ReplaceOsd, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_REPLACE_OSD,
            RequiredAccess::update_field(ObjectKind::Ensemble, "/osds"),
            "Replace an OSD of an ensemble of Ceph by one with another device and the same number in the store, or withdraw that",
        ),
        handlers::replace_osd,
    );
    routes.add::<ReplaceMember, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_REPLACE,
            replace,
            "Replace a member of an ensemble by another one, or withdraw that",
        ),
        handlers::replace,
    )
}

/// What people ask to be done with one member after the other.
fn rolling(routes: Routes) -> Routes {
    let replace = RequiredAccess::update_field(ObjectKind::Ensemble, "/members");
    let routes = routes.add::<RollMembers, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_RESTART,
            replace,
            "Restart the members of an ensemble one after the other, the leader last, or withdraw that",
        )
        .optional_body(),
        handlers::restart,
    );
    routes.add::<RollMembers, Ensemble, _, _>(
        route(
            Post,
            paths::ENSEMBLE_DEFRAGMENT,
            replace,
            "Defragment the databases of the members of an etcd one after the other, the leader last, or withdraw that",
        )
        .optional_body(),
        handlers::defragment,
    )
}
