//! `slot` as typed.

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum SlotVerb {
    /// List slots with their holders
    List {
        /// Include slots that nobody holds
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        flags: ListFlags,
    },
    /// Set the capacity and lease of a slot; its holders keep it
    Set {
        #[command(flatten)]
        of: SlotName,
        /// Number of holders allowed at once; 0 allows none
        #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
        capacity: Option<u32>,
        /// Time after which a holder loses the slot by itself, like 1h
        #[arg(long, value_name = "TIME")]
        lease: Option<Span>,
    },
    /// Release a slot in place of its holder, which is not notified
    Release {
        #[command(flatten)]
        of: SlotName,
        /// Holder name, as `slot list` shows it
        #[arg(long)]
        holder: String,
        /// Reason, kept in the event
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Delete a slot that nobody holds; its fencing numbers start again
    Delete {
        #[command(flatten)]
        of: SlotName,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The slot that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SlotName {
    /// Slot name; `reboot` is the one that rebooting machines take
    #[arg(value_name = "SLOT")]
    pub(crate) name: String,
}
