//! How large an apply may be: what one transaction takes.

use bellwether_core::records::event::EventDraft;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_store::{MAX_OPS, MAX_TXN_BYTES};

use crate::ops::OpError;
use crate::records::commit::CommitError;
use crate::records::encoding;

/// What an event takes besides its texts: its number, time, actor and envelope, in bytes.
const EVENT_BYTES: usize = 256;

/// Refuses changes that no transaction takes.
///
/// # Errors
/// [`OpError::Refused`] with how large they are, and how large they may be.
pub(super) fn check(changeset: &Changeset, objects: usize) -> Result<(), OpError> {
    // One more numbers the events.
    let operations = changeset.writes.len() + changeset.events.len() + 1;
    if operations > MAX_OPS {
        let reason = format!(
            "apply {objects} objects at once: they take {operations} operations, and a transaction at most {MAX_OPS}"
        );
        return Err(refused(reason));
    }
    let mut bytes: usize = changeset.events.iter().map(event).sum();
    for write in &changeset.writes {
        if let Write::Put(record) = write {
            bytes += encoding::write_any(record).map_err(CommitError::Shape)?.len();
        }
    }
    if bytes > MAX_TXN_BYTES {
        let reason = format!(
            "apply {objects} objects at once: they take {bytes} bytes, and a transaction at most {MAX_TXN_BYTES}"
        );
        return Err(refused(reason));
    }
    Ok(())
}

/// The same, said by whoever commits.
pub(super) fn too_large(objects: usize) -> OpError {
    refused(format!(
        "apply {objects} objects at once: a transaction takes {MAX_OPS} operations and {MAX_TXN_BYTES} bytes"
    ))
}

fn refused(reason: String) -> OpError {
    let hint = "apply them in parts, file by file; nothing was changed";
    OpError::Refused { reason, hint: Some(hint.to_owned()) }
}

fn event(event: &EventDraft) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    EVENT_BYTES + event.subject.len() + event.cause.len() + text(&event.before) + text(&event.after)
}
