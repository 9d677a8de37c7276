//! `reaction`, as typed.

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;
use super::policy::PolicyFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum ReactionVerb {
    /// Create a reaction: a workflow that is run when a condition has been true for some time
    Create {
        #[command(flatten)]
        of: ReactionName,
        /// Workflow name
        #[arg(value_name = "WORKFLOW")]
        workflow: String,
        /// Filter of the conditions over condition, cluster, node and probe, like 'condition = no_primary and cluster = db'
        #[arg(long, value_name = "FILTER")]
        on: String,
        #[command(flatten)]
        change: ReactionFlags,
    },
    /// Change a reaction
    Set {
        #[command(flatten)]
        of: ReactionName,
        /// Workflow name
        #[arg(long, value_name = "WORKFLOW")]
        workflow: Option<String>,
        /// Filter of the conditions over condition, cluster, node and probe, like 'condition = no_primary and cluster = db'
        #[arg(long, value_name = "FILTER")]
        on: Option<String>,
        #[command(flatten)]
        change: ReactionFlags,
        /// Change only if this is its revision; else exit 6 and change nothing
        #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
        if_revision: Option<u64>,
    },
    /// List reactions, with what they did last
    List(ListFlags),
    /// Show a reaction, with the conditions that are true now, how it stands to each, and what it did
    Get {
        #[command(flatten)]
        of: ReactionName,
    },
    /// Test what a reaction would do if a condition were true: nothing is started; exit 1 if it would start no run
    Test {
        #[command(flatten)]
        of: ReactionName,
        /// Name of the condition, like no_primary
        #[arg(long, value_name = "CONDITION")]
        condition: String,
        /// Subject of the condition: node/NODE, store/NODE/PROBE or cluster/CLUSTER/PROBE
        #[arg(long, value_name = "SUBJECT")]
        subject: String,
    },
    /// Suspend a reaction: it starts nothing until it is resumed
    Suspend {
        #[command(flatten)]
        of: ReactionName,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Resume a reaction that is suspended
    Resume {
        #[command(flatten)]
        of: ReactionName,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Delete a reaction; its runs go on
    Delete {
        #[command(flatten)]
        of: ReactionName,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The reaction that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReactionName {
    /// Reaction name
    #[arg(value_name = "REACTION")]
    pub(crate) name: String,
}

/// What a reaction is to be, besides what it is about and what it runs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReactionFlags {
    /// Nodes that run the workflow: subject, manager, members, or a filter of nodes like 'role=db' [default: subject]
    #[arg(long, value_name = "NODES")]
    pub(crate) nodes: Option<String>,
    /// Time for which a condition must have been true, at most 24h [default: 0s]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) hold: Option<Span>,
    /// Time after a firing in which there is no other for the same subject, at most 24h [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) cooldown: Option<Span>,
    /// Largest number of firings within an hour, for all subjects, 1 to 60 [default: 6]
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) max_per_hour: Option<u32>,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}
