//! The consent that every command asks for before it deletes or stops something.

/// Consent given on the command line instead of at the terminal.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Consent {
    /// Proceed without asking; required when stdin is not a terminal
    #[arg(long)]
    pub(crate) yes: bool,
}
