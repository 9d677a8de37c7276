//! The defragmentation of the database of a member of etcd. It takes as long as it takes, and etcd does not answer meanwhile: so it goes on beside
//! the looks at the member.

use std::time::Duration;

use bellwether_core::records::member::MemberOrder;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::Instant;

use super::etcd::Etcd;

/// Time after which one that failed is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What is told of a member whose database is being defragmented.
pub(super) const UNDER_WAY: &str = "is being defragmented, and does not answer before that is done";

/// What became of one; `None` while that is not known.
type Outcome = watch::Receiver<Option<Result<(), String>>>;

/// The defragmentation of one member.
#[derive(Debug)]
pub(super) struct Defragmentation {
    tasks: Tasks,
    /// The one that was made last.
    made: Option<Timestamp>,
    /// The one that is being made.
    under_way: Option<(Timestamp, Outcome)>,
    /// Why the last one could not be made, and when it is tried again.
    failure: Option<(String, Instant)>,
}

impl Defragmentation {
    pub(super) fn new(tasks: &Tasks) -> Self {
        Self { tasks: tasks.clone(), made: None, under_way: None, failure: None }
    }

    /// The one that was made last, since this agent was started.
    pub(super) const fn made(&self) -> Option<Timestamp> {
        self.made
    }

    /// Whether etcd may not answer because of it.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Why its member is not as it is to be, in words that fit after "member 1 "; `None` if it is not about it.
    pub(super) fn told(&self) -> Option<String> {
        let failure = self.failure.as_ref().map(|(reason, _)| format!("cannot be defragmented: {reason}"));
        self.under_way.as_ref().map(|_| UNDER_WAY.to_owned()).or(failure)
    }

    /// Begins with what is ordered, unless it has, and takes note of the end of it.
    pub(super) fn follow(&mut self, order: &MemberOrder, etcd: &Etcd) {
        if let Some((at, told)) = &self.under_way {
            let Some(outcome) = told.borrow().clone() else { return };
            match outcome {
                Ok(()) => (self.made, self.failure) = (Some(*at), None),
                Err(reason) => self.failure = Some((reason, Instant::now() + RETRY)),
            }
            self.under_way = None;
        }
        let Some(at) = order.defragmentation.filter(|at| self.made < Some(*at)) else {
            self.failure = None;
            return;
        };
        if self.failure.as_ref().is_some_and(|(_, until)| Instant::now() < *until) {
            return;
        }
        let (tell, told) = watch::channel(None);
        self.under_way = Some((at, told));
        let (etcd, token) = (etcd.clone(), self.tasks.token());
        self.tasks.spawn("defragmentation", async move {
            // One that nobody waits for any more goes on; the next agent has it made again, which changes nothing.
            let outcome = tokio::select! {
                () = token.cancelled() => return,
                outcome = etcd.defragment() => outcome,
            };
            tell.send_replace(Some(outcome));
        });
    }
}
