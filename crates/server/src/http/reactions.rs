//! Reactions over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::REACTIONS;
use bellwether_api::problem::Code;
use bellwether_api::v1::reaction::{Reaction, ReactionMatch, ReactionSpec};
use bellwether_core::access::ObjectKind;
use bellwether_core::decide::reactions::matches;
use bellwether_core::records::reaction::{ConditionSubject, Reaction as CoreReaction};
use bellwether_core::words::name::ReactionName;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{AtRevision, JsonAnswer, JsonBody, NamedReaction, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::readable::Readable;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::reaction::ReactionScope;

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
    let settled = app.cluster.watch(world).settled();
    let is_seen = |subject: &ConditionSubject| {
        subject.node().is_none_or(|node| readable.has_object(ObjectKind::Node, node.as_str()))
    };
    let all = matches(reaction, fleet, settled, app.clock.now());
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
    Ok(SetResponse { is_new, value: Reaction::from(&reaction) })
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
