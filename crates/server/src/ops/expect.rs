//! Operations on expected nodes: nodes declared before they join, so that one that never joins is noticed.

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, Namespace, NodeName};

use super::{OpError, cause, event, reason};
use crate::transactor::Transactor;

/// Most expected nodes of a namespace: more than a fleet grows by in a day.
const MAX_EXPECTED: usize = 10_000;

/// Declares an expected node, until it joins. One that is expected already is unchanged.
///
/// # Errors
/// [`OpError::Exists`] when it has joined, [`OpError::Refused`] when too many are expected, [`OpError::Invalid`].
pub async fn expect(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
    text: &str,
) -> Result<(), OpError> {
    let reason = reason(text)?;
    transactor
        .change(namespace, actor, |_, fleet, at| {
            if fleet.active_node(name).is_some() {
                let what = format!("expect node {name}");
                return Err(OpError::Exists { what, reason: "it has joined already".to_owned() });
            }
            if fleet.expected.get(name).is_some() {
                return Ok((None, ()));
            }
            if fleet.expected.size() >= MAX_EXPECTED {
                let reason = format!("expect {name}: {MAX_EXPECTED} nodes are expected already");
                return Err(OpError::Refused { reason, hint: None });
            }
            let by = Annotation { by: actor.clone(), at, reason: reason.clone() };
            let write = Write::put(Record::Expected(name.clone(), by));
            let event = event("node.expected", format!("node/{name}"), cause(&reason));
            Ok((Some(Changeset { writes: vec![write], events: vec![event] }), ()))
        })
        .await
}

/// Removes an expected node.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn unexpect(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &NodeName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            if fleet.expected.get(name).is_none() {
                return Err(OpError::NotFound(format!("an expected node {name}")));
            }
            let writes = vec![Write::delete(Key::Expected(name.clone()))];
            let event = event("node.unexpected", format!("node/{name}"), "no longer expected");
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}
