//! `lock` as typed: slots of one, held while a command runs.

use std::ffi::OsString;

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum LockVerb {
    /// Run a command while holding a lock; the command is stopped before anyone else can hold the lock
    Run(Box<LockRun>),
    /// List locks with their holders
    List {
        /// Include locks that nobody holds
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        flags: ListFlags,
    },
    /// Describe one lock: holders, reasons, fencing number, last events
    Describe {
        /// Lock name
        #[arg(value_name = "LOCK")]
        name: String,
    },
    /// Release a lock that its holder did not release; the holder's command is stopped at its next renewal
    Release {
        /// Lock name
        #[arg(value_name = "LOCK")]
        name: String,
        /// Holder name, as `lock list` shows it
        #[arg(long)]
        holder: String,
        /// Confirm that the lock is released without its holder
        #[arg(long, required = true)]
        force: bool,
        /// Reason, kept in the event
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LockRun {
    /// Lock name
    #[arg(value_name = "LOCK")]
    pub(crate) name: String,
    /// Number of holders allowed at once; everyone who takes the lock must give the same
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) capacity: Option<u32>,
    /// Time after which the lock of a holder that stopped renewing ends; at least 1s
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) lease: Span,
    /// Longest time to wait for the lock; unlimited if absent, 0s to try once
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// Reason, shown to everyone who waits for the lock
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// Holder name; this machine and process if absent
    #[arg(long)]
    pub(crate) holder: Option<String>,
    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LockChild {
    /// Process id of the parent whose end ends the command
    #[arg(long, value_name = "PID")]
    pub(crate) parent: i32,
    /// Command to run, with its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
