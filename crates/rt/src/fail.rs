//! Fail points: named places at which a test kills this process as by kill -9. This is the only list of them.
//!
//! Without the feature `failpoints`, passing one does nothing and costs nothing.

/// Makes the list: each fail point with its name, and what has and has not happened when the process dies there.
macro_rules! points {
    ($($(#[doc = $text:literal])+ $point:ident = $name:literal,)+) => {
        /// A place at which the process may be killed.
        ///
        /// The first word of its name is the process that dies there: the leading server (`rollout`, `cluster`, `ensemble`), a server that writes to its
        /// store (`commit.etcd`, `commit.embedded`), the leading server that sends events (`delivery`), an agent (`apply`), one that runs a job of a
        /// run (`job`), one whose data store hands over (`handover`),
        /// one that has a member of an ensemble (`member`), or an OSD (`osd`), or takes a snapshot (`snapshot`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FailPoint {
            $($(#[doc = $text])+ $point,)+
        }

        impl FailPoint {
            /// All fail points.
            pub const ALL: &'static [Self] = &[$(Self::$point,)+];

            /// The name, as tests and `FAILPOINTS` have it.
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
    /// The leader's key is acquired in the store; nothing is read or decided under the new term.
    LeadershipAcquired = "rollout.leadership-acquired",
    /// A verdict about a rollout is reached; nothing of it is given to the committer.
    VerdictReached = "rollout.verdict-reached",
    /// What was sent together is committed; later slices of the verdict have not been sent.
    BetweenSlices = "rollout.between-slices",
    /// All of a verdict about a rollout is committed and visible; nothing that follows from it is decided.
    VerdictCommitted = "rollout.verdict-committed",
    /// A change of what is known of a cluster's data stores is decided; nothing of it is given to the committer.
    ViewDecided = "cluster.view-decided",
    /// It is committed and visible; nothing that follows from it is decided.
    ViewCommitted = "cluster.view-committed",
    /// A change of the members of an ensemble is decided; nothing of it is given to the committer.
    MembersDecided = "ensemble.members-decided",
    /// It is committed and visible; nothing that follows from it is decided, and no node is told.
    MembersCommitted = "ensemble.members-committed",
    /// Orders are decided; none of them is given to the committer.
    OrdersDecided = "rollout.orders-decided",
    /// Orders are committed and visible; the pass that decided them has not ended.
    OrdersCommitted = "rollout.orders-committed",
    /// A node's new order is committed; its poll has not been answered.
    OrderUnsent = "rollout.order-unsent",
    /// A policy's controller has answered; the answer is not stored.
    HookAnswered = "rollout.hook-answered",

    /// An event is acknowledged by the receiver of a sink, or is a line in its file; that is not recorded.
    DeliverySent = "delivery.sent",
    /// How far a sink is is recorded; nothing was sent since, but for what was on its way meanwhile.
    DeliveryRecorded = "delivery.recorded",

    /// A transaction is complete; it has not been sent to etcd.
    EtcdUnsent = "commit.etcd.unsent",
    /// etcd has answered a transaction; its caller has not been answered.
    EtcdAnswered = "commit.etcd.answered",

    /// A frame is in the journal's file; it is not synced, and no caller has been answered.
    JournalWritten = "commit.embedded.journal-written",
    /// A frame is durable; readers do not see it, and no caller has been answered.
    JournalSynced = "commit.embedded.journal-synced",
    /// A group is durable and readers see it; no caller has been answered.
    GroupShown = "commit.embedded.group-shown",
    /// A group is durable and acknowledged; only the journal has it, the store's file does not.
    GroupAcknowledged = "commit.embedded.group-acknowledged",
    /// Pages of the store's file are written, as when it catches up with the journal; they are not synced.
    PagesWritten = "commit.embedded.pages-written",
    /// The store's file has caught up with the journal; the journal has not been truncated.
    CaughtUp = "commit.embedded.caught-up",

    /// An order has arrived and is accepted; it is not in the ledger.
    OrderReceived = "apply.order-received",
    /// An order is in the ledger; no entity has received it.
    OrderStored = "apply.order-stored",
    /// The ledger has the start of a run; its program is not started.
    RunStored = "apply.run-stored",
    /// A run's program is started; its end is not known.
    ProgramStarted = "apply.program-started",
    /// A run's program has ended; the ledger only has its start.
    ProgramEnded = "apply.program-ended",
    /// The ledger has the end of a run; it has not been reported.
    EndStored = "apply.end-stored",
    /// The process of an entity is started; the ledger does not name it.
    ProcessStarted = "apply.process-started",

    /// A replica is chosen that is to take over; nothing is written anywhere.
    HandoverChosen = "handover.chosen",
    /// The primary and that replica have written their configurations; nobody's role has changed, and nothing is recorded.
    HandoverFilesWritten = "handover.files-written",
    /// The ledger has the handover and its other replicas; no store knows of it.
    HandoverStored = "handover.stored",
    /// The primary has accepted that it is to fail over; its end is not known.
    HandoverBegun = "handover.begun",
    /// The former primary follows; its configuration does not say so.
    HandoverFollowed = "handover.followed",
    /// The configuration of a store says that it follows; that of its primary may not say that it leads.
    OwnRoleKept = "handover.own-role-kept",
    /// The configurations of both say what they are; other replicas still follow the former primary.
    RolesKept = "handover.roles-kept",
    /// Another replica follows the new primary; its configuration does not say so.
    ReplicaMoved = "handover.replica-moved",
    /// Its configuration says so.
    ReplicaKept = "handover.replica-kept",
    /// All replicas follow the new primary; the change of the former one has not begun.
    HandoverEnded = "handover.ended",

    /// The directory of a member of an ensemble is there and says whose it is; the ledger does not name the member.
    MemberMade = "member.made",
    /// The ledger names a member; that it can be started is not reported.
    MemberNoted = "member.noted",
    /// The ledger says that the program of a member is being started; it is not started.
    MemberStarting = "member.starting",
    /// The program of a member is started; the ledger does not name it.
    MemberStarted = "member.started",
    /// The store has answered a change of its members; that is not reported.
    MemberChanged = "member.changed",
    /// The directory of a member has another name; the ledger does not say that it has left.
    MemberSetAside = "member.set-aside",
    /// The ledger says that a member has left; that is not reported.
    MemberLeft = "member.left",

    /// The store has given an OSD its number; its node has not noted it.
    OsdRegistered = "osd.registered",
    /// The device of an OSD is named in its directory, and was found empty; nothing is written to it.
    OsdUnmade = "osd.unmade",
    /// The device of an OSD has its label; its node has not noted that.
    OsdMade = "osd.made",
    /// The program of an OSD is started; its node has not noted it.
    OsdStarted = "osd.started",
    /// The program of an OSD is stopped; its node has not noted that.
    OsdStopped = "osd.stopped",
    /// The store has answered a change of an OSD; that is not reported.
    OsdChanged = "osd.changed",

    /// A snapshot is on disk under the name of one that is not whole.
    SnapshotWritten = "snapshot.written",
    /// A snapshot has its name; it is not described, and not reported.
    SnapshotNamed = "snapshot.named",
    /// A snapshot is described; it is not reported.
    SnapshotDescribed = "snapshot.described",

    /// The ledger has the inputs of a job of a run; it does not name the job.
    InputsStored = "job.inputs-stored",
    /// The ledger names a job; it does not have it as running.
    JobCreated = "job.created",
    /// The ledger has a job as running; its script is not started.
    JobBegun = "job.begun",
    /// The ledger has the end of a job; it has not been reported.
    JobEndStored = "job.end-stored",
}

/// Passes a fail point: the process is killed here if the point is armed. SIGKILL ends it at once, so that nothing is
/// completed, flushed or logged.
#[cfg(feature = "failpoints")]
pub fn pass(point: FailPoint) {
    ::fail::fail_point!(point.name(), |_| die(point));
}

/// Passes a fail point; does nothing without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
pub const fn pass(_: FailPoint) {}

#[cfg(feature = "failpoints")]
fn die(point: FailPoint) {
    use rustix::process::{Signal, getpid, kill_process};
    tracing::warn!(point = point.name(), "killed at a fail point");
    kill_process(getpid(), Signal::KILL).expect("a process may send itself every signal");
}

/// Why fail points cannot be armed. Fits after "cannot ".
#[cfg(feature = "failpoints")]
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// A part of the text names no fail point.
    #[error("arm fail point {0:?}: there is none of that name; see bellwether_rt::fail::FailPoint")]
    Unknown(String),
    /// A part of the text has no valid condition.
    #[error(
        "arm fail point {name}: {reason}; write {name}=return, or {name}=3*off->return for the fourth passing"
    )]
    Action {
        /// The fail point.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// Arms fail points: `NAME=return` kills at the first passing, `NAME=3*off->return` at the fourth; `;` separates several.
///
/// # Errors
/// [`ArmError`] for the first invalid part; those before it are armed.
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
    fn every_fail_point_has_a_unique_name_that_begins_with_the_process() {
        let names: BTreeSet<&str> = FailPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), FailPoint::ALL.len());
        let areas = [
            "rollout.",
            "cluster.",
            "ensemble.",
            "delivery.",
            "commit.etcd.",
            "commit.embedded.",
            "apply.",
            "handover.",
            "job.",
            "member.",
            "osd.",
            "snapshot.",
        ];
        for name in names {
            assert!(areas.iter().any(|area| name.starts_with(area)), "{name} is in none of {areas:?}");
        }
    }
}
