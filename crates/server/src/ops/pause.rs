//! Operations on pauses of nodes by selector: set, delete. Agents apply them.

use bellwether_api::v1::pause::PauseSpec;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::pause::NodePause;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, Namespace, PauseName};

use super::{OpError, cause, event};
use crate::transactor::Transactor;

/// Sets a pause, replacing any of its name. Returns whether it is new. One that is set again as it is stays unchanged.
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
    let (nodes, reason) = spec.read()?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let annotation = Annotation { by: actor.clone(), at: now, reason: reason.clone() };
            let labels = Labels::default();
            let pause = NodePause { name: name.clone(), nodes: nodes.clone(), annotation, labels };
            let old = fleet.pauses.get(name);
            let same = |old: &NodePause| old.nodes == pause.nodes && old.annotation.reason == reason;
            if old.is_some_and(|kept| same(&kept.value)) {
                return Ok((None, false));
            }
            let event = EventDraft {
                before: old.map(|kept| words(&kept.value)),
                after: Some(words(&pause)),
                ..event("pause.on", format!("pause/{name}"), cause(&reason))
            };
            let changeset = Changeset { writes: vec![Write::put(Record::Pause(pause))], events: vec![event] };
            Ok((Some(changeset), old.is_none()))
        })
        .await
}

/// Deletes a pause.
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
            let annotation = &old.value.annotation;
            let ended = format!("ended; it was set by {}: {}", annotation.by, cause(&annotation.reason));
            let before = Some(words(&old.value));
            let event = EventDraft { before, ..event("pause.off", format!("pause/{name}"), ended) };
            Ok((
                Some(Changeset {
                    writes: vec![Write::delete(Key::Pause(name.clone()))],
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
