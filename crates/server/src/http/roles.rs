//! Roles over HTTP, and the question what the caller may do.

use axum::extract::State;
use bellwether_api::list::tables::ROLES;
use bellwether_api::problem::Code;
use bellwether_api::shape::{ShapeError, read_some};
use bellwether_api::v1::role::{AccessReview, NewAccessReview, Role, RoleSpec};
use bellwether_core::access::{AccessRequest, AccessScope, FieldPath, NameScope, ObjectKind, VerbPattern};
use bellwether_core::words::name::{Namespace, RoleName};

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, QueryParams, RoleText};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::grant::Grantor;

pub(crate) async fn list(State(app): State<AppState>, query: QueryParams) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &ROLES, &[])?;
    let world = app.world();
    let mut roles = ops::role::list(&world);
    roles.sort_by(|one, other| one.name.cmp(&other.name));
    list.answer_json((&ROLES, app.clock.now()), roles.into_iter(), world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    RoleText(name): RoleText,
) -> Result<JsonAnswer<Role>, Failure> {
    found(&app, &name).map(JsonAnswer)
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    RoleText(name): RoleText,
    JsonBody(spec): JsonBody<RoleSpec>,
) -> Result<SetResponse<Role>, Failure> {
    let actor = caller.actor();
    let author = Grantor { actor: &actor, rights: caller.rights()? };
    let is_new = ops::role::set(&app.records.transactor, author, &name, &spec).await?;
    Ok(SetResponse { is_new, value: found(&app, &name)? })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    RoleText(name): RoleText,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::role::delete(&app.records.transactor, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}

/// Whether the caller may do something, and by which claim.
pub(crate) async fn review(
    caller: Authenticated,
    JsonBody(asked): JsonBody<NewAccessReview>,
) -> Result<JsonAnswer<AccessReview>, Failure> {
    let at = |place: &'static str| move |reason: String| ShapeError::at(place, reason);
    let kind = ObjectKind::parse(&asked.kind).map_err(at("kind"))?;
    let whole = FieldPath::whole();
    let verb = VerbPattern::parse(&asked.verb).map_err(at("verb"))?;
    let (verb, field) = match &verb {
        VerbPattern::Any => return Err(ShapeError::at("verb", "expected one verb, not *").into()),
        VerbPattern::Of(verb, field) => (*verb, if field.is_whole() { &whole } else { field }),
    };
    let namespace: Option<Namespace> = read_some("namespace", asked.namespace.as_deref())?;
    let request = AccessRequest {
        verb,
        field: field.as_str(),
        is_partial: false,
        kind,
        name: asked.name.as_deref().map_or(NameScope::Some, NameScope::Named),
        scope: match &namespace {
            _ if kind.is_global() => AccessScope::Installation,
            Some(namespace) => AccessScope::Namespace(namespace.as_str()),
            None => AccessScope::Some,
        },
    };
    let deciding = caller.rights()?.deciding(&request);
    let review = AccessReview {
        allowed: deciding.is_some(),
        request: request.to_string(),
        role: deciding.map(|(role, _)| role.to_string()),
        claim: deciding.map(|(_, claim)| claim.to_string()),
    };
    std::future::ready(Ok(JsonAnswer(review))).await
}

fn found(app: &AppState, name: &RoleName) -> Result<Role, Failure> {
    ops::role::get(&app.world(), name).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("cannot find role {name}"))
            .hint("list them: bellwether role list")
    })
}
