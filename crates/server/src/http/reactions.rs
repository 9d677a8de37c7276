//! Reactions over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::REACTIONS;
use bellwether_api::problem::Code;
use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::cluster::ClusterMode;
use bellwether_api::v1::reaction::test::{ReactionTest, TestReaction};
use bellwether_api::v1::reaction::{Reaction, ReactionMatch, ReactionSpec, ReactionState};
use bellwether_core::access::ObjectKind;
use bellwether_core::decide::reactions::{matches, rehearse};
use bellwether_core::records::reaction::{ConditionSubject, Reaction as CoreReaction};
use bellwether_core::words::name::ReactionName;
use bellwether_core::world::World;
use bellwether_core::world::conditions;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{AtRevision, JsonAnswer, JsonBody, NamedReaction, NamespacePath, QueryParams};
use super::list::node::matching_names;
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::readable::Readable;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::reaction::ReactionScope;

/// Most nodes that a test names.
const NODES_SHOWN: usize = 100;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &REACTIONS, &[])?;
    let world = app.world();
    let all = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.reactions.values());
    let reactions = all.map(|kept| Reaction::from(&*kept.value));
    list.answer_json((&REACTIONS, app.clock.now()), reactions, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    readable: Readable,
    (NamespacePath(namespace), NamedReaction(name)): (NamespacePath, NamedReaction),
) -> Result<JsonAnswer<Reaction>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| fleet.reactions.get(&name));
    let shown = found.zip(world.fleets.get(&namespace)).map(|(kept, fleet)| {
        let matches = standings(&app, (&world, fleet), &readable, &kept.value);
        JsonAnswer(Reaction { matches, ..Reaction::from(&*kept.value) })
    });
    shown.ok_or_else(|| missing(&name))
}

/// That there is no such reaction.
pub(super) fn missing(name: &ReactionName) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find reaction {name}"))
        .hint("list them: bellwether reaction list")
}

/// The conditions that a reaction is about and that are true now, as far as the caller may read their nodes, and how it stands to each.
pub(super) fn standings(
    app: &AppState,
    (world, fleet): (&World, &Fleet),
    readable: &Readable,
    reaction: &CoreReaction,
) -> Vec<ReactionMatch> {
    let watch = app.cluster.watch(world);
    let is_seen = |subject: &ConditionSubject| {
        subject.node().is_none_or(|node| readable.has_object(ObjectKind::Node, node.as_str()))
    };
    let all = matches(reaction, fleet, watch, app.clock.now());
    let seen = all.iter().filter(|(condition, _)| is_seen(condition.subject));
    seen.map(|(condition, standing)| ReactionMatch::of(condition, standing)).collect()
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedReaction(name)): (NamespacePath, NamedReaction),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<ReactionSpec>,
) -> Result<SetResponse<Reaction>, Failure> {
    ops::schedule::grantable(caller.rights()?, &namespace, &spec.workflow, "write a reaction")?;
    let scope = ReactionScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    let (reaction, is_new) = ops::reaction::set(&app.records.transactor, scope, &spec).await?;
    let world = app.world();
    let warning = world.fleets.get(&namespace).and_then(|fleet| ops::reaction::warning(fleet, &reaction));
    Ok(SetResponse { is_new, value: Reaction { warning, ..Reaction::from(&reaction) } })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedReaction(name)): (NamespacePath, NamedReaction),
    AtRevision(only_at): AtRevision,
) -> Result<JsonAnswer<Empty>, Failure> {
    let scope = ReactionScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    ops::reaction::delete(&app.records.transactor, scope).await?;
    Ok(JsonAnswer(Empty {}))
}

/// Refuses a subject whose node or cluster is not there, or may not be read.
fn is_there(fleet: &Fleet, readable: &Readable, subject: &ConditionSubject) -> Result<(), Failure> {
    let (kind, name, is_there) = match subject {
        ConditionSubject::Node(node) | ConditionSubject::Store(node, _) => {
            (ObjectKind::Node, node.as_str(), fleet.active_node(node).is_some())
        }
        ConditionSubject::Cluster(cluster, _) => {
            (ObjectKind::Cluster, cluster.as_str(), fleet.clusters.contains_key(cluster))
        }
    };
    if is_there && readable.has_object(kind, name) {
        return Ok(());
    }
    let kind = kind.as_str();
    let detail = format!("cannot find {kind} {name}, which is to be the subject of the condition");
    Err(Failure::new(Code::NotFound, detail).hint(format!("list them: bellwether {kind} list")))
}

/// Refuses a subject of which the condition can never be true.
fn has_form(condition: &str, subject: &ConditionSubject) -> Result<(), Failure> {
    match conditions::subject_form(condition).filter(|form| *form != subject.form()) {
        None => Ok(()),
        Some(form) => {
            let reason = format!("{subject} cannot be the subject of {condition}, which is true of {form}");
            Err(ShapeError::at("subject", reason).into())
        }
    }
}

pub(crate) async fn test(
    State(app): State<AppState>,
    readable: Readable,
    (NamespacePath(namespace), NamedReaction(name)): (NamespacePath, NamedReaction),
    JsonBody(asked): JsonBody<TestReaction>,
) -> Result<JsonAnswer<ReactionTest>, Failure> {
    let subject: ConditionSubject = read("subject", &asked.subject)?;
    if !conditions::is_condition(&asked.condition) {
        let all = conditions::names().collect::<Vec<_>>().join(", ");
        return Err(
            ShapeError::at("condition", format!("there is none of this name; there are {all}")).into()
        );
    }
    has_form(&asked.condition, &subject)?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace).ok_or_else(|| missing(&name))?;
    let reaction = fleet.reactions.get(&name).ok_or_else(|| missing(&name))?;
    is_there(fleet, &readable, &subject)?;
    let (watch, now) = (app.cluster.watch(&world), app.clock.now());
    let of = (asked.condition.as_str(), &subject);
    let Some(standing) = rehearse(&reaction.value, fleet, of, (watch, now)) else {
        return Ok(JsonAnswer(ReactionTest::default()));
    };
    let (state, until_ms) = ReactionState::of(&standing);
    let tried = ops::reaction::rehearse(fleet, now, (&reaction.value, of), matching_names);
    let mode = standing.mode().map(ClusterMode::from);
    let observed_cluster =
        fleet.cluster_of_subject(&subject).filter(|_| mode.is_some()).map(ToString::to_string);
    let answer = ReactionTest {
        matches: true,
        state: Some(state),
        until_ms,
        run: standing.run().map(ToString::to_string),
        observed_cluster,
        mode,
        ..ReactionTest::default()
    };
    Ok(JsonAnswer(match tried {
        Err(error) => ReactionTest { refused: Some(error.to_string()), ..answer },
        Ok((nodes, run)) => {
            let seen = nodes.iter().filter(|node| readable.has_object(ObjectKind::Node, node.as_str()));
            let nodes = seen.take(NODES_SHOWN).map(ToString::to_string).collect();
            ReactionTest { node_count: run.nodes, nodes, warning: run.warning, ..answer }
        }
    }))
}
