//! Lists: items, the position of the next page, and the revision at which they were read.

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items, in order of their names or numbers.
    pub items: Vec<T>,
    /// Pass this as `after` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Number of items on all pages; only if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The store revision at which the items were read.
    pub revision: u64,
}

impl<T: ToSchema> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(RefOr::<Schema>::Ref(Ref::from_schema_name(T::name())));
        let next = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Pass this as `after` for the next page; absent on the last page."));
        let revision = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .description(Some("The store revision at which the items were read."));
        let count = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .description(Some("Number of items on all pages; only if it was asked for."));
        let page = ObjectBuilder::new()
            .description(Some("One page of a list."))
            .property("items", items.build())
            .property("next", next.build())
            .property("count", count.build())
            .property("revision", revision.build())
            .required("items")
            .required("revision");
        RefOr::T(Schema::Object(page.build()))
    }
}

impl<T: ToSchema> ToSchema for Page<T> {
    /// The items' own schema and everything it refers to.
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}
