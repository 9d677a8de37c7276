//! Tasks, stages and workflows over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::{STAGES, TASKS, WORKFLOWS};
use bellwether_api::problem::Code;
use bellwether_api::v1::workflow::{Stage, StageSpec, Task, TaskSpec, Workflow, WorkflowSpec};
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, QueryParams, StageNamed, TaskNamed, WorkflowNamed};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::ops::definition::{self, DefinitionScope};

pub(crate) async fn tasks(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &TASKS, &[])?;
    let world = app.world();
    let mut all = Vec::new();
    if let Some(fleet) = world.fleets.get(&namespace) {
        let users = definition::users(fleet)?;
        for id in fleet.definitions.keys() {
            let DefinitionId::Task(name) = id else { continue };
            all.extend(definition::task_view(fleet, &users, name)?);
        }
    }
    list.answer_json((&TASKS, app.clock.now()), all.into_iter(), world.revision)
}

pub(crate) async fn stages(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &STAGES, &[])?;
    let world = app.world();
    let mut all = Vec::new();
    if let Some(fleet) = world.fleets.get(&namespace) {
        let users = definition::users(fleet)?;
        for id in fleet.definitions.keys() {
            let DefinitionId::Stage(name) = id else { continue };
            all.extend(definition::stage_view(fleet, &users, name)?);
        }
    }
    list.answer_json((&STAGES, app.clock.now()), all.into_iter(), world.revision)
}

pub(crate) async fn workflows(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &WORKFLOWS, &[])?;
    let world = app.world();
    let mut all = Vec::new();
    if let Some(fleet) = world.fleets.get(&namespace) {
        for id in fleet.definitions.keys() {
            let DefinitionId::Workflow(name) = id else { continue };
            all.extend(definition::workflow_view(fleet, name)?);
        }
    }
    list.answer_json((&WORKFLOWS, app.clock.now()), all.into_iter(), world.revision)
}

pub(crate) async fn task(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    TaskNamed(name): TaskNamed,
) -> Result<JsonAnswer<Task>, Failure> {
    let world = app.world();
    let view = |fleet: &Fleet| definition::task_view(fleet, &definition::users(fleet)?, &name);
    let found = world.fleets.get(&namespace).map(view).transpose()?;
    found.flatten().map(JsonAnswer).ok_or_else(|| missing(&DefinitionId::Task(name.clone())))
}

pub(crate) async fn stage(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    StageNamed(name): StageNamed,
) -> Result<JsonAnswer<Stage>, Failure> {
    let world = app.world();
    let view = |fleet: &Fleet| definition::stage_view(fleet, &definition::users(fleet)?, &name);
    let found = world.fleets.get(&namespace).map(view).transpose()?;
    found.flatten().map(JsonAnswer).ok_or_else(|| missing(&DefinitionId::Stage(name.clone())))
}

pub(crate) async fn workflow(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    WorkflowNamed(name): WorkflowNamed,
) -> Result<JsonAnswer<Workflow>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).map(|fleet| definition::workflow_view(fleet, &name));
    let found = found.transpose()?.flatten();
    found.map(JsonAnswer).ok_or_else(|| missing(&DefinitionId::Workflow(name.clone())))
}

pub(crate) async fn put_task(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), TaskNamed(name)): (NamespacePath, TaskNamed),
    JsonBody(spec): JsonBody<TaskSpec>,
) -> Result<SetResponse<Task>, Failure> {
    let (id, actor) = (DefinitionId::Task(name.clone()), caller.actor());
    let content = definition::task(&spec)?;
    definition::grantable(caller.rights()?, &namespace, &spec)?;
    let scope = DefinitionScope { namespace: &namespace, id: &id, actor: &actor };
    let is_new = definition::set(&app.records.transactor, scope, &content, "").await?;
    let JsonAnswer(value) = task(State(app), NamespacePath(namespace), TaskNamed(name)).await?;
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn put_stage(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), StageNamed(name)): (NamespacePath, StageNamed),
    JsonBody(spec): JsonBody<StageSpec>,
) -> Result<SetResponse<Stage>, Failure> {
    let (id, actor) = (DefinitionId::Stage(name.clone()), caller.actor());
    let scope = DefinitionScope { namespace: &namespace, id: &id, actor: &actor };
    let is_new = definition::set(&app.records.transactor, scope, &definition::stage(&spec)?, "").await?;
    let JsonAnswer(value) = stage(State(app), NamespacePath(namespace), StageNamed(name)).await?;
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn put_workflow(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), WorkflowNamed(name)): (NamespacePath, WorkflowNamed),
    JsonBody(spec): JsonBody<WorkflowSpec>,
) -> Result<SetResponse<Workflow>, Failure> {
    let (id, actor) = (DefinitionId::Workflow(name.clone()), caller.actor());
    let scope = DefinitionScope { namespace: &namespace, id: &id, actor: &actor };
    let content = definition::workflow(name.as_str(), &spec)?;
    let is_new = definition::set(&app.records.transactor, scope, &content, "").await?;
    let JsonAnswer(value) = workflow(State(app), NamespacePath(namespace), WorkflowNamed(name)).await?;
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn delete_task(
    State(app): State<AppState>,
    caller: Authenticated,
    (namespace, TaskNamed(name)): (NamespacePath, TaskNamed),
) -> Result<JsonAnswer<Empty>, Failure> {
    delete(&app, &caller, namespace, DefinitionId::Task(name)).await
}

pub(crate) async fn delete_stage(
    State(app): State<AppState>,
    caller: Authenticated,
    (namespace, StageNamed(name)): (NamespacePath, StageNamed),
) -> Result<JsonAnswer<Empty>, Failure> {
    delete(&app, &caller, namespace, DefinitionId::Stage(name)).await
}

pub(crate) async fn delete_workflow(
    State(app): State<AppState>,
    caller: Authenticated,
    (namespace, WorkflowNamed(name)): (NamespacePath, WorkflowNamed),
) -> Result<JsonAnswer<Empty>, Failure> {
    delete(&app, &caller, namespace, DefinitionId::Workflow(name)).await
}

async fn delete(
    app: &AppState,
    caller: &Authenticated,
    NamespacePath(namespace): NamespacePath,
    id: DefinitionId,
) -> Result<JsonAnswer<Empty>, Failure> {
    let scope = DefinitionScope { namespace: &namespace, id: &id, actor: &caller.actor() };
    definition::delete(&app.records.transactor, scope).await?;
    Ok(JsonAnswer(Empty {}))
}

fn missing(id: &DefinitionId) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find {id}"))
        .hint(format!("list those there are: bellwether {} list", id.kind()))
}
