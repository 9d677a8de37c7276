//! Reading of events: the newest are in the world, all that are kept in the store.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::event::Event;
use bellwether_core::records::key::Record;
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::name::Namespace;
use bellwether_core::world::World;
use bellwether_store::{Store, StoreError};

use crate::records::{encoding, key_text};

/// Why events could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventLogError {
    /// The store failed.
    #[error("cannot {0}")]
    Store(#[from] StoreError),
    /// An event cannot be decoded.
    #[error("{0}")]
    Shape(#[from] ShapeError),
}

/// At most `limit` events after a sequence number, oldest first: from the world if they are there, else from the store.
pub(crate) async fn read(
    world: &World,
    store: &Store,
    (namespace, after): (&Namespace, Sequence),
    limit: usize,
) -> Result<Vec<Event>, EventLogError> {
    let Some(fleet) = world.fleets.get(namespace) else { return Ok(Vec::new()) };
    let in_memory = fleet.events.range(after.next()..).next().map(|(first, _)| *first);
    if in_memory.is_none_or(|first| first == after.next()) {
        let newer = fleet.events.range(after.next()..).take(limit);
        return Ok(newer.map(|(_, event)| (&**event).into()).collect());
    }
    let page = store.list(key_text::events_after(namespace, after), None, limit).await?;
    let mut events = Vec::with_capacity(page.entries.len());
    for entry in page.entries {
        let Some(key_text::KeyLocation::Namespaced(_, key)) = key_text::read(&entry.key) else { continue };
        let Record::Event(event) = encoding::read(&key, &entry.value)? else { continue };
        events.push((&event).into());
    }
    Ok(events)
}
