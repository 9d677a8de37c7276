//! Routes of clusters.

use bellwether_api::paths;
use bellwether_api::v1::cluster::discovery::AcceptMembers;
use bellwether_api::v1::cluster::past_view::PastClusterView;
use bellwether_api::v1::cluster::view::ClusterView;
use bellwether_api::v1::cluster::work::{ClusterWait, NewClusterRun};
use bellwether_api::v1::cluster::{Cluster, ClusterMember, ClusterSpec};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::run::Run;
use bellwether_core::access::{ObjectKind, RequiredAccess};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::{cluster_wait, clusters, past_view};

/// Clusters.
pub(super) fn clusters(routes: Routes) -> Routes {
    let get = RequiredAccess::get(ObjectKind::Cluster);
    routes
        .add::<Empty, Page<Cluster>, _, _>(
            route(Get, paths::CLUSTERS, get, "List clusters").list(),
            clusters::list,
        )
        .add::<Empty, Cluster, _, _>(
            route(Get, paths::CLUSTER, get, "Get a cluster with its leaders"),
            clusters::get,
        )
        .add::<ClusterSpec, Cluster, _, _>(
            route(
                Put,
                paths::CLUSTER,
                RequiredAccess::update(ObjectKind::Cluster),
                "Create a cluster with its live profile, or change it; also needs the right update profile",
            )
            .creates()
            .conditional(),
            clusters::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::CLUSTER,
                RequiredAccess::delete(ObjectKind::Cluster),
                "Delete a cluster; its members and its profile stay",
            )
            .conditional(),
            clusters::delete,
        )
}

/// What is in clusters: their members, the data stores of these, and what runs there.
pub(super) fn members(routes: Routes) -> Routes {
    let get = RequiredAccess::get(ObjectKind::Cluster);
    routes
        .add::<Empty, Page<ClusterMember>, _, _>(
            route(Get, paths::CLUSTER_MEMBERS, get, "List the members of a cluster with their roles").list(),
            clusters::members,
        )
        .add::<AcceptMembers, Cluster, _, _>(
            route(
                Post,
                paths::CLUSTER_MEMBERS_ACCEPTED,
                RequiredAccess::update_field(ObjectKind::Cluster, "/members"),
                "Have the members leave that the list of a cluster does not have any more",
            )
            .optional_body(),
            clusters::accept_members,
        )
        .add::<Empty, ClusterView, _, _>(
            route(
                Get,
                paths::CLUSTER_VIEW,
                get,
                "Get the data stores of a cluster, put together from its members' reports",
            ),
            clusters::view,
        )
        .add::<Empty, PastClusterView, _, _>(
            route(
                Get,
                paths::CLUSTER_VIEW_AT,
                get,
                "Get the data stores of a cluster as they were after an event, from the events since then",
            ),
            past_view::get,
        )
        .add::<Empty, ClusterWait, _, _>(
            route(
                Get,
                paths::CLUSTER_WAIT,
                get,
                "Wait until the workflows of a cluster's members are complete",
            )
            .query(&["on", "fail_on_failure", "wait"]),
            cluster_wait::get,
        )
        .add::<NewClusterRun, Run, _, _>(
            route(
                Post,
                paths::CLUSTER_RUNS,
                RequiredAccess::update_field(ObjectKind::Cluster, "/runs"),
                "Run a workflow on members of a cluster, or on its manager",
            ),
            clusters::start_run,
        )
}
