//! The nodes that a command is about, as typed.

/// One node, or those that a filter matches.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct NodeChoice {
    /// Node name
    #[arg(value_name = "NODE")]
    pub(crate) name: Option<String>,
    /// Filter of the nodes to change now, like 'role=web and not cordoned'; `all` matches every node of the namespace
    #[arg(short = 'l', long)]
    pub(crate) filter: Option<String>,
}

/// The node that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NodeName {
    /// Node name
    #[arg(value_name = "NODE")]
    pub(crate) name: String,
}

/// Why a node is changed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NodeReason {
    /// Reason, kept with the node and in the event
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}
