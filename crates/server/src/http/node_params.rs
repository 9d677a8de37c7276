//! Params of nodes over HTTP.

use std::collections::BTreeSet;

use axum::extract::State;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::node_params::{
    ExplainedLevel, ExplainedParam, LevelKind, NodeParams as Shape, NodeProfiles,
};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::{Params, ParamsPatch, ParamsSpec, params};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::records::entity::EntityKind;
use bellwether_core::records::node_params::NodeParams;
use bellwether_core::records::profile::ProfileRevision;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::{EntityName, Namespace, NodeName, ProfileName};
use bellwether_core::words::precedence::{ParamLayers, ParamLevel, levels};
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{AtRevision, JsonAnswer, JsonBody, NamespacePath, Node, QueryParams};
use super::json_change::{ChangeBody, ParamsAccess};
use super::problem::Failure;
use super::state::AppState;
use crate::ops::OpError;
use crate::ops::node_params;
use crate::ops::params::{ParamsChange, ParamsRequest};
use crate::ops::run;
use crate::ops::scope::NodeScope;

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(node): Node,
) -> Result<JsonAnswer<Shape>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace).ok_or_else(|| missing(&node))?;
    Ok(JsonAnswer(Shape::try_from(&node_params::get(fleet, &node)?)?))
}

pub(crate) async fn patch(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
    (AtRevision(only_at), query): (AtRevision, QueryParams),
    change: ChangeBody<ParamsPatch>,
) -> Result<JsonAnswer<Shape>, Failure> {
    query.only(&["reason"])?;
    let (transactor, actor, who) = (&app.records.transactor, caller.actor(), &caller.0);
    let scope = NodeScope { namespace: &namespace, node: &node, actor: &actor };
    let access = access(&caller, &namespace, &node);
    access.require(&change)?;
    let why: Option<String> = query.get("reason")?;
    let changed = match (&change, why) {
        (ChangeBody::Own(_), Some(_)) => {
            return Err(ShapeError::at("reason", "write it into the body, which has a field for it").into());
        }
        (ChangeBody::Own(patch), None) => {
            let change = ParamsChange::Patch(patch);
            let request = ParamsRequest { change, who, why: &patch.reason };
            node_params::change(transactor, scope, only_at, request).await
        }
        (ChangeBody::Standard(change), why) => {
            let change = ParamsChange::Standard(change);
            let request = ParamsRequest { change, who, why: &why.unwrap_or_default() };
            node_params::change(transactor, scope, only_at, request).await
        }
    };
    shown(&access, changed)
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<ParamsSpec>,
) -> Result<JsonAnswer<Shape>, Failure> {
    let actor = caller.actor();
    let scope = NodeScope { namespace: &namespace, node: &node, actor: &actor };
    let request = ParamsRequest { change: ParamsChange::All(&spec), who: &caller.0, why: &spec.reason };
    let changed = node_params::change(&app.records.transactor, scope, only_at, request).await;
    shown(&access(&caller, &namespace, &node), changed)
}

pub(crate) async fn put_profiles(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<NodeProfiles>,
) -> Result<JsonAnswer<Shape>, Failure> {
    let world = app.world();
    let read = world.fleets.get(&namespace).map(|fleet| fleet.profiles_read_by(&node)).unwrap_or_default();
    // It reads their params from then on, and the secrets in them.
    for profile in spec.profiles.iter().filter(|profile| read.iter().all(|of| of.as_str() != **profile)) {
        caller.require(Right::update(ObjectKind::Profile), Some(profile), Some(&namespace))?;
    }
    let actor = caller.actor();
    let scope = NodeScope { namespace: &namespace, node: &node, actor: &actor };
    let changed = node_params::read_profiles(&app.records.transactor, scope, only_at, &spec).await;
    shown(&access(&caller, &namespace, &node), changed)
}

fn access<'a>(caller: &'a Authenticated, namespace: &'a Namespace, node: &'a NodeName) -> ParamsAccess<'a> {
    ParamsAccess { caller, kind: ObjectKind::Node, name: node.as_str(), namespace }
}

/// The answer to a change, for who made it.
fn shown(
    access: &ParamsAccess<'_>,
    changed: Result<NodeParams, OpError>,
) -> Result<JsonAnswer<Shape>, Failure> {
    let mut answer = Shape::try_from(&changed.map_err(|error| access.refusal(error))?)?;
    access.hide(&mut answer.params);
    Ok(JsonAnswer(answer))
}

/// Every param of the node, or the one that is asked for, with all levels; with `entity`, as its files have them.
pub(crate) async fn explain(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
    query: QueryParams,
) -> Result<JsonAnswer<Page<ExplainedParam>>, Failure> {
    query.only(&["key", "entity"])?;
    let key: Option<String> = query.get("key")?;
    let entity: Option<EntityName> = query.get("entity")?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace).ok_or_else(|| missing(&node))?;
    let explained = Explained::of(fleet, &node, entity.as_ref())?;
    let items = match key {
        Some(key) => vec![explained.param(&key)],
        None => explained.keys().map(|key| explained.param(key)).collect(),
    };
    Ok(JsonAnswer(Page { items, next: None, count: None, revision: world.revision.get() }))
}

/// The levels of a node in order of precedence.
struct Explained {
    levels: Vec<ReadLevel>,
    /// What its cluster gives it by its role, which takes precedence over all of them.
    by_role: Params,
}

/// One level, its revision and its params.
struct ReadLevel {
    level: ParamLevel,
    revision: u64,
    read: bool,
    params: Params,
}

impl Explained {
    fn of(fleet: &Fleet, node: &NodeName, entity: Option<&EntityName>) -> Result<Self, Failure> {
        let own = node_params::get(fleet, node)?;
        let of_entity = entity.map(|entity| rolled_out(fleet, node, entity)).transpose()?;
        let of_profile = of_entity.as_ref().map(|(profile, _)| profile);
        let read = |level: ParamLevel| {
            let (revision, read, params) = match &level {
                ParamLevel::Node => (own.revision.get(), true, params(&own.params)?),
                ParamLevel::Profile(profile) => {
                    let assigned = of_entity.as_ref().filter(|(of, _)| of == profile);
                    let head = fleet.profile(profile);
                    let number = assigned.map_or_else(|| head.map(|head| head.newest), |(_, number)| *number);
                    let kept =
                        number.and_then(|number| fleet.profile_revisions.get(&(profile.clone(), number)));
                    let found = kept.map(|kept| params(&kept.value.params)).transpose()?;
                    let is_live = head.is_some_and(|head| head.live);
                    let number = number.map_or(0, ProfileRevisionNumber::get);
                    (number, is_live || assigned.is_some(), found.unwrap_or_default())
                }
            };
            Ok(ReadLevel { level, revision, read, params })
        };
        let levels = levels(&fleet.profiles_read_by(node), of_profile).into_iter().map(read);
        Ok(Self { levels: levels.collect::<Result<_, Failure>>()?, by_role: run::role_params(fleet, node) })
    }

    /// Every param of a level that the node reads.
    fn keys(&self) -> impl Iterator<Item = &str> {
        let read = self.levels.iter().filter(|level| level.read);
        let keys = read.flat_map(|level| level.params.keys()).chain(self.by_role.keys());
        let keys: BTreeSet<&str> = keys.map(String::as_str).collect();
        keys.into_iter()
    }

    fn param(&self, key: &str) -> ExplainedParam {
        let read = self.levels.iter().filter(|level| level.read);
        let layers =
            ParamLayers::new(read.map(|level| (level.level.clone(), level.params.clone())).collect());
        let by_role = self.by_role.get(key);
        let decided = layers.get(key).filter(|_| by_role.is_none());
        let role = by_role.map(|value| ExplainedLevel {
            level: LevelKind::Cluster,
            profile: None,
            revision: 0,
            read: true,
            value: Some(value.clone()),
            decides: true,
        });
        let levels = self.levels.iter().map(|each| {
            let (kind, profile) = match &each.level {
                ParamLevel::Node => (LevelKind::Node, None),
                ParamLevel::Profile(profile) => (LevelKind::Profile, Some(profile.to_string())),
            };
            ExplainedLevel {
                level: kind,
                profile,
                revision: each.revision,
                read: each.read,
                value: each.params.get(key).cloned(),
                decides: decided.is_some_and(|(level, _)| *level == each.level),
            }
        });
        let value = by_role.or(decided.map(|(_, value)| value)).cloned();
        ExplainedParam { key: key.to_owned(), value, levels: role.into_iter().chain(levels).collect() }
    }
}

/// The profile of an entity, and its revision that is assigned to the node, if any.
fn rolled_out(
    fleet: &Fleet,
    node: &NodeName,
    entity: &EntityName,
) -> Result<(ProfileName, Option<ProfileRevisionNumber>), Failure> {
    let found = fleet.entities.get(entity).ok_or_else(|| OpError::NotFound(format!("entity {entity}")))?;
    let EntityKind::Profile(profile) = &found.value.kind else {
        let reason = format!("{entity} is not an entity of a profile, so that none of its files has params");
        return Err(ShapeError::at("entity", reason).into());
    };
    let assigned = fleet.contents.get(node).and_then(|content| content.entities.get(entity));
    let number = assigned.and_then(|assigned| ProfileRevision::number_in(profile, &assigned.version));
    Ok((profile.clone(), number))
}

fn missing(node: &NodeName) -> Failure {
    OpError::NotFound(format!("node {node}")).into()
}
