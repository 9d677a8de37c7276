//! The event that tells that the records of a store are of an earlier time. Owns its text, and its number in the namespace `default`.

use bellwether_api::shape::read;
use bellwether_core::records::event::Event;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::name::{Actor, Namespace, ServerName};
use bellwether_core::words::time::Timestamp;
use bellwether_store::{Compare, Op, Store, Txn};

use super::{TransferError, event_time};
use crate::records::{encoding, key_text};

/// The transaction that writes it, as the last event of the store so far. It is not before the one that was the last.
pub(super) async fn write(
    store: &Store,
    (server, now): (&ServerName, Timestamp),
    cause: String,
) -> Result<Txn, TransferError> {
    let home: Namespace = read("namespace", "default")?;
    let counter = key_text::sequence(&home);
    let counted = store.get(counter.clone()).await?;
    let last = counted.as_ref().and_then(|entry| std::str::from_utf8(&entry.value).ok()?.parse().ok());
    let last = Sequence::new(last.unwrap_or_default());
    let before = key_text::of(&home, &Key::Event(last));
    let newest = store.get(before).await?.and_then(|entry| event_time(&entry.key, &entry.value));
    let event = Event {
        sequence: last.next(),
        time: newest.map_or(now, |newest| newest.max(now)),
        actor: Actor::parse("bellwether").expect("plain letters are an actor"),
        kind: "server.restored".to_owned(),
        subject: format!("server/{server}"),
        before: None,
        after: None,
        cause,
        caused_by: None,
    };
    let key = key_text::of(&home, &Key::Event(event.sequence));
    let number = event.sequence.to_string().into();
    let compares = vec![
        Compare::Absent { key: key.clone() },
        match counted {
            Some(entry) => Compare::Modified { key: counter.clone(), revision: entry.modified },
            None => Compare::Absent { key: counter.clone() },
        },
    ];
    let ops = vec![
        Op::Put { key, value: encoding::write(&Record::Event(event))?, lease: None },
        Op::Put { key: counter, value: number, lease: None },
    ];
    Ok(Txn { compares, ops })
}
