//! `rollout` as typed.

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::policy::PolicyFlags;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StartRollout {
    #[command(flatten)]
    pub(crate) of: EntityName,
    /// Version; PROFILE@REVISION for a profile, its newest if absent; absent for an action
    pub(crate) version: Option<String>,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// Start only if nothing changed since this plan: the token that `rollout plan` prints
    #[arg(long, value_name = "TOKEN")]
    pub(crate) plan: Option<String>,
    /// Keep the policy flags in the entity's policy; without it they apply to this rollout alone
    #[arg(long)]
    pub(crate) save: bool,
    #[command(flatten)]
    pub(crate) wait: WaitFlags,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlanRollout {
    #[command(flatten)]
    pub(crate) of: EntityName,
    /// Version, as for `rollout start`
    pub(crate) version: Option<String>,
    /// Time that a target is assumed to need for the change [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub(crate) apply_time: Option<Span>,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}

/// The entity that a rollout is of.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EntityName {
    /// Entity name
    #[arg(value_name = "ENTITY", value_parser = super::subject::entity)]
    pub(crate) entity: String,
}

/// Whether to stay until the rollout has ended.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WaitFlags {
    /// Show the rollout live until it ends or waits for a person
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// With --watch: stop watching after this time
    #[arg(long, value_name = "TIME", requires = "watch")]
    pub(crate) timeout: Option<Span>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutVerb {
    /// Move the targets of an entity to a version
    Start(Box<StartRollout>),
    /// Predict a rollout: batches, earliest end, how many targets a bad version would reach
    Plan(Box<PlanRollout>),
    /// Print the state of the current rollout in one line; the exit code reports it too
    Status {
        #[command(flatten)]
        of: EntityName,
        /// Wait until the rollout ends or waits for a person
        #[arg(long)]
        wait: bool,
        /// With --wait: stop waiting after this time
        #[arg(long, value_name = "TIME", requires = "wait")]
        timeout: Option<Span>,
    },
    /// Show the current rollout as a tree: batches as branches, targets as leaves
    Get {
        #[command(flatten)]
        of: EntityName,
        /// Show this rollout of the history, with what failed, instead of the current one
        #[arg(long, value_name = "NUMBER", conflicts_with = "watch")]
        number: Option<u64>,
        #[command(flatten)]
        wait: WaitFlags,
    },
    /// List the current rollout of every entity with its state
    List,
    /// List the rollouts of one entity, newest first
    History {
        #[command(flatten)]
        of: EntityName,
    },
    /// Pause a rollout: targets in flight finish, no new ones start
    Pause(OperationFlags),
    /// Resume a rollout; what it paused for is waived
    Resume(OperationFlags),
    /// Approve the stage that waits for a person
    Approve {
        #[command(flatten)]
        act: OperationFlags,
        /// Stage number, from 1; refused if another stage waits
        #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
        stage: Option<u32>,
    },
    /// Abort a rollout; targets keep what they run
    Abort(OperationFlags),
    /// Roll every target back to the last known good version
    Undo(OperationFlags),
    /// Retry a known bad version
    Retry {
        #[command(flatten)]
        act: OperationFlags,
        /// Version; the last known bad one if absent
        #[arg(long)]
        version: Option<String>,
        #[command(flatten)]
        wait: WaitFlags,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OperationFlags {
    #[command(flatten)]
    pub(crate) of: EntityName,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}
