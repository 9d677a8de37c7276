//! Registration of routes: a route has its required access, its summary for the API description, and its shapes.

mod describe;

use std::collections::BTreeSet;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter, on};
use bellwether_api::media::{JSON, PARTIAL_JSON};
use bellwether_api::paths;
use bellwether_api::v1::slot::FleetLockError;
use bellwether_core::access::RequiredAccess;
use utoipa::openapi::info::LicenseBuilder;
use utoipa::openapi::path::{HttpMethod, PathItem};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr, Schema,
    Server, Type,
};
use utoipa::{PartialSchema, ToSchema};

use self::describe::OperationSpec;
use super::accepted::Accepted;
use super::auth::guard;
use super::fleet_lock::error::as_fleet_lock_error;
use super::limits::MAX_BODY_BYTES;
use super::list::LIST_PARAMS;
use super::state::AppState;

/// Routes with their descriptions.
pub(crate) struct Routes {
    app: AppState,
    router: Router<AppState>,
    paths: PathsBuilder,
    schemas: Vec<(String, RefOr<Schema>)>,
    needs: Vec<(HttpMethod, &'static str, RequiredAccess)>,
    tags: BTreeSet<String>,
}

/// A finished table.
pub(crate) struct FinishedRoutes {
    pub(crate) router: Router<AppState>,
    pub(crate) api: OpenApi,
    pub(crate) needs: Vec<(HttpMethod, &'static str, RequiredAccess)>,
}

/// A route: method, path, required access, and what describes it.
pub(crate) struct Route {
    pub(crate) method: HttpMethod,
    pub(crate) path: &'static str,
    pub(crate) need: RequiredAccess,
    /// What it does: an imperative sentence with its object.
    pub(crate) summary: &'static str,
    /// Query parameters that it reads, besides `consistency`.
    pub(crate) query: &'static [&'static str],
    /// Media types of an answer that is not JSON.
    pub(crate) media: &'static [&'static str],
    /// Whether it answers 201 for a new object and 200 for a changed one.
    pub(crate) creates: bool,
    /// Whether its body may be empty.
    pub(crate) may_be_empty: bool,
    /// Whether it is answered by a node, which may be connected to nobody.
    pub(crate) asks_node: bool,
    /// Whether it is a list, which reads the query parameters of all lists too.
    pub(crate) is_list: bool,
    /// Whether its body may be a JSON Patch or JSON Merge Patch instead.
    pub(crate) takes_patches: bool,
    /// Whether it reads `If-Match`, and `If-None-Match` where the object may be new. Other routes that change refuse them.
    pub(crate) is_conditional: bool,
    /// Most bytes of its body.
    pub(crate) largest_body: usize,
}

impl Route {
    /// The same route, whose body may be empty, since all its fields are optional.
    pub(crate) const fn optional_body(self) -> Self {
        Self { may_be_empty: true, ..self }
    }

    /// The same route, which a node answers: it is refused while that is connected to no server.
    pub(crate) const fn asks_node(self) -> Self {
        Self { asks_node: true, ..self }
    }

    /// The same route, which takes a JSON Patch or a JSON Merge Patch too.
    pub(crate) const fn patches(self) -> Self {
        Self { takes_patches: true, ..self }
    }

    /// The same route, reading these query parameters.
    pub(crate) const fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// The same route, which reads `If-Match` and `If-None-Match`.
    pub(crate) const fn conditional(self) -> Self {
        Self { is_conditional: true, ..self }
    }

    /// The same route, whose body has at most this many bytes.
    pub(crate) const fn largest_body(self, largest_body: usize) -> Self {
        Self { largest_body, ..self }
    }

    /// The same route, which is a list.
    pub(crate) const fn list(self) -> Self {
        Self { is_list: true, ..self }
    }

    /// The same route, answering 201 for a new object.
    pub(crate) const fn creates(self) -> Self {
        Self { creates: true, ..self }
    }

    /// The same route, answering text of one of these media types.
    pub(crate) const fn media(self, media: &'static [&'static str]) -> Self {
        Self { media, ..self }
    }
}

/// A route.
pub(crate) const fn route(
    method: HttpMethod,
    path: &'static str,
    need: RequiredAccess,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path,
        need,
        summary,
        query: &[],
        media: &[],
        creates: false,
        may_be_empty: false,
        asks_node: false,
        takes_patches: false,
        is_list: false,
        is_conditional: false,
        largest_body: MAX_BODY_BYTES,
    }
}

/// A method's name.
pub(crate) const fn name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Delete => "DELETE",
        HttpMethod::Options => "OPTIONS",
        HttpMethod::Head => "HEAD",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Trace => "TRACE",
    }
}

/// Nothing: a route without a body, or without an answer.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize, ToSchema)]
pub(crate) struct Empty {}

/// References to the shapes of a route's body and answer; none for [`Empty`].
struct Shapes {
    body: Option<RefOr<Schema>>,
    answer: Option<RefOr<Schema>>,
    /// Path of the handler's function, which names the operation and its tag.
    handler: &'static str,
}

const fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Get | HttpMethod::Options | HttpMethod::Head | HttpMethod::Trace => MethodFilter::GET,
    }
}

impl Routes {
    pub(crate) fn new(app: AppState) -> Self {
        Self {
            app,
            router: Router::new(),
            paths: PathsBuilder::new(),
            schemas: Vec::new(),
            needs: Vec::new(),
            tags: BTreeSet::new(),
        }
    }

    /// Registers a route that takes a `B` and answers an `A`.
    pub(crate) fn add<B, A, H, T>(mut self, route: Route, handler: H) -> Self
    where
        B: ToSchema + 'static,
        A: ToSchema + 'static,
        H: Handler<T, AppState>,
        T: 'static,
    {
        let shapes = Shapes {
            body: self.learn::<B>(),
            answer: self.learn::<A>(),
            handler: std::any::type_name::<H>(),
        };
        let handler = on(filter(&route.method), handler);
        self.add_described(route, handler, shapes)
    }

    /// What does not depend on the handler's types, so that it is compiled once.
    fn add_described(mut self, route: Route, handler: MethodRouter<AppState>, shapes: Shapes) -> Self {
        let Route { query, is_list, is_conditional, asks_node, largest_body, .. } = route;
        let accepted = Accepted { query, is_list, is_conditional, asks_node, largest_body };
        let guard = from_fn_with_state((self.app.clone(), route.path, route.need, accepted), guard);
        let guarded = handler.layer(guard);
        let worded = match paths::is_fleet_lock(route.path) {
            true => guarded.layer(from_fn(as_fleet_lock_error)),
            false => guarded,
        };
        self.router = self.router.route(route.path, worded);
        self.needs.push((route.method.clone(), route.path, route.need));
        self.describe(route, shapes)
    }

    fn describe(mut self, route: Route, shapes: Shapes) -> Self {
        let object = |kind| RefOr::T(Schema::Object(ObjectBuilder::new().schema_type(kind).build()));
        let mut answers: Vec<_> =
            route.media.iter().map(|media| (*media, describe::text_of(media))).collect();
        if answers.is_empty() {
            answers.push((JSON, shapes.answer.unwrap_or_else(|| object(Type::Object))));
        }
        if route.is_list {
            answers.push((PARTIAL_JSON, object(Type::Object)));
        }
        let problems = match paths::is_fleet_lock(route.path) {
            true => Some(FleetLockError::schema()),
            false => None,
        };
        let mut names = shapes.handler.rsplit("::");
        let (function, module) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        let is_read = route.method == HttpMethod::Get;
        let mut query = if route.is_list { LIST_PARAMS.to_vec() } else { Vec::new() };
        query.extend_from_slice(route.query);
        if is_read && route.need != RequiredAccess::Open {
            query.push(paths::CONSISTENCY);
        }
        let operation = OperationSpec {
            id: format!("{module}_{function}"),
            tag: module.to_owned(),
            summary: route.summary,
            need: route.need,
            path: route.path,
            query: &query,
            is_read,
            asks_node: route.asks_node,
            creates: route.creates,
            may_be_empty: route.may_be_empty,
            takes_patches: route.takes_patches,
            body: shapes.body,
            answers,
            problems,
        };
        self.tags.insert(module.to_owned());
        let item = PathItem::new(route.method, operation.build());
        self.paths = self.paths.path(route.path.replace("{*", "{"), item);
        self
    }

    /// Remembers a schema and answers a reference to it; none for [`Empty`]. A list is described in place.
    fn learn<S: ToSchema + 'static>(&mut self) -> Option<RefOr<Schema>> {
        if std::any::TypeId::of::<S>() == std::any::TypeId::of::<Empty>() {
            return None;
        }
        S::schemas(&mut self.schemas);
        let schema = <S as PartialSchema>::schema();
        if std::any::type_name::<S>().starts_with("alloc::vec::Vec<") {
            return Some(schema);
        }
        let name = schema_name(std::any::type_name::<S>());
        self.schemas.push((name.clone(), schema));
        Some(RefOr::Ref(Ref::from_schema_name(&name)))
    }

    /// Describes a shape that is an item of a list in place.
    pub(crate) fn item<S: ToSchema + 'static>(mut self) -> Self {
        drop(self.learn::<S>());
        self
    }

    /// The router and the API's description of itself.
    pub(crate) fn finish(mut self) -> FinishedRoutes {
        let license = env!("CARGO_PKG_LICENSE");
        let info = InfoBuilder::new()
            .title("Bellwether")
            .version(env!("CARGO_PKG_VERSION"))
            .license(Some(LicenseBuilder::new().name(license).identifier(Some(license)).build()))
            .description(Some(
                "Nodes, entities, rollouts and services of a fleet. Errors are problem details (RFC 9457).",
            ))
            .build();
        let mut components = ComponentsBuilder::new();
        if let Some(problem) = self.learn::<bellwether_api::problem::Problem>() {
            for (name, response) in describe::problems(&problem) {
                components = components.response(name, response);
            }
        }
        for (name, schema) in self.schemas {
            components = components.schema(name, schema);
        }
        for (name, scheme) in describe::schemes() {
            components = components.security_scheme(name, scheme);
        }
        let tags = self.tags.into_iter().map(|name| TagBuilder::new().name(name).build());
        let api = OpenApiBuilder::new()
            .info(info)
            .servers(Some([Server::new("/")]))
            .tags(Some(tags))
            .paths(self.paths.build())
            .components(Some(components.build()))
            .build();
        FinishedRoutes { router: self.router, api, needs: self.needs }
    }
}

/// The name of a schema: that of its type, and for a page `NodeViewPage`.
fn schema_name(type_name: &str) -> String {
    let last = |path: &str| path.rsplit("::").next().unwrap_or(path).to_owned();
    match type_name.trim_end_matches('>').split_once('<') {
        Some((outer, inner)) => format!("{}{}", last(inner), last(outer)),
        None => last(type_name),
    }
}
