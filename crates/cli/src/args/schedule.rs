//! `schedule`, as typed.

use bellwether_api::v1::schedule::Concurrency;
use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;
use super::policy::PolicyFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleVerb {
    /// Create a schedule: a workflow that runs at times of a calendar
    Create {
        #[command(flatten)]
        of: ScheduleName,
        /// Workflow name
        #[arg(value_name = "WORKFLOW")]
        workflow: String,
        /// Filter of the nodes that run it, evaluated at each due time, like 'role=db'; `all` matches every node of the namespace
        #[arg(short = 'l', long)]
        filter: String,
        /// Cron expression: minute, hour, day of the month, month and day of the week, like '30 3 * * Mon-Fri'; or @daily and the like
        #[arg(long, value_name = "CRON")]
        cron: String,
        #[command(flatten)]
        change: ScheduleFlags,
    },
    /// Change a schedule
    Set {
        #[command(flatten)]
        of: ScheduleName,
        /// Workflow name
        #[arg(long, value_name = "WORKFLOW")]
        workflow: Option<String>,
        /// Filter of the nodes that run it, evaluated at each due time, like 'role=db'; `all` matches every node of the namespace
        #[arg(short = 'l', long)]
        filter: Option<String>,
        /// Cron expression: minute, hour, day of the month, month and day of the week, like '30 3 * * Mon-Fri'; or @daily and the like
        #[arg(long, value_name = "CRON")]
        cron: Option<String>,
        #[command(flatten)]
        change: ScheduleFlags,
        /// Change only if this is its revision; else exit 6 and change nothing
        #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
        if_revision: Option<u64>,
    },
    /// List schedules, with when they are due next and what became of the last due time
    List(ListFlags),
    /// Show a schedule, with when it is due next and what became of the last due time
    Get {
        #[command(flatten)]
        of: ScheduleName,
    },
    /// Suspend a schedule: due times pass without a run until it is resumed
    Suspend {
        #[command(flatten)]
        of: ScheduleName,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Resume a schedule that is suspended, from its next due time on
    Resume {
        #[command(flatten)]
        of: ScheduleName,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Delete a schedule; its runs go on
    Delete {
        #[command(flatten)]
        of: ScheduleName,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The schedule that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ScheduleName {
    /// Schedule name
    #[arg(value_name = "SCHEDULE")]
    pub(crate) name: String,
}

/// What a schedule is to be, besides what it runs, where and when.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ScheduleFlags {
    /// Time zone by whose clocks it is due, like Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Time after a due time within which its run may be started, if no server could at once, 10s to 7d [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub(crate) starting_deadline: Option<Span>,
    /// Concurrency of its runs: forbid skips a due time while the last run is in progress, allow starts another one [default: forbid]
    #[arg(long, value_name = "WORD", value_parser = concurrency)]
    pub(crate) concurrency: Option<Concurrency>,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}

fn concurrency(text: &str) -> Result<Concurrency, String> {
    text.parse::<bellwether_core::records::schedule::Concurrency>().map(Concurrency::from)
}
