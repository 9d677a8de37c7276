//! Operations in the form in which OpenAPI describes them: parameters, answers, problems and who may call.

use bellwether_api::media::{JSON, JSON_PATCH, MERGE_PATCH};
use bellwether_core::access::RequiredAccess;
use utoipa::openapi::path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ArrayBuilder, ContentBuilder, ObjectBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
    Type,
};

/// Names of the security schemes.
const BEARER: &str = "bearer";
const MUTUAL_TLS: &str = "mutual_tls";

/// Media type of a stream of events.
const EVENT_STREAM: &str = "text/event-stream";

/// The verbs of the operation on a rollout.
const OPERATIONS: [&str; 6] = ["pause", "resume", "approve", "abort", "undo", "retry"];

/// Problems by status: the name of the response, and when it is sent.
const PROBLEMS: [(&str, &str, &str); 9] = [
    ("400", "Invalid", "The request cannot be read, or a value in it is not allowed."),
    ("401", "Unauthenticated", "No valid token or certificate was sent."),
    ("403", "Forbidden", "The caller is known and not permitted to do this."),
    ("404", "NotFound", "There is nothing with this name."),
    (
        "409",
        "Refused",
        "The request is refused in the current state, the name is taken, or a value is not the expected one.",
    ),
    ("412", "Conflict", "The record was changed concurrently, or is not at the revision in the request."),
    ("413", "TooLarge", "The body is too large."),
    ("429", "Busy", "Too many requests of this kind are in progress; retry after `Retry-After`."),
    ("503", "Unavailable", "The store cannot be read or written; retry after `Retry-After`."),
];

/// What is known of an operation.
pub(super) struct OperationSpec<'a> {
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) summary: &'a str,
    pub(super) need: RequiredAccess,
    pub(super) path: &'a str,
    pub(super) query: &'a [&'a str],
    pub(super) is_read: bool,
    pub(super) asks_node: bool,
    pub(super) creates: bool,
    pub(super) body: Option<RefOr<Schema>>,
    pub(super) may_be_empty: bool,
    pub(super) takes_patches: bool,
    /// The media types of a successful answer.
    pub(super) answers: Vec<(&'a str, RefOr<Schema>)>,
    /// The form of its problems, if it is not that of all others.
    pub(super) problems: Option<RefOr<Schema>>,
}

impl OperationSpec<'_> {
    /// The operation.
    pub(super) fn build(self) -> Operation {
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag(self.tag)
            .summary(Some(self.summary))
            .description(Some(format!("{}. Requires {}.", self.summary, self.need.describe())))
            .securities(Some(securities(self.need)));
        let in_path: Vec<&str> = self
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{'))
            .map(|name| name.trim_end_matches('}').trim_start_matches('*'))
            .collect();
        for name in &in_path {
            operation = operation.parameter(path_parameter(name));
        }
        for name in self.query {
            operation = operation.parameter(query_parameter(name));
        }
        let has_body = self.body.is_some();
        if let Some(schema) = self.body {
            operation = operation.request_body(Some(body(schema, self.may_be_empty, self.takes_patches)));
        }
        let answers = self.answers;
        let response = |description: &str| {
            let response = ResponseBuilder::new().description(description);
            let with = |response: ResponseBuilder, (media, schema): &(&str, RefOr<Schema>)| {
                response.content(*media, ContentBuilder::new().schema(Some(schema.clone())).build())
            };
            answers.iter().fold(response, with).build()
        };
        if self.creates {
            operation = operation.response("200", response("An object of this name was replaced."));
            operation = operation.response("201", response("The object was created."));
        } else {
            operation = operation.response("200", response("Success."));
        }
        for (status, name, description) in PROBLEMS {
            let sent = match status {
                "400" => has_body || !in_path.is_empty() || !self.query.is_empty(),
                "401" | "403" => self.need != RequiredAccess::Open,
                "404" => !in_path.is_empty(),
                "409" => !self.is_read || self.asks_node,
                "412" => !self.is_read,
                "413" => has_body,
                _ => true,
            };
            operation = match &self.problems {
                _ if !sent => operation,
                None => operation.response(status, RefOr::Ref(Ref::from_response_name(name))),
                Some(schema) => {
                    let content = ContentBuilder::new().schema(Some(schema.clone())).build();
                    let response = ResponseBuilder::new().description(description).content(JSON, content);
                    operation.response(status, response.build())
                }
            };
        }
        operation.build()
    }
}

/// The body of a request.
fn body(schema: RefOr<Schema>, may_be_empty: bool, takes_patches: bool) -> RequestBody {
    let content = |schema| ContentBuilder::new().schema(Some(schema)).build();
    let required = if may_be_empty { Required::False } else { Required::True };
    let body = RequestBodyBuilder::new().content(JSON, content(schema)).required(Some(required));
    if !takes_patches {
        return body.build();
    }
    let object = || RefOr::T(Schema::Object(ObjectBuilder::new().schema_type(Type::Object).build()));
    let list = RefOr::T(Schema::Array(ArrayBuilder::new().items(object()).build()));
    body.content(JSON_PATCH, content(list)).content(MERGE_PATCH, content(object())).build()
}

/// What an answer of a media type that is not JSON consists of.
pub(super) fn text_of(media: &str) -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let schema = match media {
        EVENT_STREAM => {
            let event = ObjectBuilder::new().schema_type(Type::Object);
            ["id", "event", "data"].into_iter().fold(event, |event, field| event.property(field, text()))
        }
        _ => text(),
    };
    RefOr::T(Schema::Object(schema.build()))
}

/// The answers that every operation shares.
pub(super) fn problems(schema: &RefOr<Schema>) -> Vec<(&'static str, Response)> {
    let response = |description: &str| {
        let content = ContentBuilder::new().schema(Some(schema.clone())).build();
        ResponseBuilder::new().description(description).content("application/problem+json", content).build()
    };
    PROBLEMS.into_iter().map(|(_, name, description)| (name, response(description))).collect()
}

/// How callers identify themselves.
pub(super) fn schemes() -> [(&'static str, SecurityScheme); 2] {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The secret of a token. What it permits depends on the role of the token."));
    let certificate = SecurityScheme::MutualTls {
        description: Some("The certificate that a node received when it joined.".to_owned()),
        deprecated: None,
        extensions: None,
    };
    [(BEARER, SecurityScheme::Http(bearer.build())), (MUTUAL_TLS, certificate)]
}

/// Which of the schemes are accepted; none for an open operation.
fn securities(need: RequiredAccess) -> Vec<SecurityRequirement> {
    let accepted: &[&str] = match need {
        RequiredAccess::Open => &[],
        RequiredAccess::Token | RequiredAccess::Right(_) => &[BEARER],
        RequiredAccess::OwnNode => &[MUTUAL_TLS],
        RequiredAccess::OwnNodeOr(_) | RequiredAccess::NodeOr(_) => &[BEARER, MUTUAL_TLS],
    };
    accepted.iter().map(|name| SecurityRequirement::new(*name, Vec::<String>::new())).collect()
}

fn path_parameter(name: &str) -> Parameter {
    let description = match name {
        "ns" => "Namespace.",
        "node" => "Node name.",
        "entity" => "Entity name.",
        "service" => "Service name.",
        "profile" => "Profile name.",
        "cluster" => "Cluster name.",
        "freeze" => "Freeze name.",
        "pause" => "Pause name.",
        "slot" => "Slot name.",
        "role" => "Role name.",
        "param" => "Key of the param.",
        "category" => "Category of the status or log.",
        "token" => "Name of the token, or id of the join token.",
        "number" => "Number of the rollout or profile revision, from 1.",
        "operation" => "What to do to the current rollout.",
        "subject" => {
            "`node/NAME`, `entity/NAME`, `service/NAME`, `cluster/NAME`, `slot/NAME` or `target/ENTITY/NAME`."
        }
        _ => "Name.",
    };
    let schema = match name {
        "number" => ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)),
        "operation" => ObjectBuilder::new().schema_type(Type::String).enum_values(Some(OPERATIONS)),
        _ => ObjectBuilder::new().schema_type(Type::String),
    };
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
    let parameter = parameter.required(Required::True).description(Some(description));
    parameter.schema(Some(RefOr::T(Schema::Object(schema.build())))).build()
}

/// What a node says that it has, in a poll for its order.
fn poll_parameter(name: &str) -> (&'static str, ObjectBuilder) {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let number = || ObjectBuilder::new().schema_type(Type::Integer);
    match name {
        "generation" => ("Generation of the order that the node has.", number()),
        "catalogue" => ("Index up to which the node knows the catalogue.", number()),
        "params" => ("Tag of the params that the node reads without a rollout.", text()),
        "reported" => ("Number of the last report that the node's agent sent.", number()),
        "registered" => ("Revision at which the node's service registrations were recorded last.", number()),
        "ledger" => ("Ledger of the reports that the node's agent sent.", text()),
        "authorities" => ("Version of the authorities that the node trusts; 0 if there is none.", number()),
        "servers" => ("Tag of the list of servers that the node knows.", text()),
        _ => ("", text()),
    }
}

fn query_parameter(name: &str) -> Parameter {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let number = || ObjectBuilder::new().schema_type(Type::Integer);
    let boolean = || ObjectBuilder::new().schema_type(Type::Boolean);
    let (description, schema) = match name {
        "after" => ("Return what comes after this item: the `next` of the previous page.", text()),
        "limit" => (
            "Largest number of items in the page.",
            number().minimum(Some(1)).maximum(Some(1_000)).default(Some(1_000.into())),
        ),
        "index" => {
            ("The `revision` that is already known; with `wait`, answer once there is a newer one.", number())
        }
        "wait" => ("How long to wait for news, like `30s`; at most a minute.", text()),
        "filter" => ("Filter over the fields of the items, like `role=web and not cordoned`.", text()),
        "sort" => (
            "Field by which the items are sorted, with `-` before it from the largest to the smallest.",
            text(),
        ),
        "fields" => ("Fields to return of each item instead of the whole, separated by commas.", text()),
        "slim" => ("Whether to return only the most important fields of each item.", boolean()),
        "count" => ("Whether to return the number of items on all pages.", boolean()),
        "decommissioned" => ("Whether to include decommissioned nodes.", boolean()),
        "group" => ("Group of external targets.", text()),
        "key" => ("Key of the param; every param if absent.", text()),
        "entity" => ("Entity of a profile: explain the params as its files have them.", text()),
        "reason" => (
            "Reason for the change, recorded in the history; for patches, which have no place for it.",
            text(),
        ),
        "service" => ("Service name.", text()),
        "tag" => ("Tag that an instance must have; may be repeated.", text()),
        "all" => ("Whether to include slots that nobody holds.", boolean()),
        "on" => (
            "Filter of the members that are waited for, like `cluster/leader Eq true`; all if absent.",
            text(),
        ),
        "fail_on_failure" => ("Whether to answer once the workflow of a member fails.", boolean()),
        "node" => ("Only runs that this node is to carry out, or has carried out.", text()),
        "offset" => ("Byte of the log at which the answer begins.", number()),
        "osd" => ("Number of an OSD on the node, whose output is read, not that of the member.", number()),
        "manager" => (
            "Whether to read the output of the manager daemon of Ceph in place of that of the member.",
            boolean(),
        ),
        "consistency" => (
            "`local`: what this server knows. `linearizable`: everything that was committed before the request.",
            text().enum_values(Some(["local", "linearizable"])).default(Some("local".into())),
        ),
        _ => poll_parameter(name),
    };
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
    let parameter = parameter.required(Required::False).description(Some(description));
    parameter.schema(Some(RefOr::T(Schema::Object(schema.build())))).build()
}
