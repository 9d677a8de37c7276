//! Cutting a verdict into slices, each of which is one transaction.

use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::Namespace;

use crate::records::{encoding, key_text};

/// Operations per slice: below the store's limit of 128, with room for the compares of leadership and event numbers.
const SLICE_OPS: usize = 100;

/// Bytes per slice: half of what a transaction may have, since the numbers of its events are not known here.
const SLICE_BYTES: usize = bellwether_store::MAX_TXN_BYTES / 2;

/// Bytes of an event besides its texts.
const EVENT_BYTES: usize = 256;

/// Splits changesets into as few slices as possible, in order. A changeset is never split: one that is too large is a slice of its own.
pub(super) fn slices(namespace: &Namespace, changesets: Vec<Changeset>) -> Vec<Vec<Changeset>> {
    let mut slices: Vec<Vec<Changeset>> = Vec::new();
    let (mut ops, mut bytes) = (0, 0);
    for changeset in changesets {
        let (more_ops, more_bytes) =
            (changeset.writes.len() + changeset.events.len(), size(namespace, &changeset));
        let fits = ops + more_ops <= SLICE_OPS && bytes + more_bytes <= SLICE_BYTES;
        match slices.last_mut().filter(|_| fits) {
            Some(slice) => {
                (ops, bytes) = (ops + more_ops, bytes + more_bytes);
                slice.push(changeset);
            }
            None => {
                (ops, bytes) = (more_ops, more_bytes);
                slices.push(vec![changeset]);
            }
        }
    }
    slices
}

/// Bytes of a changeset in a transaction.
fn size(namespace: &Namespace, changeset: &Changeset) -> usize {
    let writes = changeset.writes.iter().map(|write| {
        let value = match write {
            // One that cannot be encoded is refused by the commit.
            Write::Put(record) => encoding::write_any(record).map_or(0, |value| value.len()),
            Write::Delete(_) => 0,
        };
        // Each key is compared and written.
        2 * key_text::of_any(namespace, &write.key()).len() + value
    });
    let events = changeset.events.iter().map(|event| {
        let texts = [Some(&event.subject), event.before.as_ref(), event.after.as_ref(), Some(&event.cause)];
        EVENT_BYTES + texts.into_iter().flatten().map(String::len).sum::<usize>()
    });
    writes.chain(events).sum()
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::event::EventDraft;
    use bellwether_core::records::key::global::GlobalKey;

    use super::*;

    fn cut(changesets: impl Iterator<Item = Changeset>) -> Vec<Vec<Changeset>> {
        slices(&Namespace::parse("default").unwrap(), changesets.collect())
    }

    #[test]
    fn slices_keep_order_and_stay_within_a_transaction() {
        let changeset = |writes: usize| Changeset {
            writes: vec![Write::delete(GlobalKey::Token("x".to_owned())); writes],
            events: vec![],
        };
        let slices = cut([60, 40, 1, 99, 1, 120, 1].into_iter().map(changeset));
        let lengths: Vec<Vec<usize>> = slices
            .iter()
            .map(|slice| slice.iter().map(|changeset| changeset.writes.len()).collect())
            .collect();
        assert_eq!(lengths, vec![vec![60, 40], vec![1, 99], vec![1], vec![120], vec![1]]);
    }

    #[test]
    fn slices_stay_within_the_bytes_of_a_transaction() {
        let changeset = |length: usize| Changeset {
            writes: vec![],
            events: vec![EventDraft {
                kind: "test",
                subject: String::new(),
                before: None,
                after: None,
                cause: "x".repeat(length),
            }],
        };
        let large = SLICE_BYTES / 4;
        let lengths = |lengths: &[usize]| {
            cut(lengths.iter().map(|length| changeset(*length))).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&[large; 9]), [3, 3, 3], "the rest of each event counts, too");
        assert_eq!(lengths(&[1, SLICE_BYTES, 1, 1]), [1, 1, 2], "what is too large is alone");
    }
}
