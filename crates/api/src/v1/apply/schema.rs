//! Descriptions of the fields of documents that are read and not kept.

use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder, Type};

/// The field `kind`, whose one value tells documents apart.
fn kind(word: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([word]))
        .description(Some("The kind of the object."))
        .examples([word])
        .build()
}

pub(super) fn cluster() -> Object {
    kind("cluster")
}

pub(super) fn ensemble() -> Object {
    kind("ensemble")
}

pub(super) fn entity() -> Object {
    kind("entity")
}

pub(super) fn filter() -> Object {
    kind("filter")
}

pub(super) fn freeze() -> Object {
    kind("freeze")
}

pub(super) fn node() -> Object {
    kind("node")
}

pub(super) fn param() -> Object {
    kind("param")
}

pub(super) fn pause() -> Object {
    kind("pause")
}

pub(super) fn profile() -> Object {
    kind("profile")
}

pub(super) fn schedule() -> Object {
    kind("schedule")
}

pub(super) fn reaction() -> Object {
    kind("reaction")
}

pub(super) fn sink() -> Object {
    kind("sink")
}

pub(super) fn slot() -> Object {
    kind("slot")
}

pub(super) fn stage() -> Object {
    kind("stage")
}

pub(super) fn task() -> Object {
    kind("task")
}

pub(super) fn workflow() -> Object {
    kind("workflow")
}

/// The field `status`, which `export` prints.
pub(super) fn status() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Object))
        .description(Some("The present state of the object, as it is printed with a document; ignored."))
        .examples([serde_json::json!({})])
        .build()
}
