//! Fail points: named moments at which a test has this process die as by kill -9. Owns the one list of them.
//!
//! Without the feature `failpoints` passing one does nothing and costs nothing.

/// Makes the list: each point with its name, and what has and has not happened when the process dies there.
macro_rules! points {
    ($($(#[doc = $text:literal])+ $point:ident = $name:literal,)+) => {
        /// A moment at which the process may die.
        ///
        /// The first word of its name says who dies there: the leading server (`rollout`), a server that writes to its
        /// store (`commit.etcd`, `commit.embedded`), an agent (`apply`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FailPoint {
            $($(#[doc = $text])+ $point,)+
        }

        impl FailPoint {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$point,)+];

            /// What it is called, where points are named in text.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)+
                }
            }
        }
    };
}

points! {
    /// The seat of the leader is taken, in the store too; nothing is looked at or decided under the new term.
    SeatWon = "rollout.seat-won",
    /// A verdict about a rollout is reached; nothing of it is handed to the committer.
    VerdictReached = "rollout.verdict-reached",
    /// What was sent together is committed; slices of a verdict that wait behind it have not been sent.
    BetweenSlices = "rollout.between-slices",
    /// All of a verdict about a rollout is committed and shown; nothing that follows from it is decided.
    VerdictCommitted = "rollout.verdict-committed",
    /// Orders are decided; none of them is handed to the committer.
    OrdersDecided = "rollout.orders-decided",
    /// Orders are committed and shown; the pass that decided them is not over.
    OrdersCommitted = "rollout.orders-committed",
    /// A node's new order is committed and about to be its answer; the node has not heard of it.
    OrderUntold = "rollout.order-untold",
    /// A policy's controller was asked and has answered; the answer is not kept.
    HookAnswered = "rollout.hook-answered",

    /// A transaction is made; etcd has not been asked for it.
    EtcdUnsent = "commit.etcd.unsent",
    /// etcd has answered a transaction; whoever asked for it has not been told.
    EtcdAnswered = "commit.etcd.answered",

    /// A frame is in the journal's file; it is not synced, and nobody has been answered.
    JournalWritten = "commit.embedded.journal-written",
    /// A frame is durable; readers do not see it, and nobody has been answered.
    JournalSynced = "commit.embedded.journal-synced",
    /// A group is durable and readers see it; nobody has been answered.
    GroupShown = "commit.embedded.group-shown",
    /// A group is durable and acknowledged; only the journal has it, the store's file does not.
    GroupAcknowledged = "commit.embedded.group-acknowledged",
    /// Pages of the store's file are written, as when it catches up with the journal; they are not synced.
    PagesWritten = "commit.embedded.pages-written",
    /// The store's file has caught up; the journal that it has caught up with is not started over.
    CaughtUp = "commit.embedded.caught-up",

    /// An order has arrived and may be taken; it is not in the ledger.
    OrderReceived = "apply.order-received",
    /// An order is in the ledger; no entity has heard of it.
    OrderKept = "apply.order-kept",
    /// The ledger says that a run was begun; its program is not started.
    RunKept = "apply.run-kept",
    /// A run's program is started; nothing of how it ends is known.
    ProgramStarted = "apply.program-started",
    /// A run's program has ended; the ledger says that it was begun.
    ProgramEnded = "apply.program-ended",
    /// The ledger says how a run ended; nobody has been told.
    EndKept = "apply.end-kept",
    /// The process of an entity is started; the ledger does not name it.
    ProcessStarted = "apply.process-started",
}

/// Passes a point: the process dies here if it was told to. SIGKILL ends it where it stands, so that nothing is finished,
/// flushed or said any more.
#[cfg(feature = "failpoints")]
pub fn pass(point: FailPoint) {
    ::fail::fail_point!(point.name(), |_| die(point));
}

/// Passes a point, which is nothing in what users build.
#[cfg(not(feature = "failpoints"))]
pub const fn pass(_: FailPoint) {}

#[cfg(feature = "failpoints")]
fn die(point: FailPoint) {
    use rustix::process::{Signal, getpid, kill_process};
    tracing::warn!(point = point.name(), "dies at a fail point");
    kill_process(getpid(), Signal::KILL).expect("a process may send itself every signal");
}

/// Why points could not be armed. Fits after "could not ".
#[cfg(feature = "failpoints")]
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// A part of the text names no point.
    #[error("die at {0:?}: there is no such fail point; bellwether_rt::fail::FailPoint has them all")]
    Unknown(String),
    /// A part of the text does not say when.
    #[error("die at {name}: {reason}; write {name}=return, or {name}=3*off->return for the fourth passing")]
    Action {
        /// The point.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// Has the process die at points: `NAME=return` at the first passing, `NAME=3*off->return` at the fourth; `;` between several.
///
/// # Errors
/// [`ArmError`] naming the first part that makes no sense; those before it are armed.
#[cfg(feature = "failpoints")]
pub fn arm(text: &str) -> Result<(), ArmError> {
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, actions) = part.split_once('=').unwrap_or((part, ""));
        if !FailPoint::ALL.iter().any(|point| point.name() == name) {
            return Err(ArmError::Unknown(name.to_owned()));
        }
        ::fail::cfg(name, actions).map_err(|reason| ArmError::Action { name: name.to_owned(), reason })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_point_has_a_name_of_its_own_that_says_who_dies() {
        let names: BTreeSet<&str> = FailPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), FailPoint::ALL.len());
        let areas = ["rollout.", "commit.etcd.", "commit.embedded.", "apply."];
        for name in names {
            assert!(areas.iter().any(|area| name.starts_with(area)), "{name} is in none of {areas:?}");
        }
    }
}
