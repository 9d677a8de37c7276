//! The stored form of the ledger's id.

use bellwether_core::words::name::LedgerId;
use serde::{Deserialize, Serialize};

use super::envelope::{SCHEMA, known, parse, text};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentityFile {
    schema: u32,
    id: String,
}

/// Reads `ledger.json`.
pub(in super::super) fn identity(json: &str) -> Result<LedgerId, String> {
    let file: IdentityFile = parse(json)?;
    known(file.schema)?;
    LedgerId::parse(&file.id).map_err(|error| error.to_string())
}

/// Writes `ledger.json`.
pub(in super::super) fn identity_text(id: &LedgerId) -> Result<String, String> {
    text(&IdentityFile { schema: SCHEMA, id: id.to_string() })
}
