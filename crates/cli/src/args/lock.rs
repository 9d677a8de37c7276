//! Locks: slots of one, held while a command runs.

use std::ffi::OsString;

use bellwether_core::words::time::Span;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum LockVerb {
    /// Take a lock, run a command while it is held, give it back; the command is stopped before anybody else can have it
    Run(Box<LockRun>),
    /// List who holds which, since when and until when
    List {
        /// Those that nobody holds now, too
        #[arg(long)]
        all: bool,
    },
    /// Everything about one: who holds it since when and why, its number, what happened last
    Describe {
        /// Its name
        name: String,
    },
    /// Take one from its holder, whose command is stopped when it next renews it
    Release {
        /// Its name
        name: String,
        /// From whom
        #[arg(long)]
        holder: String,
        /// That this is meant: the holder did not give it back
        #[arg(long, required = true)]
        force: bool,
        /// Why; it stands in the event
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LockRun {
    /// Its name
    pub(crate) name: String,
    /// How many may hold it at once; all who take it must agree
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<u32>,
    /// How long it is held when its holder is not heard from; at least 1s
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) lease: Span,
    /// How long to wait for it; for ever if absent, 0s not at all
    #[arg(long, value_name = "TIME")]
    pub(crate) wait: Option<Span>,
    /// What for; whoever waits reads it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    /// Whom it is held by; this machine and process if absent
    #[arg(long, value_name = "NAME")]
    pub(crate) holder: Option<String>,
    /// What to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LockChild {
    /// The process that it ends with
    #[arg(long)]
    pub(crate) parent: i32,
    /// What to run
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
