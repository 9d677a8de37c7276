//! Descriptions of documents that cannot be derived: a document is described by its `kind`.

use utoipa::openapi::schema::{Discriminator, OneOfBuilder, SchemaType};
use utoipa::openapi::{Object, ObjectBuilder, Ref, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::document::{Document, FreezeDocument, PauseDocument, ProfileDocument, SlotDocument};
use super::entity::EntityDocument;

/// Each kind of document with the name of its schema.
const KINDS: [(&str, &str); 5] = [
    ("entity", "EntityDocument"),
    ("freeze", "FreezeDocument"),
    ("pause", "PauseDocument"),
    ("profile", "ProfileDocument"),
    ("slot", "SlotDocument"),
];

impl PartialSchema for Document {
    fn schema() -> RefOr<Schema> {
        let refs = KINDS.iter().map(|(kind, name)| (*kind, Ref::from_schema_name(*name).ref_location));
        let discriminator = Discriminator::with_mapping("kind", refs);
        let one_of = KINDS.iter().fold(OneOfBuilder::new(), |one_of, (_, name)| {
            one_of.item(RefOr::<Schema>::Ref(Ref::from_schema_name(*name)))
        });
        let described = one_of
            .discriminator(Some(discriminator))
            .description(Some("The desired state of an object. Absent fields take their defaults."));
        RefOr::T(Schema::OneOf(described.build()))
    }
}

impl ToSchema for Document {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        EntityDocument::schemas(schemas);
        FreezeDocument::schemas(schemas);
        PauseDocument::schemas(schemas);
        ProfileDocument::schemas(schemas);
        SlotDocument::schemas(schemas);
        schemas.push(("EntityDocument".to_owned(), EntityDocument::schema()));
        schemas.push(("FreezeDocument".to_owned(), FreezeDocument::schema()));
        schemas.push(("PauseDocument".to_owned(), PauseDocument::schema()));
        schemas.push(("ProfileDocument".to_owned(), ProfileDocument::schema()));
        schemas.push(("SlotDocument".to_owned(), SlotDocument::schema()));
    }
}

/// The field `kind`, whose one value tells documents apart.
fn kind(word: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([word]))
        .description(Some("The kind of the object."))
        .examples([word])
        .build()
}

pub(super) fn entity() -> Object {
    kind("entity")
}

pub(super) fn freeze() -> Object {
    kind("freeze")
}

pub(super) fn pause() -> Object {
    kind("pause")
}

pub(super) fn profile() -> Object {
    kind("profile")
}

pub(super) fn slot() -> Object {
    kind("slot")
}

/// The field `status`, which `export` prints.
pub(super) fn status() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Object))
        .description(Some("The present state of the object, as it is printed with a document; ignored."))
        .build()
}
