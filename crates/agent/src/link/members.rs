//! Members of ensembles on this node: delivered when one changes, when the server requests a report, on a new connection, and again from
//! time to time: a server that was restored from a backup learns what it has forgotten.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::shape::map_from;
use bellwether_api::v1::ensemble::osd_reports::reported;
use bellwether_api::v1::ensemble::reports::NodeMembers;
use bellwether_core::words::name::{Namespace, NodeName};
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use super::connection::Connection;
use super::deliver::Delivery;
use super::report_numbers::{MOST_JUMPS, SharedNumbers};
use crate::ensemble::{KnownMembers, NodeTold};
use crate::report_board::ReportBoard;

/// Time after which the members are sent again although nothing changed; a server writes nothing then.
const REPEAT: Duration = Duration::from_secs(60);

type Members = NodeTold;

/// The members of this node.
#[derive(Debug)]
pub(super) struct MemberSender {
    pub(super) connection: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) members: KnownMembers,
    /// Where the generation of the order in force is.
    pub(super) board: watch::Sender<ReportBoard>,
    /// How many reports were requested: a server that requests one has forgotten the members as well.
    pub(super) requested: watch::Receiver<u64>,
    pub(super) numbers: SharedNumbers<Members>,
    /// How often they were due again, and when they are next; never while there are none.
    pub(super) repeats: (u64, Option<Instant>),
}

impl Delivery for MemberSender {
    type Value = (u64, u64, Members);
    const WHAT: &'static str = "the members of ensembles on this node";

    fn latest(&mut self) -> Option<Self::Value> {
        let requested = *self.requested.borrow_and_update();
        let found = self.members.borrow_and_update().clone()?;
        let now = Instant::now();
        if self.repeats.1.is_some_and(|due| due <= now) {
            self.repeats.0 = self.repeats.0.wrapping_add(1);
        }
        self.repeats.1 = match self.repeats.1.filter(|due| *due > now) {
            _ if found.is_empty() => None,
            Some(due) => Some(due),
            None => Some(now + REPEAT),
        };
        Some((requested, self.repeats.0, found))
    }

    async fn changed(&mut self) -> bool {
        let repeat = self.repeats.1;
        // All arms only wait.
        tokio::select! {
            changed = self.members.changed() => changed.is_ok(),
            changed = self.requested.changed() => changed.is_ok(),
            () = reached(repeat) => true,
        }
    }

    async fn send(&self, (_, _, members): &Self::Value) -> Result<(), CallError> {
        let sequence = self.numbers.next(members);
        let mut report = NodeMembers {
            node: self.node.to_string(),
            sequence,
            members: map_from(members.members.iter().map(|(name, of)| (name.to_string(), of.into()))),
            osds: reported(&members.osds),
            devices: map_from(members.devices.iter().map(|(serial, of)| (serial.to_string(), of.into()))),
            unrecorded: map_from(members.unrecorded.iter().map(|(name, of)| (name.to_string(), of.into()))),
            epoch: 0,
            generation: self.board.borrow().generation.get(),
        };
        for _ in 0..MOST_JUMPS {
            let sent = self.connection.client()?.members(self.namespace.as_str(), &report).await;
            if !self.numbers.is_overtaken(&sent, Some(&self.board)) {
                return sent;
            }
            report.sequence = self.numbers.next(members);
        }
        self.connection.client()?.members(self.namespace.as_str(), &report).await
    }

    /// A server that refuses them, or is of a release that does not know them, would do so again.
    fn is_final(error: &CallError) -> bool {
        matches!(error, CallError::Problem(problem) if matches!(problem.code, Code::Invalid | Code::NotFound))
    }

    fn delivered(&mut self, _: &Self::Value) {
        self.numbers.delivered();
    }
}

/// Waits until a time; for ever without one. Cancel safe.
async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
