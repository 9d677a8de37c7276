//! Rules that a history can be played without, to show that they are needed and that a law notices.

/// A rule that servers or agents can be told to ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DisabledRule {
    /// Comparing the world with the store from time to time.
    Relisting,
    /// Dropping events that a watch delivers twice.
    DroppingRepeats,
    /// Comparing the leadership key in a decider's commit.
    Fencing,
    /// Adopting the time of the other servers, and taking no part with another one.
    ClockBound,
    /// Looking at the key of the leadership or a membership while its lease is renewed.
    ConfirmingKeys,
    /// Having a job in the ledger before it begins.
    Ledger,
    /// Beginning a run only under the ledger that the order names.
    LedgerIdentity,
    /// Ending what runs on a logical node with its lease.
    Lease,
    /// Failing a run whose job was interrupted and may not run again.
    LostJobs,
    /// Reporting jobs.
    JobReports,
    /// Keeping the last fencing number of a cluster that was deleted.
    KeptFences,
}
