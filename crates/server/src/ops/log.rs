//! Stores the log of a node's failed run: it replaces the one before, and the oldest beyond the limit is deleted.

use bellwether_api::v1;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::log::{MAX_LOGS, NodeLog};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Category, EntityName, Namespace, NodeName};
use bellwether_core::world::fleet::Fleet;

use super::OpError;
use crate::transactor::Transactor;

/// The run that a log is of.
#[derive(Debug, Clone, Copy)]
pub struct LogSource<'a> {
    /// The node that ran it.
    pub node: &'a NodeName,
    /// The category of its status.
    pub category: &'a Category,
    /// The entity it ran for.
    pub entity: &'a EntityName,
}

/// Stores the log of the last failed run of a node, category and entity. The same run again writes nothing.
///
/// # Errors
/// [`OpError::Invalid`].
pub async fn keep(
    transactor: &Transactor,
    namespace: &Namespace,
    source: LogSource<'_>,
    shape: v1::log::NewLog,
) -> Result<(), OpError> {
    let LogSource { node, category, entity } = source;
    let (run, text) = (v1::log::run(&shape.run)?, v1::log::text(shape.text)?);
    let actor = bellwether_core::access::Identity::Node(node.clone()).actor();
    transactor
        .change(namespace, &actor, |_, fleet, at| {
            let place = (node.clone(), category.clone(), entity.clone());
            if fleet.logs.get(&place).is_some_and(|kept| kept.value.run == run) {
                return Ok((None, ()));
            }
            let (node, category, entity) = place;
            let (run, text) = (run.clone(), text.clone());
            let log = NodeLog { node, category, entity, run, at, bytes: text.len(), text };
            let mut writes: Vec<Write> = log_to_delete(fleet, &log).map(Write::delete).into_iter().collect();
            writes.push(Write::put(Record::Log(log)));
            // No event: the status that refers to this log has one.
            Ok((Some(Changeset { writes, events: Vec::new() }), ()))
        })
        .await
}

/// The log to delete for a new one.
fn log_to_delete(fleet: &Fleet, new: &NodeLog) -> Option<Key> {
    let others = fleet.logs_of(&new.node).map(|kept| &kept.value);
    let mut others: Vec<&NodeLog> = others
        .map(|log| &**log)
        .filter(|log| (&log.category, &log.entity) != (&new.category, &new.entity))
        .collect();
    others.sort_by_key(|log| log.at);
    let oldest = others.first().filter(|_| others.len() >= MAX_LOGS)?;
    Some(Key::Log(oldest.node.clone(), oldest.category.clone(), oldest.entity.clone()))
}
