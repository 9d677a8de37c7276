//! The route table: a route cannot be registered without its need, its words for the API description, and its shapes.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter, on};
use bellwether_api::paths;
use bellwether_core::access::RequiredAccess;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, PathsBuilder,
    Ref, RefOr, Required, ResponseBuilder, Schema,
};
use utoipa::{PartialSchema, ToSchema};

use super::auth::guard;
use super::fleet_lock::error::as_fleet_lock_error;
use super::state::AppState;

/// Routes with their descriptions.
pub(crate) struct Routes {
    app: AppState,
    router: Router<AppState>,
    paths: PathsBuilder,
    schemas: Vec<(String, RefOr<Schema>)>,
    needs: Vec<(HttpMethod, &'static str, RequiredAccess)>,
}

/// A finished table.
pub(crate) struct FinishedRoutes {
    pub(crate) router: Router<AppState>,
    pub(crate) api: OpenApi,
    pub(crate) needs: Vec<(HttpMethod, &'static str, RequiredAccess)>,
}

/// What a route is: where, what it needs, and what it does in a few words.
pub(crate) struct Route {
    pub(crate) method: HttpMethod,
    pub(crate) path: &'static str,
    pub(crate) need: RequiredAccess,
    pub(crate) summary: &'static str,
}

/// A route.
pub(crate) const fn route(
    method: HttpMethod,
    path: &'static str,
    need: RequiredAccess,
    summary: &'static str,
) -> Route {
    Route { method, path, need, summary }
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
        let shapes = Shapes { body: self.learn::<B>(), answer: self.learn::<A>() };
        let handler = on(filter(&route.method), handler);
        self.add_described(route, handler, shapes)
    }

    /// What does not depend on the handler's types, so that it is compiled once.
    fn add_described(mut self, route: Route, handler: MethodRouter<AppState>, shapes: Shapes) -> Self {
        let guard = from_fn_with_state((self.app.clone(), route.path, route.need), guard);
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
        let mut operation = OperationBuilder::new()
            .summary(Some(route.summary))
            .description(Some(format!("Needs {}.", route.need.describe())));
        for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')) {
            let name = name.trim_end_matches('}').trim_start_matches('*');
            let text = RefOr::T(Schema::Object(
                ObjectBuilder::new().schema_type(utoipa::openapi::Type::String).build(),
            ));
            let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
            operation = operation.parameter(parameter.required(Required::True).schema(Some(text)));
        }
        if let Some(schema) = shapes.body {
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let body =
                RequestBodyBuilder::new().content("application/json", content).required(Some(Required::True));
            operation = operation.request_body(Some(body.build()));
        }
        let mut answer = ResponseBuilder::new().description("What was asked for");
        if let Some(schema) = shapes.answer {
            answer = answer.content("application/json", ContentBuilder::new().schema(Some(schema)).build());
        }
        let problem = self.learn::<bellwether_api::problem::Problem>();
        let problem = ContentBuilder::new().schema(problem).build();
        let problem =
            ResponseBuilder::new().description("Why not").content("application/problem+json", problem);
        operation = operation.response("200", answer.build()).response("default", problem.build());
        self.paths =
            self.paths.path(route.path.replace("{*", "{"), PathItem::new(route.method, operation.build()));
        self
    }

    /// Remembers a shape and answers a reference to it; none for [`Empty`].
    fn learn<S: ToSchema + 'static>(&mut self) -> Option<RefOr<Schema>> {
        if std::any::TypeId::of::<S>() == std::any::TypeId::of::<Empty>() {
            return None;
        }
        S::schemas(&mut self.schemas);
        let name = S::name().to_string();
        let reference = RefOr::Ref(Ref::from_schema_name(&name));
        self.schemas.push((name, <S as PartialSchema>::schema()));
        Some(reference)
    }

    /// The router and the API's description of itself.
    pub(crate) fn finish(self) -> FinishedRoutes {
        let info = InfoBuilder::new()
            .title("Bellwether")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(
                "Nodes, entities, rollouts and their reasons. Errors are RFC 9457 problem details.",
            ))
            .build();
        let mut components = ComponentsBuilder::new();
        for (name, schema) in self.schemas {
            components = components.schema(name, schema);
        }
        let api = OpenApiBuilder::new()
            .info(info)
            .paths(self.paths.build())
            .components(Some(components.build()))
            .build();
        FinishedRoutes { router: self.router, api, needs: self.needs }
    }
}
