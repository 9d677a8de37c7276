//! The envelope of every file of the ledger: JSON with a schema version.

use serde::{Deserialize, Serialize};

/// The schema version written, and the newest one read.
pub(super) const SCHEMA: u32 = 1;

pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(super) fn text<T: Serialize>(file: &T) -> Result<String, String> {
    serde_json::to_string_pretty(file).map_err(|error| error.to_string())
}

pub(super) fn known(schema: u32) -> Result<(), String> {
    if schema == SCHEMA { Ok(()) } else { Err(format!("schema {schema} is not known to this agent")) }
}
