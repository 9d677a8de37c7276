//! Logs of failed runs: the newest of each category and entity, delivered one after the other. A log that cannot be
//! delivered before the agent ends stays on disk, and the next agent sends it.

use bellwether_api::client::{CallError, NodeLogKey};
use bellwether_api::problem::Code;
use bellwether_api::v1::log::NewLog;
use bellwether_core::words::name::{Category, EntityName, Namespace, NodeName};
use tokio::sync::watch;

use super::connection::Connection;
use super::deliver::Delivery;
use crate::apply::log_store::UnsentLogs;

/// The logs of this node that are to be sent.
#[derive(Debug)]
pub(super) struct LogSender {
    pub(super) connection: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) unsent: watch::Sender<UnsentLogs>,
    pub(super) changes: watch::Receiver<UnsentLogs>,
}

impl LogSender {
    pub(super) fn new(
        (connection, namespace, node): (Connection, Namespace, NodeName),
        unsent: watch::Sender<UnsentLogs>,
    ) -> Self {
        let changes = unsent.subscribe();
        Self { connection, node, namespace, unsent, changes }
    }
}

impl Delivery for LogSender {
    type Value = ((Category, EntityName), NewLog);
    const WHAT: &'static str = "the log of a failed run";

    fn latest(&mut self) -> Option<Self::Value> {
        self.changes.borrow_and_update().first_key_value().map(|(key, log)| (key.clone(), log.clone()))
    }

    async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }

    async fn send(&self, ((category, entity), log): &Self::Value) -> Result<(), CallError> {
        let key = NodeLogKey {
            namespace: self.namespace.as_str(),
            node: self.node.as_str(),
            category: category.as_str(),
            entity: entity.as_str(),
        };
        self.connection.client()?.keep_log(key, log).await
    }

    fn is_final(error: &CallError) -> bool {
        matches!(error, CallError::Problem(problem) if is_final(problem.code))
    }

    /// Forgets the log, unless a later run failed meanwhile.
    fn delivered(&mut self, (key, log): &Self::Value) {
        self.unsent.send_if_modified(|unsent| {
            if unsent.get(key).is_some_and(|newest| newest.run == log.run) {
                unsent.remove(key);
            }
            false
        });
    }
}

/// Whether the same request would get the same answer again.
const fn is_final(code: Code) -> bool {
    match code {
        Code::Invalid
        | Code::Forbidden
        | Code::NotFound
        | Code::MethodNotAllowed
        | Code::Exists
        | Code::Refused
        | Code::TooLarge
        | Code::JoinToken => true,
        Code::Unauthenticated
        | Code::Decommissioned
        | Code::Conflict
        | Code::Timeout
        | Code::Store
        | Code::Busy
        | Code::Internal => false,
    }
}
