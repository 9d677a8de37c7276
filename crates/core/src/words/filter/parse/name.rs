//! Names of fields, with their keys.

use alloc::format;
use alloc::vec::Vec;

use super::tokens::{Text, expect, literal_of, refuse, symbol, token};
use crate::words::filter::error::FilterError;
use crate::words::filter::field::{Field, FieldSpec, FieldTable};
use crate::words::label::is_key;
use crate::words::near::nearest;

/// Words that are no names of labels.
const KEYWORDS: [&str; 7] = ["all", "and", "or", "not", "in", "any", "exists"];

/// A field; and the name as it was written if it is bare and stands for a label.
pub(super) fn field<'a>(
    rest: &mut Text<'a>,
    table: &'static FieldTable,
) -> Result<(Field, Option<&'a str>), FilterError> {
    let before = *rest;
    let name = token(rest);
    if rest.starts_with('[') {
        let Some(spec) = table.get(name).filter(|spec| spec.is_keyed) else {
            return unknown(&before, name, table);
        };
        symbol(rest, "[");
        let key = literal_of(rest)?;
        expect(rest, "]")?;
        return keyed(&before, spec, &key.text).map(|field| (field, None));
    }
    if let Some((space, key)) = name.split_once('.')
        && let Some(spec) = table.get(space).filter(|spec| spec.is_keyed)
    {
        return keyed(&before, spec, key).map(|field| (field, None));
    }
    match (table.get(name), table.bare()) {
        (Some(spec), _) if spec.is_keyed => {
            refuse(&before, format!("{name} needs a key: {name}.KEY or {name}[\"KEY\"]"))
        }
        (Some(spec), _) => Ok((Field::new(spec, ""), None)),
        (None, Some(label)) if is_key(name) && !KEYWORDS.contains(&name) => {
            Ok((Field::new(label, name), Some(name)))
        }
        (None, _) => unknown(&before, name, table),
    }
}

/// The error for a name that is no field.
fn unknown<T>(at: &Text<'_>, name: &str, table: &'static FieldTable) -> Result<T, FilterError> {
    if !is_key(name) || KEYWORDS.contains(&name) {
        return refuse(at, "expected a field, a label, 'not', 'all' or '('");
    }
    let names = || table.fields.iter().map(|spec| spec.name);
    let space = name.split_once('.').map_or(name, |(space, _)| space);
    let hint = match nearest(space, names()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("fields: {}", names().collect::<Vec<_>>().join(", ")),
    };
    refuse(at, format!("{} have no field {name}; {hint}", table.plural))
}

fn keyed(at: &Text<'_>, spec: &'static FieldSpec, key: &str) -> Result<Field, FilterError> {
    if is_key(key) {
        return Ok(Field::new(spec, key));
    }
    refuse(at, format!("{key:?} is not a valid key of {}", spec.name))
}
