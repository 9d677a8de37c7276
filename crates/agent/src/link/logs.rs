//! Logs of failed runs: sent one after the other, the newest of each category and entity; what cannot be sent now is sent
//! later, by the next agent if need be.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::log::NewLog;
use bellwether_core::words::name::{Category, EntityName, Namespace, NodeName};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::connection::Connection;
use super::retry::before_again;
use crate::apply::log_store::UnsentLogs;

/// The logs of this node that are on their way.
#[derive(Debug)]
pub(super) struct LogSender {
    pub(super) line: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) waiting: watch::Sender<UnsentLogs>,
    pub(super) seed: u64,
}

impl LogSender {
    /// Works until the level stops.
    pub(super) async fn run(self, level: Tasks) {
        let token = level.token();
        let mut changes = self.waiting.subscribe();
        let mut failed = 0_u32;
        loop {
            let next =
                changes.borrow_and_update().first_key_value().map(|(of, log)| (of.clone(), log.clone()));
            let Some((of, log)) = next else {
                // Both only wait; what there is to send is looked at above.
                tokio::select! {
                    () = token.cancelled() => return,
                    changed = changes.changed() => if changed.is_err() { return },
                }
                continue;
            };
            // A log that is dropped halfway is on disk, and sent by the next agent.
            let sent = tokio::select! {
                () = token.cancelled() => return,
                sent = self.send(&of, &log) => sent,
            };
            match sent {
                Ok(()) => self.done(&of, &log),
                Err(CallError::Problem(problem)) if is_final(problem.code) => {
                    tracing::warn!(entity = %of.1, reason = problem.detail, "a log was refused; it stays on this machine");
                    self.done(&of, &log);
                }
                Err(error) => {
                    tracing::debug!("could not {error}; sending the log again later");
                    failed = failed.saturating_add(1);
                    let pause = before_again(&error, failed, self.seed).to_duration();
                    tokio::select! {
                        () = token.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                    continue;
                }
            }
            failed = 0;
        }
    }

    async fn send(&self, (category, entity): &(Category, EntityName), log: &NewLog) -> Result<(), CallError> {
        let node = (self.namespace.as_str(), self.node.as_str());
        self.line.client()?.keep_log(node, (category.as_str(), entity.as_str()), log).await
    }

    /// It need not be sent again, unless a later run failed meanwhile.
    fn done(&self, of: &(Category, EntityName), log: &NewLog) {
        self.waiting.send_if_modified(|waiting| {
            if waiting.get(of).is_some_and(|newest| newest.run == log.run) {
                waiting.remove(of);
            }
            false
        });
    }
}

/// Whether asking again would be answered the same.
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
        | Code::Conflict
        | Code::Timeout
        | Code::Store
        | Code::Busy
        | Code::Internal => false,
    }
}
