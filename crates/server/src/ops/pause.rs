//! Pauses of the nodes that a selector picks: setting and ending. What they keep from beginning is the agents' business.

use bellwether_api::v1::pause::PauseSpec;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::node::Marked;
use bellwether_core::records::pause::NodePause;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, Namespace, PauseName};

use super::{OpError, cause, event};
use crate::transactor::Transactor;

/// Sets a pause, in place of any of its name. Answers whether it is new.
///
/// # Errors
/// [`OpError::Invalid`] naming the field.
pub async fn put(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &PauseName,
    spec: &PauseSpec,
) -> Result<bool, OpError> {
    let (nodes, why) = spec.read()?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let mark = Marked { by: actor.clone(), at: now, why: why.clone() };
            let pause =
                NodePause { name: name.clone(), nodes: nodes.clone(), mark, labels: Labels::default() };
            let old = fleet.pauses.get(name);
            let event = EventDraft {
                before: old.map(|kept| words(&kept.value)),
                after: Some(words(&pause)),
                ..event("pause.on", format!("pause/{name}"), cause(&why))
            };
            let changeset = Changeset { writes: vec![Write::put(Record::Pause(pause))], events: vec![event] };
            Ok((Some(changeset), old.is_none()))
        })
        .await
}

/// Ends a pause.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn delete(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &PauseName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let old = fleet.pauses.get(name).ok_or_else(|| OpError::NotFound(format!("pause {name}")))?;
            let mark = &old.value.mark;
            let ended = format!("it was ended; it was set by {}: {}", mark.by, cause(&mark.why));
            let before = Some(words(&old.value));
            let event = EventDraft { before, ..event("pause.off", format!("pause/{name}"), ended) };
            Ok((
                Some(Changeset {
                    writes: vec![Write::Delete(Key::Pause(name.clone()))],
                    events: vec![event],
                }),
                (),
            ))
        })
        .await
}

fn words(pause: &NodePause) -> String {
    format!("pause of {}", pause.nodes)
}
