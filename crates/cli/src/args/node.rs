//! Machines as typed: `node`.

use clap::Subcommand;

/// One machine, or several.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct NodeChoice {
    /// Its name
    pub(crate) name: Option<String>,
    /// Those that a selector picks now, like role=web; `all` for every one of the namespace
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeVerb {
    /// List nodes
    List {
        /// Only those a selector picks, like role=web
        #[arg(short = 'l', long)]
        filter: Option<String>,
        /// Decommissioned ones too
        #[arg(long)]
        all: bool,
        /// Those that are expected, and joined ones that are silent, with since when
        #[arg(long, conflicts_with_all = ["filter", "all"])]
        unaccounted: bool,
    },
    /// Show one
    Get {
        /// Its name
        name: String,
    },
    /// Say why one waits
    Why {
        /// Its name
        name: String,
    },
    /// Set and remove labels: KEY=VALUE sets, KEY- removes
    Label {
        /// Its name
        name: String,
        /// The changes
        #[arg(required = true)]
        changes: Vec<String>,
    },
    /// Let one start nothing new; it goes on checking and reporting
    Pause {
        #[command(flatten)]
        which: NodeChoice,
        /// Why
        #[arg(long, default_value = "")]
        why: String,
    },
    /// End a pause
    Resume {
        #[command(flatten)]
        which: NodeChoice,
    },
    /// Tell one nothing new; what it was told and what runs goes on
    Cordon {
        #[command(flatten)]
        which: NodeChoice,
        /// Why
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Cordon one, and let what it offers serve nobody else; what runs goes on
    Drain {
        #[command(flatten)]
        which: NodeChoice,
        /// Why
        #[arg(long, default_value = "")]
        why: String,
    },
    /// End a cordon or a draining
    Uncordon {
        #[command(flatten)]
        which: NodeChoice,
    },
    /// Declare one before it joins, so that it is missed if it does not
    Expect {
        /// Its name
        name: String,
        /// Why
        #[arg(long, default_value = "")]
        why: String,
        /// Expect it no longer
        #[arg(long)]
        off: bool,
    },
    /// Show what its last failing runs said
    Logs(NodeLogs),
    /// Take one out for good: its certificate stops working
    Decommission {
        /// Its name
        name: String,
        /// Why
        #[arg(long, default_value = "")]
        why: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NodeLogs {
    /// The node's name
    pub(crate) name: String,
    /// Only of this entity
    #[arg(short, long)]
    pub(crate) entity: Option<String>,
    /// Only of this category: configure or validate
    #[arg(long)]
    pub(crate) category: Option<String>,
}
