//! Saved filters over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::FILTERS;
use bellwether_api::problem::Code;
use bellwether_api::v1::filter::{Filter, FilterSpec};

use super::auth::Authenticated;
use super::input::{AtRevision, JsonAnswer, JsonBody, NamedFilter, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::filter::{FilterScope, readable};

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &FILTERS, &[])?;
    let world = app.world();
    let all = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.filters.values());
    let filters = all.map(|kept| Filter::from(&*kept.value));
    list.answer_json((&FILTERS, app.clock.now()), filters, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedFilter(name)): (NamespacePath, NamedFilter),
) -> Result<JsonAnswer<Filter>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| fleet.filters.get(&name));
    let shown = found.map(|kept| JsonAnswer(Filter::from(&*kept.value)));
    shown.ok_or_else(|| {
        Failure::new(Code::NotFound, format!("cannot find filter {name}"))
            .hint("list those that are saved: bellwether filter list")
    })
}

pub(crate) async fn put(
    State(app): State<AppState>,
    Authenticated(who): Authenticated,
    (NamespacePath(namespace), NamedFilter(name)): (NamespacePath, NamedFilter),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<FilterSpec>,
) -> Result<SetResponse<Filter>, Failure> {
    let (actor, may_read) = (who.actor(), readable(&who, &namespace));
    let scope =
        FilterScope { namespace: &namespace, name: &name, actor: &actor, may_read: &may_read, only_at };
    let (filter, is_new) = ops::filter::set(&app.records.transactor, scope, &spec).await?;
    Ok(SetResponse { is_new, value: Filter::from(&filter) })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    Authenticated(who): Authenticated,
    (NamespacePath(namespace), NamedFilter(name)): (NamespacePath, NamedFilter),
    AtRevision(only_at): AtRevision,
) -> Result<JsonAnswer<Empty>, Failure> {
    let (actor, may_read) = (who.actor(), readable(&who, &namespace));
    let scope =
        FilterScope { namespace: &namespace, name: &name, actor: &actor, may_read: &may_read, only_at };
    ops::filter::delete(&app.records.transactor, scope).await?;
    Ok(JsonAnswer(Empty {}))
}
