//! `pause` as typed: pauses of the nodes that a selector picks.

use clap::Subcommand;

use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum PauseVerb {
    /// Pause the nodes that a selector picks, those that join later too; they still check and report
    On {
        /// Pause name; an existing pause of that name is replaced
        #[arg(value_name = "PAUSE")]
        name: String,
        /// Selector of the nodes, now and later, like role=db; `all` selects every node of the namespace
        #[arg(short = 'l', long)]
        selector: String,
        /// Reason, shown by everything that waits
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// End a pause for all of its nodes
    Off {
        /// Pause name
        #[arg(value_name = "PAUSE")]
        name: String,
    },
    /// List pauses with the number of nodes each one covers
    List(ListFlags),
}
