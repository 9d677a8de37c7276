//! `freeze` and `stop-everything`.

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum FreezeVerb {
    /// Freeze targets: none starts updating; those in flight finish, and rollbacks go on
    On {
        /// Freeze name; an existing freeze of that name is replaced
        #[arg(value_name = "FREEZE")]
        name: String,
        #[command(flatten)]
        what: FreezeScopeFlags,
        /// Time after which the freeze ends by itself, like 4h; until `freeze off` if absent
        #[arg(long = "for", value_name = "TIME")]
        lasts: Option<Span>,
        /// Stop rollbacks too
        #[arg(long)]
        stop: bool,
    },
    /// End a freeze
    Off {
        /// Freeze name
        #[arg(value_name = "FREEZE")]
        name: String,
        /// End the freeze that covers every namespace
        #[arg(long)]
        all_namespaces: bool,
    },
    /// List freezes, including those that cover every namespace
    List(ListFlags),
}

/// What a freeze covers, and why.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FreezeScopeFlags {
    /// Entity name; every entity if absent
    #[arg(short, long)]
    pub(crate) entity: Option<String>,
    /// Selector of the targets to cover, of every entity, like zone=b
    #[arg(short = 'l', long, conflicts_with = "entity")]
    pub(crate) selector: Option<String>,
    /// Cover every namespace; needs the admin role
    #[arg(long)]
    pub(crate) all_namespaces: bool,
    /// Reason, shown by everything that waits
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StopEverything {
    #[command(flatten)]
    pub(crate) what: FreezeScopeFlags,
    /// Lift the stop: what it covers continues where it stopped
    #[arg(long, conflicts_with_all = ["entity", "selector", "reason"])]
    pub(crate) off: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}
