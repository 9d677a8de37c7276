//! Clusters over HTTP.

use std::collections::BTreeSet;

use axum::extract::State;
use bellwether_api::list::tables::{CLUSTER_MEMBERS, CLUSTERS};
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::cluster::discovery::AcceptMembers;
use bellwether_api::v1::cluster::view::ClusterView;
use bellwether_api::v1::cluster::work::NewClusterRun;
use bellwether_api::v1::cluster::{Cluster, ClusterSpec};
use bellwether_api::v1::run::{NewRun, Run};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::words::filter::Filter;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::name::{ClusterName, Namespace, NodeName};

use super::auth::Authenticated;
use super::input::{
    AtRevision, JsonAnswer, JsonBody, NamedCluster, NamespacePath, OptionalBody, QueryParams,
};
use super::list::node::NodeRow;
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::readable::Readable;
use super::routes::Empty;
use super::state::AppState;
use crate::job_rights::JOB_ACTOR;
use crate::ops;
use crate::ops::cluster::ClusterScope;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &CLUSTERS, &[])?;
    let world = app.world();
    let clusters = world.fleets.get(&namespace).into_iter().flat_map(ops::cluster::list);
    list.answer_json((&CLUSTERS, app.clock.now()), clusters, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
) -> Result<JsonAnswer<Cluster>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| ops::cluster::get(fleet, &name));
    found.map(JsonAnswer).ok_or_else(|| missing(&name))
}

/// The members of a cluster.
pub(crate) async fn members(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &CLUSTER_MEMBERS, &[])?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.clusters.contains_key(&name));
    let fleet = fleet.ok_or_else(|| missing(&name))?;
    let members = ops::cluster::members(fleet, &name);
    list.answer_json((&CLUSTER_MEMBERS, app.clock.now()), members.into_iter(), world.revision)
}

/// Accepts that members of a cluster are gone which its list does not have any more.
pub(crate) async fn accept_members(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
    OptionalBody(request): OptionalBody<AcceptMembers>,
) -> Result<JsonAnswer<Cluster>, Failure> {
    let actor = caller.actor();
    let scope = scope(&namespace, &name, &actor, None);
    Ok(JsonAnswer(ops::accept_members::accept(&app.records.transactor, scope, &request).await?))
}

/// The data stores of those members of a cluster that the caller may read.
pub(crate) async fn view(
    State(app): State<AppState>,
    readable: Readable,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
) -> Result<JsonAnswer<ClusterView>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.clusters.contains_key(&name));
    let fleet = fleet.ok_or_else(|| missing(&name))?;
    let view =
        ops::store_view::view(fleet, &name, |node| readable.has_object(ObjectKind::Node, node.as_str()));
    let (revision, at_ms) = (world.revision.get(), app.clock.now().as_millis());
    Ok(JsonAnswer(ClusterView { revision, at_ms, ..view }))
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<ClusterSpec>,
) -> Result<SetResponse<Cluster>, Failure> {
    // A new cluster creates its profile, or makes one live, and has its members read it.
    let profile = spec.profile.as_deref().unwrap_or(name.as_str());
    caller.require(Right::update(ObjectKind::Profile), Some(profile), Some(&namespace))?;
    // Its manager runs it as whatever the agent runs as.
    if let Some(workflow) =
        spec.manager_workflow.as_deref().filter(|workflow| !is_run(&app, &namespace, &name, workflow))
    {
        caller.require(Right::update(ObjectKind::Run), Some(workflow), Some(&namespace))?;
    }
    if let Some(discovery) = &spec.discovery {
        app.discovery.permit(name.as_str(), &discovery.desired()?.source)?;
    }
    let actor = caller.actor();
    let scope = scope(&namespace, &name, &actor, only_at);
    let (value, is_new) = ops::cluster::set(&app.records.transactor, scope, &spec).await?;
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
    AtRevision(only_at): AtRevision,
) -> Result<JsonAnswer<Empty>, Failure> {
    let actor = caller.actor();
    ops::cluster::delete(&app.records.transactor, scope(&namespace, &name, &actor, only_at)).await?;
    Ok(JsonAnswer(Empty {}))
}

const fn scope<'a>(
    namespace: &'a Namespace,
    name: &'a ClusterName,
    actor: &'a bellwether_core::words::name::Actor,
    only_at: Option<u64>,
) -> ClusterScope<'a> {
    ClusterScope { namespace, name, actor, only_at }
}

/// Starts a run on members that a filter matches, or on the manager.
pub(crate) async fn start_run(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
    JsonBody(request): JsonBody<NewClusterRun>,
) -> Result<JsonAnswer<Run>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let cluster = fleet.and_then(|fleet| fleet.clusters.get(&name)).map(|kept| kept.value.clone());
    let (Some(fleet), Some(cluster)) = (fleet, cluster) else { return Err(missing(&name)) };
    let own = cluster.workflow.as_ref().filter(|_| request.on.is_none()).map(ToString::to_string);
    let workflow = request.workflow.or(own).ok_or_else(|| {
        Failure::from(ShapeError::at("workflow", "missing: the cluster has none for its manager"))
            .hint(format!("bellwether cluster set {name} --manager-workflow WORKFLOW"))
    })?;
    // A job has this right as one of the manager, whose part it is to run what the members need.
    let is_job = caller.actor().as_str().starts_with(JOB_ACTOR);
    if !is_job {
        caller.require(Right::update(ObjectKind::Run), Some(&workflow), Some(&namespace))?;
    }
    let may_read = |node: &NodeName| {
        let right = Right::get(ObjectKind::Node);
        is_job || caller.require(right, Some(node.as_str()), Some(&namespace)).is_ok()
    };
    let (on, nodes) = match request.on {
        None => ("the manager".to_owned(), BTreeSet::from([cluster.manager.clone()])),
        Some(on) => {
            let filter = Filter::parse(&on, &NODES).map_err(|error| ShapeError::misread("on", &error))?;
            let now = app.clock.now();
            let members = fleet.membership.members(&name).filter_map(|node| fleet.nodes.get(node));
            let members = members.map(|kept| NodeRow { fleet, node: &kept.value, now });
            let members = members.filter(|row| filter.matches(row)).map(|row| row.node.name.clone());
            (on, members.filter(may_read).collect())
        }
    };
    let NewClusterRun { policy, from, reason, busy, dry_run, .. } = request;
    let run = NewRun { workflow, on, from, policy, reason, busy, dry_run };
    let by = (&namespace, &caller.actor());
    Ok(JsonAnswer(ops::run::start(&app.records.transactor, by, &run, &nodes).await?))
}

/// Whether this is the workflow of the manager of a cluster already.
fn is_run(app: &AppState, namespace: &Namespace, name: &ClusterName, workflow: &str) -> bool {
    let world = app.world();
    let cluster = world.fleets.get(namespace).and_then(|fleet| fleet.clusters.get(name));
    cluster.and_then(|kept| kept.value.workflow.as_ref()).is_some_and(|of| of.as_str() == workflow)
}

pub(super) fn missing(name: &ClusterName) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find cluster {name}"))
        .hint(format!("list them: bellwether cluster list; create it: bellwether cluster create {name}"))
}
