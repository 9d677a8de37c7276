//! `doctor` and `debug` as typed: what is looked at on this machine.

use std::path::PathBuf;

use clap::Subcommand;

/// What is looked at.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Doctor {
    /// Configuration file of this machine's server [default: /etc/bellwether/server.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) server_config: Option<PathBuf>,
    /// Configuration file of this machine's agent [default: /etc/bellwether/agent.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DebugVerb {
    /// Write one archive of what a person needs to find a fault: findings, configuration without secrets, status, events, logs
    ///
    /// Of configuration files, keys and numbers are kept, and texts under keys that are known to hold no secret; every other text is
    /// replaced. Read the archive before you give it to somebody.
    Bundle {
        #[command(flatten)]
        on: Doctor,
        /// Add the end of the output of supervised processes, which may contain what they print of their secrets
        #[arg(long)]
        process_logs: bool,
        /// Archive to write, as FILE.tar.gz; it must not exist
        file: PathBuf,
    },
}
