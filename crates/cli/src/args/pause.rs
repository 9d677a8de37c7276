//! Pauses of the nodes that a selector picks.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PauseVerb {
    /// Let the nodes that a selector picks start nothing new, those that join later too; they go on checking and reporting
    On {
        /// Its name; one of that name is replaced
        name: String,
        /// Which nodes, now and later, like role=db; `all` for every one of the namespace
        #[arg(short = 'l', long, value_name = "SELECTOR")]
        nodes: String,
        /// Why, for whoever waits
        #[arg(long, default_value = "")]
        why: String,
    },
    /// End one, for all of its nodes
    Off {
        /// Its name
        name: String,
    },
    /// List them, with how many nodes each holds
    List,
}
