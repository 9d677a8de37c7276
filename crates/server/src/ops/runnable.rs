//! Whether a node begins runs of workflows: set and ended by people. A run that fails on a node sets it too, with the verdict.

use bellwether_api::v1::not_runnable::Runnable;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::not_runnable::NotRunnable;
use bellwether_core::verdict::{Changeset, Write};

use super::node::active;
use super::scope::NodeScope;
use super::{OpError, cause, event, reason};
use crate::transactor::Transactor;

/// Says whether a node begins runs. One that is as requested, for the same reason, is unchanged.
///
/// # Errors
/// [`OpError::NotFound`], [`OpError::Invalid`].
pub async fn set(transactor: &Transactor, scope: NodeScope<'_>, request: &Runnable) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    let reason = reason(&request.reason)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            active(fleet, name)?;
            let before = fleet.not_runnable.get(name).map(|kept| &*kept.value);
            let subject = format!("node/{name}");
            let changeset = match before {
                Some(before) if request.runnable => Changeset {
                    writes: vec![Write::delete(Key::NotRunnable(name.clone()))],
                    events: vec![event("node.runnable", subject, format!("it was {}", before.line()))],
                },
                None if request.runnable => return Ok((None, ())),
                Some(before) if before.run.is_none() && before.reason == reason => return Ok((None, ())),
                Some(_) | None => {
                    let by = Some(actor.clone());
                    let mark =
                        NotRunnable { node: name.clone(), run: None, by, reason: reason.clone(), at: now };
                    Changeset {
                        writes: vec![Write::put(Record::NotRunnable(mark))],
                        events: vec![event("node.not_runnable", subject, cause(&reason))],
                    }
                }
            };
            Ok((Some(changeset), ()))
        })
        .await
}
