//! The id of a ledger: made with it, and made anew when an entry of it was lost in which an action had begun.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

use bellwether_core::words::name::{EntityName, LedgerId};

use super::entry::EntityEntry;
use super::error::{LedgerError, damaged, file, read};
use super::shape;
use crate::disk;

/// The directory with an empty file for each entity of which an action has begun here.
pub(super) const BEGUN: &str = "begun";

/// The id of the ledger in `dir`; a new one is written if there is none, or if an entry is missing in which an action
/// had begun.
pub(super) fn open(
    dir: &Path,
    entities: &BTreeMap<EntityName, EntityEntry>,
) -> Result<LedgerId, LedgerError> {
    let path = dir.join("ledger.json");
    let begun = dir.join(BEGUN);
    disk::private_dir(&begun).map_err(|source| file("create", &begun, source))?;
    let mut lost = Vec::new();
    for marker in std::fs::read_dir(&begun).map_err(|source| file("read", &begun, source))? {
        let marker = marker.map_err(|source| file("read", &begun, source))?;
        let name = marker.file_name();
        let has_entry = entities.keys().any(|entity| name.to_str() == Some(entity.as_str()));
        if !has_entry {
            lost.push(marker.path());
        }
    }
    if let Some(text) = read(&path)?.filter(|_| lost.is_empty()) {
        return shape::identity(&text).map_err(|reason| damaged(&path, reason));
    }
    let number = RandomState::new().build_hasher().finish();
    let id = LedgerId::parse(&format!("{number:016x}")).map_err(|error| damaged(&path, error.to_string()))?;
    let text = shape::identity_text(&id).map_err(|reason| damaged(&path, reason))?;
    disk::replace(&path, &text).map_err(|source| file("write", &path, source))?;
    // After the new id: a marker that is left makes another id, and nothing worse.
    for marker in lost {
        disk::remove(&marker).map_err(|source| file("remove", &marker, source))?;
    }
    Ok(id)
}
