//! The JSON that every file of the ledger is, and the schema that each of them names.

use serde::{Deserialize, Serialize};

/// The schema written, and the newest read.
pub(super) const SCHEMA: u32 = 1;

pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(super) fn text<T: Serialize>(file: &T) -> Result<String, String> {
    serde_json::to_string_pretty(file).map_err(|error| error.to_string())
}

pub(super) fn known(schema: u32) -> Result<(), String> {
    if schema == SCHEMA { Ok(()) } else { Err(format!("schema {schema} is not one this agent knows")) }
}
