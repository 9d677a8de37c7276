//! Lists: a listed thing as a subject of filters, by the pointers in its table of fields. The tables themselves are in [`tables`].

pub mod tables;

use std::marker::PhantomData;

use bellwether_core::words::filter::field::{Field, FieldTable, FieldType};
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::filter::{FieldValue, FilterSubject};
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::value::{Number, Value};
use serde::Serialize;

use crate::value::value;

/// A listed thing as JSON, at a time.
#[derive(Debug, Clone)]
pub struct JsonRow<T> {
    json: serde_json::Value,
    table: &'static FieldTable,
    now: Timestamp,
    thing: PhantomData<T>,
}

impl<T: Serialize> JsonRow<T> {
    /// A listed thing. The first field of its table names it.
    ///
    /// # Errors
    /// Those of its encoding.
    pub fn new(thing: &T, table: &'static FieldTable, now: Timestamp) -> serde_json::Result<Self> {
        Ok(Self { json: serde_json::to_value(thing)?, table, now, thing: PhantomData })
    }

    /// Its name or number: the first field of its table.
    #[must_use]
    pub fn id(&self) -> String {
        let found = self.table.fields.first().and_then(|spec| self.json.pointer(spec.pointer));
        found.map(|id| id.as_str().map_or_else(|| id.to_string(), ToOwned::to_owned)).unwrap_or_default()
    }

    /// The thing as it is sent.
    #[must_use]
    pub const fn json(&self) -> &serde_json::Value {
        &self.json
    }
}

/// The lists that belong to the whole installation: no saved filter is of them, since each is of a namespace.
static GLOBAL: [&FieldTable; 4] = [&tables::NAMESPACES, &tables::TOKENS, &tables::ROLES, &tables::AUDIT];

/// The name of the list of a table, as its path ends.
#[must_use]
pub fn list_name(table: &FieldTable) -> String {
    table.plural.replace(' ', "-")
}

/// The tables of all lists that saved filters can be of.
pub fn saved_tables() -> impl Iterator<Item = &'static FieldTable> {
    let is_global = |table: &&FieldTable| GLOBAL.iter().any(|global| global.plural == table.plural);
    [&NODES].into_iter().chain(tables::ALL).filter(move |table| !is_global(table))
}

impl<T> FilterSubject for JsonRow<T> {
    fn value(&self, field: &Field) -> Option<FieldValue<'_>> {
        let found = self.json.pointer(field.pointer());
        let found = if field.key().is_empty() { found } else { found?.get(field.key()) };
        let whole = |value: Value| Some(FieldValue::Value(value));
        match field.kind() {
            // What is absent or null is not the case, and an object says that it is.
            FieldType::Flag => {
                let is = found.is_some_and(|found| found.as_bool().unwrap_or(!found.is_null()));
                whole(Value::Bool(is))
            }
            FieldType::Duration => {
                let since = self.now.since(Timestamp::from_millis(found?.as_u64()?));
                whole(Value::Number(Number::integer(since.as_millis())))
            }
            FieldType::Names => {
                let names = |object: &serde_json::Map<String, serde_json::Value>| -> Vec<Value> {
                    object.keys().map(|name| Value::Text(name.as_str().into())).collect()
                };
                let members = found.and_then(serde_json::Value::as_object).map(names);
                let none = || found.map_or_else(|| Value::List(Vec::new()), value);
                whole(members.map_or_else(none, Value::List))
            }
            FieldType::Text | FieldType::Label | FieldType::Any | FieldType::Number => {
                let found = found?;
                found.as_str().map(FieldValue::Text).or_else(|| whole(value(found)))
            }
        }
    }
}
