//! Bodies, path parameters and queries of requests; an invalid one is refused with its field or parameter.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use bellwether_api::number::{inexact, kept_as_text};
use bellwether_api::paths::CONSISTENCY;
use bellwether_api::problem::Code;
use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::apply::MAX_APPLY_BYTES;
use bellwether_core::words::counter::{Revision, Sequence};
use bellwether_core::words::filter::field::FieldTable;
use bellwether_core::words::filter::saved::FilterDraft;
use bellwether_core::words::filter::{Filter, FilterError};
use bellwether_core::words::name::{
    Category, ClusterName, EnsembleName, EntityName, FilterName, FreezeName, Namespace, NodeName, ParamKey,
    PauseName, ProfileName, ReactionName, RoleName, ScheduleName, SecretName, ServiceName, SinkName,
    SlotName, StageName, TaskName, WorkflowName,
};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::{self, BODY_DEADLINE};
use super::limits::MAX_WAIT;
use super::problem::{Failure, json_response};
use super::readable::Readable;
use super::state::AppState;
use crate::ops::filter::SavedFilters;

/// A JSON body.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let bytes = body(request).await?;
        if bytes.is_empty() {
            return Err(empty_body());
        }
        parse(&bytes).map(Self)
    }
}

/// The bytes of a body, which the guard has read.
pub(crate) async fn body(mut request: Request) -> Result<Bytes, Failure> {
    body::read(&mut request, MAX_APPLY_BYTES, BODY_DEADLINE).await
}

fn empty_body() -> Failure {
    ShapeError::at("body", "empty; send a JSON object, such as {}").into()
}

/// A JSON body whose fields are all optional; it may be empty. Routes that take one are registered as
/// [`Route::optional_body`](super::routes::Route::optional_body).
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let bytes = body(request).await?;
        if bytes.is_empty() { Ok(Self(T::default())) } else { parse(&bytes).map(Self) }
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    // A list would be read as the fields of an object, one after the other.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ShapeError::at("the body", "expected a JSON object, found a list").into());
    }
    parse_any(bytes)
}

/// A JSON value of any kind. A number that would lose digits is refused, so that what is stored is what was sent.
pub(crate) fn parse_any<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    if let Some(found) = std::str::from_utf8(bytes).ok().and_then(inexact) {
        let place = if found.place.is_empty() { "the body" } else { &found.place };
        let failure = Failure::from(ShapeError::at(place, &found));
        return Err(failure.hint(kept_as_text(found.number)));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        let place = if matches!(place.as_str(), "." | "?") { "the body" } else { &place };
        Failure::from(ShapeError::at(place, error.inner()))
    })?;
    reader.end().map_err(|error| Failure::from(ShapeError::at("the body", error)))?;
    Ok(value)
}

/// A JSON response.
pub(crate) struct JsonAnswer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for JsonAnswer<T> {
    fn into_response(self) -> Response {
        json_response(serde_json::to_vec(&self.0))
    }
}

/// The namespace in the path, which exists, or is created by the object that this request creates.
pub(crate) struct NamespacePath(pub(crate) Namespace);

impl FromRequestParts<AppState> for NamespacePath {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        let namespace: Namespace = param(parts, app, "ns").await?;
        let creates =
            matches!(parts.method, Method::PUT | Method::PATCH) || parts.uri.path().ends_with("/apply");
        if creates || app.known(&namespace) {
            return Ok(Self(namespace));
        }
        let readable = Readable::from_request_parts(parts, app).await?;
        let namespaces = app.world().namespaces();
        let seen = namespaces.iter().filter(|known| readable.has_namespace(known));
        let known: Vec<String> = seen.map(ToString::to_string).collect();
        let unknown = Failure::new(Code::NotFound, format!("cannot find namespace {namespace}"));
        Err(match known.is_empty() {
            true => unknown,
            false => unknown.hint(format!("known namespaces: {}", known.join(", "))),
        })
    }
}

macro_rules! params {
    ($($type:ident($inner:ty) = $key:literal;)*) => {$(
        /// A path parameter.
        pub(crate) struct $type(pub(crate) $inner);

        impl FromRequestParts<AppState> for $type {
            type Rejection = Failure;
            async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
                Ok(Self(param(parts, app, $key).await?))
            }
        }
    )*};
}

params! {
    Node(NodeName) = "node";
    Service(ServiceName) = "service";
    Entity(EntityName) = "entity";
    Profile(ProfileName) = "profile";
    NamedCluster(ClusterName) = "cluster";
    NamedEnsemble(EnsembleName) = "ensemble";
    NamedFilter(FilterName) = "filter";
    NamedSchedule(ScheduleName) = "schedule";
    NamedReaction(ReactionName) = "reaction";
    NamedSink(SinkName) = "sink";
    Freeze(FreezeName) = "freeze";
    Pause(PauseName) = "pause";
    Turn(SlotName) = "slot";
    TaskNamed(TaskName) = "task";
    StageNamed(StageName) = "stage";
    WorkflowNamed(WorkflowName) = "workflow";
    RunNamed(EntityName) = "run";
    Number(u64) = "number";
    Word(String) = "operation";
    CategoryText(String) = "category";
    CategoryName(Category) = "category";
    RoleText(RoleName) = "role";
    DeclaredParam(ParamKey) = "param";
    NamedSecret(SecretName) = "secret";
    TokenText(String) = "token";
    Subject(String) = "subject";
}

async fn param<T>(parts: &mut Parts, app: &AppState, key: &str) -> Result<T, Failure>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let PathParams(all) = PathParams::from_request_parts(parts, app).await?;
    let text = all.iter().find(|(name, _)| *name == key).map(|(_, text)| text.to_owned());
    let place = if key == "ns" { "namespace" } else { key };
    Ok(read(place, &text.unwrap_or_default())?)
}

/// The parameters of a path, which is refused unless it is UTF-8.
pub(crate) struct PathParams(pub(crate) RawPathParams);

impl<S: Send + Sync> FromRequestParts<S> for PathParams {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let read = RawPathParams::from_request_parts(parts, state).await;
        read.map(Self).map_err(|error| Failure::new(Code::Invalid, format!("cannot read the path: {error}")))
    }
}

/// The header `If-Match`: the revision that the object must have, in quotes, as an `ETag` has it; none if it is absent.
pub(crate) struct IfMatch(pub(crate) Option<Revision>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        if parts.headers.contains_key(http::header::IF_NONE_MATCH) {
            return Err(ShapeError::at("If-None-Match", "not supported here; send If-Match").into());
        }
        if_match(parts).map(Self)
    }
}

fn if_match(parts: &Parts) -> Result<Option<Revision>, Failure> {
    let Some(value) = parts.headers.get(http::header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().ok().and_then(|text| text.trim().strip_prefix('"')?.strip_suffix('"'));
    let revision = text.and_then(|text| text.parse().ok()).map(Revision::new);
    let refused = || ShapeError::at("If-Match", "expected one revision in quotes, such as \"42\"").into();
    revision.map(Some).ok_or_else(refused)
}

/// The header `If-Match` with the number of a revision, or `If-None-Match: *`, which stands for 0; none if both are absent.
pub(crate) struct AtRevision(pub(crate) Option<u64>);

impl<S: Send + Sync> FromRequestParts<S> for AtRevision {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let revision = if_match(parts)?;
        match (revision, parts.headers.get(http::header::IF_NONE_MATCH).map(HeaderValue::as_bytes)) {
            (revision, None) => Ok(Self(revision.map(Revision::get))),
            (None, Some(b"*")) => Ok(Self(Some(0))),
            (Some(_), Some(_)) => Err(ShapeError::at("If-None-Match", "not together with If-Match").into()),
            (None, Some(_)) => Err(ShapeError::at("If-None-Match", "expected *").into()),
        }
    }
}

/// A query string as pairs. Unknown parameters are refused.
pub(crate) struct QueryParams {
    pairs: Vec<(String, String)>,
    /// What the caller may read, for lists.
    pub(crate) readable: Readable,
    pub(crate) app: AppState,
    /// The namespace in the path.
    namespace: Option<Namespace>,
}

impl FromRequestParts<AppState> for QueryParams {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::from_request_parts(parts, app).await;
        let pairs = pairs.map_err(|error| Failure::from(ShapeError::at("the query", error)))?;
        let mut pairs = pairs.0;
        // The guard evaluates it for every route.
        pairs.retain(|(name, _)| name != CONSISTENCY);
        let readable = Readable::from_request_parts(parts, app).await?;
        let path = RawPathParams::from_request_parts(parts, app).await.ok();
        let namespace = path.and_then(|path| path.iter().find(|(key, _)| *key == "ns")?.1.parse().ok());
        Ok(Self { pairs, readable, app: app.clone(), namespace })
    }
}

impl QueryParams {
    /// Refuses parameters that are not in this list.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Failure> {
        let unknown = self.pairs.iter().find(|(name, _)| !known.contains(&name.as_str()));
        unknown.map_or(Ok(()), |(name, _)| {
            let list = known.join(", ");
            Err(ShapeError::at(name, format!("not a parameter of this route; known: {list}")).into())
        })
    }

    /// A filter over the fields of a table, with the saved filters of the path's namespace that it names written out. One that the
    /// caller may not read is not there.
    pub(crate) fn filter(&self, text: &str, table: &'static FieldTable) -> Result<Filter, FilterError> {
        let draft = FilterDraft::parse(text, table)?;
        let Some(namespace) = &self.namespace else {
            return draft.without_saved("this list is of no namespace: write the filter out");
        };
        let world = self.app.world();
        let (fleet, may_read) =
            (world.fleets.get(namespace), |name: &FilterName| self.readable.has_filter(name));
        SavedFilters { fleet, may_read: &may_read }.resolve(&draft, table, None)
    }

    /// The value of a parameter, if it is there.
    pub(crate) fn get<T>(&self, name: &str) -> Result<Option<T>, Failure>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let found = self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        Ok(bellwether_api::shape::read_some(name, found)?)
    }

    /// All values of a parameter that may be repeated.
    pub(crate) fn all<T>(&self, name: &str) -> Result<Vec<T>, Failure>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let found = self.pairs.iter().filter(|(key, _)| key == name);
        found.map(|(_, value)| Ok(read(name, value)?)).collect()
    }

    /// The parameter `wait`, a duration such as `30s`: at most a minute, zero if absent.
    pub(crate) fn wait(&self) -> Result<Duration, Failure> {
        let wait: Option<bellwether_core::words::time::Span> = self.get("wait")?;
        Ok(wait.map_or(Duration::ZERO, |span| span.to_duration().min(MAX_WAIT)))
    }

    /// The parameter `index`: the revision that the client has.
    pub(crate) fn index(&self) -> Result<Revision, Failure> {
        Ok(Revision::new(self.get("index")?.unwrap_or_default()))
    }

    /// The parameter `after`: the last event that the client has.
    pub(crate) fn after(&self) -> Result<Option<Sequence>, Failure> {
        Ok(self.get::<u64>("after")?.map(Sequence::new))
    }

    /// The parameter `limit`: most items in the response, 1 to 1,000.
    pub(crate) fn limit(&self) -> Result<usize, Failure> {
        let limit: usize = self.get("limit")?.unwrap_or(1_000);
        if (1..=1_000).contains(&limit) {
            return Ok(limit);
        }
        Err(ShapeError::at("limit", "must be between 1 and 1000").into())
    }
}
