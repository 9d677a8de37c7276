//! The service catalogue over HTTP: registrations of nodes, and reads, which may block.

use axum::extract::State;
use bellwether_api::list::tables::SERVICES;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::http_sd::{self, TargetGroup};
use bellwether_api::v1::registrations::{Registered, ServiceRegistrations};
use bellwether_api::v1::service::{CatalogueChange, CatalogueUpdate, Instance, ServiceSummary, ServiceView};
use bellwether_core::words::counter::{LogPosition, Revision};
use bellwether_core::words::name::{Namespace, ServiceName};
use bellwether_core::words::near::nearest;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Node, QueryParams, Service};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;

pub(crate) async fn registration(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(registrations): JsonBody<ServiceRegistrations>,
) -> Result<JsonAnswer<Registered>, Failure> {
    let transactor = &app.records.transactor;
    let absorbing = ops::registrations::absorb_registrations(transactor, &namespace, &name, registrations);
    Ok(JsonAnswer(Registered { revision: absorbing.await?.get() }))
}

/// Every known service; with `wait`, once the catalogue changed after `index`.
pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &SERVICES, &["index", "wait"])?;
    changed(&app, &namespace, &query).await?;
    let world = app.world();
    let services = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.catalogue.services());
    let services = services.map(|(name, service)| ServiceSummary::of(name, service));
    list.answer_json((&SERVICES, app.clock.now()), services, last(&world, &namespace))
}

/// One service; with `wait`, once the catalogue changed after `index`. An unknown name is not found, unless the request
/// waits for it: with `index` and `wait` it has no instances.
pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), Service(name)): (NamespacePath, Service),
    query: QueryParams,
) -> Result<JsonAnswer<ServiceView>, Failure> {
    query.only(&["index", "wait"])?;
    changed(&app, &namespace, &query).await?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let service = fleet.and_then(|fleet| fleet.catalogue.service(&name));
    let revision = last(&world, &namespace).get();
    let Some(service) = service else { return Err(unknown_service(fleet, &name)) };
    Ok(JsonAnswer(ServiceView {
        name: name.to_string(),
        addressable: service.addressable(),
        functional: service.functional(),
        instances: service.instances().map(Instance::from).collect(),
        revision,
    }))
}

pub(crate) async fn forget(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Service(name)): (NamespacePath, Service),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::service::forget(&app.records.transactor, &namespace, &name, &caller.actor()).await?;
    Ok(JsonAnswer(Empty {}))
}

/// The targets of a service for Prometheus' HTTP service discovery: instances of `service` with every `tag`. An unknown
/// service is an error, since Prometheus then keeps the targets it has.
pub(crate) async fn targets(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<JsonAnswer<Vec<TargetGroup>>, Failure> {
    query.only(&["service", "tag"])?;
    let name: Option<ServiceName> = query.get("service")?;
    let name = name.ok_or_else(|| ShapeError::at("service", "missing; write ?service=web"))?;
    let (tags, world) = (query.all("tag")?, app.world());
    let fleet = world.fleets.get(&namespace).filter(|_| query.readable.has(name.as_str()));
    let service = fleet.and_then(|fleet| fleet.catalogue.service(&name));
    let service = service.ok_or_else(|| unknown_service(fleet, &name))?;
    std::future::ready(Ok(JsonAnswer(http_sd::groups(&namespace, &name, service, &tags)))).await
}

/// The error for a service that was never registered, or was forgotten, with the nearest known name.
pub(super) fn unknown_service(fleet: Option<&Fleet>, name: &ServiceName) -> Failure {
    let known = fleet.into_iter().flat_map(|fleet| fleet.catalogue.services()).map(|(name, _)| name.as_str());
    let failure =
        Failure::new(Code::NotFound, format!("cannot find service {name}: it was never registered"));
    match nearest(name.as_str(), known) {
        Some(near) => failure.hint(format!("did you mean {near}? list services: bellwether service list")),
        None => failure.hint("list services: bellwether service list"),
    }
}

/// Waits, if the query requests it, until the catalogue changed after `index`.
async fn changed(app: &AppState, namespace: &Namespace, query: &QueryParams) -> Result<(), Failure> {
    let (index, wait) = (query.index()?, query.wait()?);
    if wait.is_zero() {
        return Ok(());
    }
    let mut notify = app.traffic.sessions.catalogue(namespace);
    let news = async {
        while last(&app.world(), namespace) <= index {
            if notify.changed().await.is_err() {
                return;
            }
        }
    };
    // All arms only wait; the caller reads the world.
    tokio::select! {
        () = news => {}
        () = tokio::time::sleep(wait) => {}
        () = app.stop.cancelled() => {}
    }
    Ok(())
}

/// The revision of the last change to a namespace's catalogue.
pub(crate) fn last(world: &World, namespace: &Namespace) -> Revision {
    world.fleets.get(namespace).map_or(Revision::ZERO, |fleet| fleet.catalogue_log.last())
}

/// The update for a copy of the catalogue at a position; none if it is current.
pub(crate) fn update(world: &World, namespace: &Namespace, position: LogPosition) -> Option<CatalogueUpdate> {
    let fleet = world.fleets.get(namespace)?;
    let last = fleet.catalogue_log.last();
    // An earlier one is of the store before this one, a later one of another installation or a store that was set back.
    let index = world.revision_at(position).filter(|index| *index <= last);
    let missing = index.and_then(|index| fleet.catalogue_log.after(index));
    let (whole, changes): (bool, Vec<CatalogueChange>) = match missing {
        Some(_) if index == Some(last) => return None,
        Some(changes) => (false, changes.map(CatalogueChange::from).collect()),
        None => (true, fleet.catalogue.whole().map(|change| CatalogueChange::from(&change)).collect()),
    };
    Some(CatalogueUpdate { index: world.position(last).get(), whole, changes })
}
