//! Runs of workflows that a node cannot go on with, because nobody knows what ran there, and the command that does the rest.

use alloc::format;
use alloc::string::String;

use super::fleet::Fleet;
use crate::records::run::Run;
use crate::words::name::{EntityName, NodeName};

/// Why a node cannot go on with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunLoss {
    /// The node has another ledger than the one that may have begun it.
    OtherLedger,
    /// The ledger of the node does not know what it reported.
    ForgottenByLedger,
    /// The node says so itself.
    ReportedByNode,
}

impl RunLoss {
    /// Why it is so, after "because" or a colon.
    #[must_use]
    pub const fn reason(self, is_logical: bool) -> &'static str {
        match self {
            Self::OtherLedger if is_logical => "another node hosts it now, so that nobody knows what ran",
            Self::OtherLedger => "the node lost its ledger, so that nobody knows what ran",
            Self::ForgottenByLedger => {
                "the ledger of the node does not know what it reported of the run: it was set back, or files of it were removed"
            }
            Self::ReportedByNode => "the run may have begun there before, and nobody knows how far it came",
        }
    }
}

impl Fleet {
    /// Why the node never goes on with the run; `None` if it may, or has none of it.
    #[must_use]
    pub fn run_loss(&self, run: &EntityName, node: &NodeName) -> Option<RunLoss> {
        let order = self.orders.get(node).and_then(|kept| kept.value.content.entities.get(run))?;
        let (bound, lost_for) = (order.binding.ledger.as_ref(), order.binding.lost_for.as_ref());
        let reported = self.ledger(node).map(|ledger| ledger.id);
        if bound.is_some_and(|bound| Some(bound) != reported) || lost_for.is_some() && lost_for == reported {
            return Some(RunLoss::OtherLedger);
        }
        if self.jobs.get(&(run.clone(), node.clone())).is_some_and(|kept| kept.value.forgotten) {
            return Some(RunLoss::ForgottenByLedger);
        }
        let report = self.reports.get(node).and_then(|kept| kept.value.entities.get(run));
        let is_lost = report.is_some_and(|report| report.answering == order.number && report.is_lost());
        is_lost.then_some(RunLoss::ReportedByNode)
    }

    /// The command that has the node do, in another run, what is not known to be complete of this one.
    #[must_use]
    pub fn run_from(&self, run: &Run, node: &NodeName) -> String {
        let known = self.jobs.get(&(run.name.clone(), node.clone()));
        let jobs = known.map(|kept| kept.value.jobs.as_slice()).unwrap_or_default();
        let complete = jobs.iter().take_while(|job| job.state.is_complete()).count();
        let from = match self.tasks_of(run, node).get(complete) {
            Some(task) => format!("{}/{}", task.stage, task.task),
            None => "STAGE/TASK".into(),
        };
        let workflow = &run.workflow;
        match self.nodes.get(node).and_then(|kept| kept.value.logical.as_ref()) {
            Some(cluster) => format!("bellwether cluster run {cluster} {workflow} --from {from}"),
            None => format!("bellwether workflow run {workflow} -l 'name = \"{node}\"' --from {from}"),
        }
    }

    /// Why the node never goes on with the run, from which task on nobody knows what ran, and the command for the rest.
    #[must_use]
    pub fn why_lost(&self, run: &EntityName, node: &NodeName) -> Option<String> {
        let loss = self.run_loss(run, node)?;
        let run = &self.runs.get(run)?.value;
        let is_logical = self.nodes.get(node).is_some_and(|kept| kept.value.logical.is_some());
        let (reason, command) = (loss.reason(is_logical), self.run_from(run, node));
        Some(format!("{reason}; look what its next task did, and go on from it in another run: {command}"))
    }
}
