//! Slots.

use bellwether_core::words::time::Span;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum SlotVerb {
    /// List who holds which, since when and until when
    List {
        /// Those that nobody holds now, too
        #[arg(long)]
        all: bool,
    },
    /// Set how many may hold one, and for how long; whoever holds it goes on
    Set {
        /// Its name; machines that reboot take `reboot`
        name: String,
        /// How many may hold it at once; with 0 nobody takes it
        #[arg(long)]
        capacity: Option<u32>,
        /// How long each holds it before it ends by itself, like 1h
        #[arg(long, value_name = "TIME")]
        lease: Option<Span>,
    },
    /// Take one from its holder, who does not hear of it
    Release {
        /// Its name
        name: String,
        /// From whom
        holder: String,
        /// Why; it stands in the event
        #[arg(long)]
        why: String,
    },
    /// Forget one that nobody holds; its numbers begin anew
    Delete {
        /// Its name
        name: String,
    },
}
