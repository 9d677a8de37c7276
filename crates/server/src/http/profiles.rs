//! Profiles and their revisions over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::PROFILES;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::{
    ParamsPatch, ParamsSpec, Profile as Head, ProfileLive, ProfileRevision as Shape,
};
use bellwether_core::access::{Identity, ObjectKind};
use bellwether_core::records::profile::ProfileRevision;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::{Namespace, NodeName, ProfileName};
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{AtRevision, JsonAnswer, JsonBody, NamespacePath, Number, Profile, QueryParams};
use super::json_change::{ChangeBody, ParamsAccess};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::params::{ParamsChange, ParamsRequest};
use crate::ops::scope::ProfileScope;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &PROFILES, &[])?;
    let world = app.world();
    let all = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.profiles.values());
    let profiles = all.filter(|kept| !kept.value.deleted).map(|kept| Head::from(&*kept.value));
    list.answer_json((&PROFILES, app.clock.now()), profiles, world.revision)
}

/// The newest revision.
pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Profile(name): Profile,
) -> Result<JsonAnswer<Shape>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let newest = fleet.and_then(|fleet| Some((fleet, fleet.profile(&name)?.newest)));
    let found = newest.and_then(|(fleet, number)| fleet.profile_revisions.get(&(name.clone(), number)));
    let found = found.ok_or_else(|| missing(&name))?;
    Ok(JsonAnswer(Shape::try_from(&*found.value)?))
}

pub(crate) async fn profile_revisions(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Profile(name): Profile,
    query: QueryParams,
) -> Result<JsonAnswer<Page<Shape>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.profile(&name).is_some());
    let fleet = fleet.ok_or_else(|| missing(&name))?;
    let mut items = fleet.revisions_of(&name).map(Shape::try_from).collect::<Result<Vec<_>, _>>()?;
    items.reverse();
    Ok(JsonAnswer(Page { items, next: None, count: None, revision: world.revision.get() }))
}

/// One revision. For a node, only profiles exist of which a version is assigned to it.
pub(crate) async fn profile_revision(
    State(app): State<AppState>,
    Authenticated(identity): Authenticated,
    (NamespacePath(namespace), Profile(name), Number(number)): (NamespacePath, Profile, Number),
) -> Result<JsonAnswer<Shape>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let fleet = fleet.filter(|fleet| match &identity {
        Identity::Node(node) => is_assigned(fleet, node, &name),
        Identity::Token { .. } | Identity::Anonymous => true,
    });
    let found = fleet
        .and_then(|fleet| fleet.profile_revisions.get(&(name.clone(), ProfileRevisionNumber::new(number))));
    let missing = || {
        Failure::new(Code::NotFound, format!("cannot find revision {number} of profile {name}"))
            .hint(format!("list them: bellwether profile history {name}"))
    };
    Ok(JsonAnswer(Shape::try_from(&*found.ok_or_else(missing)?.value)?))
}

/// Whether a version of this profile is assigned to the node.
fn is_assigned(fleet: &Fleet, node: &NodeName, profile: &ProfileName) -> bool {
    let assigned = fleet.contents.get(node).into_iter().flat_map(|content| content.entities.values());
    assigned.into_iter().any(|assigned| ProfileRevision::number_in(profile, &assigned.version).is_some())
}

pub(crate) async fn patch(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Profile(name)): (NamespacePath, Profile),
    (AtRevision(only_at), query): (AtRevision, QueryParams),
    change: ChangeBody<ParamsPatch>,
) -> Result<JsonAnswer<Shape>, Failure> {
    query.only(&["reason"])?;
    let (transactor, actor, who) = (&app.records.transactor, caller.actor(), &caller.0);
    let scope = ProfileScope { namespace: &namespace, profile: &name, actor: &actor, only_at };
    let access = access(&caller, &namespace, &name);
    access.require(&change)?;
    let why: Option<String> = query.get("reason")?;
    let changed = match (change, why) {
        (ChangeBody::Own(_), Some(_)) => {
            return Err(ShapeError::at("reason", "write it into the body, which has a field for it").into());
        }
        (ChangeBody::Own(patch), None) => {
            let change = ParamsChange::Patch(&patch);
            let request = ParamsRequest { change, who, why: &patch.reason };
            ops::profile::change(transactor, scope, request).await
        }
        (ChangeBody::Standard(change), why) => {
            let change = ParamsChange::Standard(&change);
            let request = ParamsRequest { change, who, why: &why.unwrap_or_default() };
            ops::profile::change(transactor, scope, request).await
        }
    };
    let mut answer = Shape::try_from(&changed.map_err(|error| access.refusal(error))?)?;
    access.hide(&mut answer.params);
    Ok(JsonAnswer(answer))
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Profile(name)): (NamespacePath, Profile),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<ParamsSpec>,
) -> Result<JsonAnswer<Shape>, Failure> {
    let actor = caller.actor();
    let scope = ProfileScope { namespace: &namespace, profile: &name, actor: &actor, only_at };
    let access = access(&caller, &namespace, &name);
    let request = ParamsRequest { change: ParamsChange::All(&spec), who: &caller.0, why: &spec.reason };
    let changed = ops::profile::change(&app.records.transactor, scope, request).await;
    let mut answer = Shape::try_from(&changed.map_err(|error| access.refusal(error))?)?;
    access.hide(&mut answer.params);
    Ok(JsonAnswer(answer))
}

fn access<'a>(
    caller: &'a Authenticated,
    namespace: &'a Namespace,
    name: &'a ProfileName,
) -> ParamsAccess<'a> {
    ParamsAccess { caller, kind: ObjectKind::Profile, name: name.as_str(), namespace }
}

/// Makes the profile live, or no longer live.
pub(crate) async fn put_live(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Profile(name)): (NamespacePath, Profile),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<ProfileLive>,
) -> Result<JsonAnswer<Head>, Failure> {
    let actor = caller.actor();
    let scope = ProfileScope { namespace: &namespace, profile: &name, actor: &actor, only_at };
    let head = ops::profile::set_live(&app.records.transactor, scope, spec.live, &spec.reason).await?;
    Ok(JsonAnswer(Head::from(&head)))
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Profile(name): Profile,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::profile::delete(&app.records.transactor, &namespace, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}

/// The error for a profile that does not exist.
fn missing(name: &ProfileName) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find profile {name}"))
        .hint(format!("create it: bellwether profile set {name} KEY=VALUE"))
}
