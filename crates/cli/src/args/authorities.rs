//! `server ca` as typed: replacing the certificate authority.

use clap::Subcommand;

use super::consent::Consent;

#[derive(Debug, Subcommand)]
pub(crate) enum CaVerb {
    /// Show the certificate authorities, and which nodes, servers and join tokens are behind
    Get,
    /// Make another certificate authority, which servers and nodes trust before it is used
    ///
    /// Nodes that are up trust it within seconds, the others when they are up again. Then bring it into use: `bellwether server ca activate`.
    Rotate {
        /// Reason, kept in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Sign with the next certificate authority from now on; the one before is still trusted
    ///
    /// It is refused while nodes do not trust it yet. Contexts and other clients trust it once they are refreshed: `bellwether context
    /// refresh`.
    Activate {
        /// Cut off the nodes that do not trust it yet; they must join again
        #[arg(long)]
        force: bool,
        /// Reason, kept in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Trust the previous certificate authority no more
    ///
    /// It is refused while nodes use certificates of it. It cannot be undone.
    Retire {
        /// Cut off the nodes that use certificates of it; they must join again
        #[arg(long)]
        force: bool,
        /// Reason, kept in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Drop the next certificate authority, before it is used
    Cancel {
        /// Reason, kept in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
}
