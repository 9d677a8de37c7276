//! What all files of the catalogue share.

use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply::{CommandFacts, exec};
use crate::catalogue::CatalogueSnapshot;
use crate::config::recipe::Command;
use crate::link::contact::ServerContact;
use crate::report_board::ReportBoard;
use crate::service::LocalAddresses;

/// What all files share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct FileContext {
    pub(crate) node: NodeName,
    pub(crate) namespace: Namespace,
    /// Where the journals are.
    pub(crate) journals: PathBuf,
    pub(crate) board: watch::Sender<ReportBoard>,
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) contact: watch::Receiver<ServerContact>,
    pub(crate) addresses: LocalAddresses,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) tasks: Tasks,
}

impl FileContext {
    /// Runs a command; what it said last is part of the reason why not.
    pub(super) async fn command(&self, command: &Command, timeout: Span) -> Result<(), String> {
        let facts = CommandFacts { node: self.node.to_string(), ..CommandFacts::default() };
        let ended = exec::run(command, &facts, timeout.to_duration(), None).await;
        let said = ended.tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        match (ended.exit, said) {
            (exec::CommandExit::Success, _) => Ok(()),
            (exit, "") => Err(exit.to_string()),
            (exit, said) => Err(format!("{exit}: {said}")),
        }
    }
}
