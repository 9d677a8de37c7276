//! Runs of workflows over HTTP.

use std::collections::BTreeSet;

use axum::extract::State;
use bellwether_api::list::tables::RUNS;
use bellwether_api::problem::Code;
use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::run::{NewRun, Run, UndoRun};
use bellwether_api::v1::task_list::NextJob;
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::words::filter::Filter;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::name::{EntityName, Namespace, NodeName};

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Node, Number, QueryParams, RunNamed};
use super::list::node::{NodeRow, matching};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::scope::NodeScope;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &RUNS, &["node"])?;
    let node: Option<String> = query.get("node")?;
    let node: Option<NodeName> = node.map(|node| read("node", &node)).transpose()?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let runs = match &node {
        None => fleet.map(ops::run::list),
        Some(node) => fleet.map(|fleet| ops::run::list_of(fleet, node)),
    };
    let runs = runs.unwrap_or_default();
    list.answer_json((&RUNS, app.clock.now()), runs.into_iter(), world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    RunNamed(name): RunNamed,
) -> Result<JsonAnswer<Run>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| ops::run::get(fleet, &name));
    found.map(JsonAnswer).ok_or_else(|| missing(&name))
}

pub(crate) async fn start(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    JsonBody(request): JsonBody<NewRun>,
) -> Result<JsonAnswer<Run>, Failure> {
    caller.require(Right::update(ObjectKind::Run), Some(&request.workflow), Some(&namespace))?;
    let nodes = chosen(&app, &caller, &namespace, &request.on)?;
    let by = (&namespace, &caller.actor());
    Ok(JsonAnswer(ops::run::start(&app.records.transactor, by, &request, &nodes).await?))
}

pub(crate) async fn undo(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), RunNamed(name)): (NamespacePath, RunNamed),
    JsonBody(request): JsonBody<UndoRun>,
) -> Result<JsonAnswer<Run>, Failure> {
    let world = app.world();
    let run = world.fleets.get(&namespace).and_then(|fleet| fleet.runs.get(&name));
    let workflow = run.map(|kept| kept.value.workflow.to_string());
    caller.require(Right::update(ObjectKind::Run), workflow.as_deref(), Some(&namespace))?;
    let by = (&namespace, &caller.actor());
    Ok(JsonAnswer(ops::run::undo(&app.records.transactor, by, &name, &request).await?))
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), RunNamed(name)): (NamespacePath, RunNamed),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::run::delete(&app.records.transactor, &namespace, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}

/// Has a node begin the next task of a run that its order names, and answers what it needs for that.
pub(crate) async fn take(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
    (RunNamed(run), Number(index)): (RunNamed, Number),
) -> Result<JsonAnswer<NextJob>, Failure> {
    let actor = caller.actor();
    let scope = NodeScope { namespace: &namespace, node: &node, actor: &actor };
    Ok(JsonAnswer(ops::run::take(&app.records.transactor, scope, &run, index).await?))
}

/// The nodes that a filter matches now, of those that the caller may read.
fn chosen(
    app: &AppState,
    caller: &Authenticated,
    namespace: &Namespace,
    on: &str,
) -> Result<BTreeSet<NodeName>, Failure> {
    if on.trim().is_empty() {
        return Err(ShapeError::at("on", "missing; write 'all' for every node").into());
    }
    let filter = Filter::parse(on, &NODES).map_err(|error| ShapeError::misread("on", &error))?;
    let (world, now) = (app.world(), app.clock.now());
    let Some(fleet) = world.fleets.get(namespace) else { return Ok(BTreeSet::new()) };
    let may_read = |row: &NodeRow<'_>| {
        let right = Right::get(ObjectKind::Node);
        caller.require(right, Some(row.node.name.as_str()), Some(namespace)).is_ok()
    };
    Ok(matching(fleet, &filter, now).filter(may_read).map(|row| row.node.name.clone()).collect())
}

/// The error for a run that is not there.
pub(super) fn missing(name: &EntityName) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find run {name}")).hint("list them: bellwether run list")
}
