//! Freezes, and the big red switch.

use bellwether_core::words::time::Span;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum FreezeVerb {
    /// Let no target take its turn; what is in flight comes to its end, and rollbacks go on
    On {
        /// Its name; one of that name is replaced
        name: String,
        #[command(flatten)]
        what: FreezeScopeFlags,
        /// How long it lasts, like 4h; until `freeze off` if absent
        #[arg(long = "for", value_name = "TIME")]
        lasts: Option<Span>,
        /// Hand out nothing at all, rollbacks included
        #[arg(long)]
        stop: bool,
    },
    /// End one
    Off {
        /// Its name
        name: String,
        /// The one that holds in every namespace
        #[arg(long)]
        all_namespaces: bool,
    },
    /// List them, and those that hold in every namespace
    List,
}

/// What a freeze covers, and why.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FreezeScopeFlags {
    /// This entity alone
    #[arg(long)]
    pub(crate) entity: Option<String>,
    /// The targets that this picks, of every entity, like zone=b
    #[arg(long, value_name = "SELECTOR", conflicts_with = "entity")]
    pub(crate) targets: Option<String>,
    /// In every namespace; for admins
    #[arg(long)]
    pub(crate) all_namespaces: bool,
    /// Why, for whoever waits
    #[arg(long, default_value = "")]
    pub(crate) why: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StopEverything {
    #[command(flatten)]
    pub(crate) what: FreezeScopeFlags,
    /// Lift it: everything goes on where it stopped
    #[arg(long, conflicts_with_all = ["entity", "targets", "why"])]
    pub(crate) off: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}
