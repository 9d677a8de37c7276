//! Profiles and their revisions over HTTP.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::{Edition as Shape, Profile as Head, ProfilePatch, ProfileSpec};
use bellwether_core::access::Identity;
use bellwether_core::records::profile::Edition;
use bellwether_core::words::counter::EditionNumber;
use bellwether_core::words::name::{NodeName, ProfileName};
use bellwether_core::world::fleet::Fleet;

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Ns, Number, Profile, Query};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;

pub(crate) async fn list(
    State(app): State<App>,
    Ns(namespace): Ns,
    query: Query,
) -> Result<Answer<Page<Head>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let all = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.profiles.values());
    let items = all.filter(|kept| !kept.value.deleted).map(|kept| (&*kept.value).into()).collect();
    Ok(Answer(Page { items, next: None, revision: world.revision.get() }))
}

/// The newest revision.
pub(crate) async fn get(
    State(app): State<App>,
    Ns(namespace): Ns,
    Profile(name): Profile,
) -> Result<Answer<Shape>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let newest = fleet.and_then(|fleet| Some((fleet, fleet.profile(&name)?.newest)));
    let found = newest.and_then(|(fleet, number)| fleet.editions.get(&(name.clone(), number)));
    let found = found.ok_or_else(|| missing(&name))?;
    Ok(Answer(Shape::try_from(&*found.value)?))
}

pub(crate) async fn editions(
    State(app): State<App>,
    Ns(namespace): Ns,
    Profile(name): Profile,
    query: Query,
) -> Result<Answer<Page<Shape>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.profile(&name).is_some());
    let fleet = fleet.ok_or_else(|| missing(&name))?;
    let mut items = fleet.editions_of(&name).map(Shape::try_from).collect::<Result<Vec<_>, _>>()?;
    items.reverse();
    Ok(Answer(Page { items, next: None, revision: world.revision.get() }))
}

/// One revision. To a node, only profiles are there that it was told to be at.
pub(crate) async fn edition(
    State(app): State<App>,
    Caller(identity): Caller,
    (Ns(namespace), Profile(name), Number(number)): (Ns, Profile, Number),
) -> Result<Answer<Shape>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let fleet = fleet.filter(|fleet| match &identity {
        Identity::Node(node) => is_told(fleet, node, &name),
        Identity::Bearer { .. } | Identity::Anonymous => true,
    });
    let found = fleet.and_then(|fleet| fleet.editions.get(&(name.clone(), EditionNumber::new(number))));
    let missing = || {
        Failure::new(Code::NotFound, format!("could not find revision {number} of profile {name}"))
            .hint(format!("see which there are: bellwether profile history {name}"))
    };
    Ok(Answer(Shape::try_from(&*found.ok_or_else(missing)?.value)?))
}

/// Whether a node was told any version of this profile.
fn is_told(fleet: &Fleet, node: &NodeName, profile: &ProfileName) -> bool {
    let told = fleet.contents.get(node).into_iter().flat_map(|content| content.entities.values());
    told.into_iter().any(|told| Edition::number_in(profile, &told.version).is_some())
}

pub(crate) async fn patch(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Profile(name): Profile,
    Body(patch): Body<ProfilePatch>,
) -> Result<Answer<Shape>, Failure> {
    let edition = ops::profile::patch(&app.desk, &namespace, &caller.actor(), &name, patch).await?;
    Ok(Answer(Shape::try_from(&edition)?))
}

pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Profile(name): Profile,
    Body(spec): Body<ProfileSpec>,
) -> Result<Answer<Shape>, Failure> {
    let edition = ops::profile::set(&app.desk, &namespace, &caller.actor(), &name, spec).await?;
    Ok(Answer(Shape::try_from(&edition)?))
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Profile(name): Profile,
) -> Result<Answer<Nothing>, Failure> {
    ops::profile::delete(&app.desk, &namespace, &caller.actor(), &name).await?;
    Ok(Answer(Nothing {}))
}

/// There is no such profile.
fn missing(name: &ProfileName) -> Failure {
    Failure::new(Code::NotFound, format!("could not find profile {name}"))
        .hint(format!("make it: bellwether profile set {name} KEY=VALUE"))
}
