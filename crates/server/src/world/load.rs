//! Reads all records at one revision.

use std::collections::BTreeSet;

use bellwether_api::shape::ShapeError;
use bellwether_core::records::key::{Key, LocatedRecord, Record};
use bellwether_core::words::counter::{Epoch, LogPosition, Revision, Sequence};
use bellwether_core::words::name::Namespace;
use bellwether_core::world::World;
use bellwether_core::world::fleet::EVENTS_IN_MEMORY;
use bellwether_store::{Range, Store, StoreError};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};

use crate::installation::{Installation, InstallationError};
use crate::records::encoding;
use crate::records::key_text::{self, KeyLocation};

/// Entries per page.
const PAGE: usize = 1_000;

/// Ranges read at the same time: the store reads one while another is parsed.
pub(super) const AT_ONCE: usize = 4;

/// A record with its namespace and revision.
type LoadedRecord = (LocatedRecord, Revision);

/// Why the world cannot be read. The message fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The record of the installation does not parse.
    #[error("{0}")]
    Installation(#[from] InstallationError),
    /// A record does not parse.
    #[error("read the record {key}: {source}; restore a backup, or use the release that wrote it")]
    Record {
        /// Its key.
        key: String,
        /// The parser's error.
        source: ShapeError,
    },
}

/// Reads the whole world at one revision. The world `known` so far is used only to split the keys into ranges.
///
/// # Errors
/// [`WorldError`]; a record that does not parse is never skipped, since decisions without it would be wrong.
pub async fn load(store: &Store, known: &World) -> Result<World, WorldError> {
    let revision = store.now().await?;
    let ranges = key_text::ranges(known.fleets.keys());
    let reading = ranges.into_iter().map(|range| read(store.clone(), range, revision));
    let records: Vec<Vec<LoadedRecord>> =
        futures_util::stream::iter(reading).buffered(AT_ONCE).try_collect().await?;
    let (epoch, base) = counting(store, revision).await?;
    let world = World::load_in(epoch, records.into_iter().flatten(), Revision::new(revision.0));
    Ok(World { base, ..world })
}

/// Above what numbers and positions are counted; zero before there is an installation.
async fn counting(store: &Store, at: bellwether_store::Revision) -> Result<(Epoch, LogPosition), WorldError> {
    let page = store.list(Range::one(key_text::META), Some(at), 1).await?;
    let Some(entry) = page.entries.first() else { return Ok(Default::default()) };
    let installation = Installation::parse(&entry.value)?;
    Ok((installation.epoch(), LogPosition::new(installation.term_base)))
}

/// Reads one range of keys.
async fn read(
    store: Store,
    range: Range,
    revision: bellwether_store::Revision,
) -> Result<Vec<LoadedRecord>, WorldError> {
    let mut page = store.list(range.clone(), Some(revision), PAGE).await?;
    let mut records = Vec::new();
    let mut skipped = BTreeSet::new();
    loop {
        let mut last = None;
        for entry in &page.entries {
            last = Some(entry.key.clone());
            let Some(record) = parse(&entry.key, &entry.value)? else { continue };
            let event = match &record {
                LocatedRecord::Namespaced(namespace, Record::Event(_)) => Some(namespace.clone()),
                LocatedRecord::Namespaced(..) | LocatedRecord::Global(_) => None,
            };
            records.push((record, Revision::new(entry.modified.0)));
            // Of a long event log only the oldest event is needed, for its number, and the newest ones.
            if let Some(namespace) = event.filter(|namespace| skipped.insert(namespace.clone())) {
                last = last.max(before_newest(&store, &namespace, revision).await?);
                break;
            }
        }
        let read_all = last.as_ref() == page.entries.last().map(|entry| &entry.key);
        match last.filter(|_| page.more || !read_all) {
            Some(last) => page = store.list(range.after(&last), Some(revision), PAGE).await?,
            None => return Ok(records),
        }
    }
}

/// The key after which the newest events of a namespace begin, if there are more than are kept in memory.
async fn before_newest(
    store: &Store,
    namespace: &Namespace,
    at: bellwether_store::Revision,
) -> Result<Option<Bytes>, StoreError> {
    // At the revision of everything else: a later number would leave a gap in memory.
    let last = last_event(store, namespace, at).await?;
    let before = last.and_then(|last| last.checked_sub(EVENTS_IN_MEMORY as u64));
    Ok(before.map(|before| key_text::of(namespace, &Key::Event(Sequence::new(before)))))
}

/// The number of a namespace's last event.
pub(super) async fn last_event(
    store: &Store,
    namespace: &Namespace,
    at: bellwether_store::Revision,
) -> Result<Option<u64>, StoreError> {
    let entry = store.list(Range::one(key_text::sequence(namespace)), Some(at), 1).await?.entries.pop();
    Ok(entry.and_then(|entry| std::str::from_utf8(&entry.value).ok()?.parse::<u64>().ok()))
}

/// Parses an entry; none if it is not a record of the world.
///
/// # Errors
/// [`WorldError::Record`].
pub(crate) fn parse(key: &[u8], value: &[u8]) -> Result<Option<LocatedRecord>, WorldError> {
    let record = match key_text::read(key) {
        None | Some(KeyLocation::Aside) => return Ok(None),
        Some(KeyLocation::Global(typed)) => encoding::read_global(&typed, value).map(LocatedRecord::Global),
        Some(KeyLocation::Namespaced(namespace, typed)) => encoding::read(&typed, value)
            .map(|record| LocatedRecord::Namespaced(namespace, in_memory(record))),
    };
    let failed = |source| WorldError::Record { key: String::from_utf8_lossy(key).into_owned(), source };
    record.map(Some).map_err(failed)
}

/// Why no server of this release could read an entry that is to be a record; `None` if it could. The text follows "cannot ".
pub(crate) fn unreadable(key: &[u8], value: &[u8]) -> Option<String> {
    if key_text::read(key).is_none() {
        let key = String::from_utf8_lossy(key);
        return Some(format!("read the record {key}: it is of no kind that is known"));
    }
    parse(key, value).err().map(|error| error.to_string())
}

/// What memory holds of a record: of a log, not the text, which is read on request.
fn in_memory(record: Record) -> Record {
    if let Record::Log(log) = record { Record::Log(log.without_text()) } else { record }
}
