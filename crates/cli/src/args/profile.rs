//! `profile` and `action`: their verbs and flags.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileVerb {
    /// List profiles
    List,
    /// Show the params of one
    Get {
        /// Its name
        name: String,
        /// The revision; the newest if absent
        #[arg(long)]
        revision: Option<u64>,
        /// Only this param
        #[arg(long)]
        key: Option<String>,
    },
    /// Set params: KEY=VALUE, where a VALUE that is JSON is taken as such and any other as text; makes the profile
    Set {
        /// Its name
        name: String,
        /// The params
        #[arg(required = true, value_name = "KEY=VALUE")]
        params: Vec<String>,
        #[command(flatten)]
        change: Change,
    },
    /// Remove params
    Remove {
        /// Its name
        name: String,
        /// Their keys
        #[arg(required = true)]
        keys: Vec<String>,
        #[command(flatten)]
        change: Change,
    },
    /// Set all params to what a file says: a JSON object
    Replace {
        /// Its name
        name: String,
        /// The file; `-` reads it from stdin
        #[arg(long)]
        file: PathBuf,
        #[command(flatten)]
        change: Change,
    },
    /// List the revisions of one, newest first
    History {
        /// Its name
        name: String,
    },
    /// Show what changed between two revisions
    Diff {
        /// Its name
        name: String,
        /// The older one
        from: u64,
        /// The newer one; the newest if absent
        to: Option<u64>,
    },
    /// Delete one and its revisions; refused while an entity uses it
    Delete {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// How a profile is changed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Change {
    /// Only if this is the newest revision, 0 for none yet; else it ends with code 6 and changes nothing
    #[arg(long = "ref", value_name = "REVISION")]
    pub(crate) reference: Option<u64>,
    /// Why, for whoever reads the history
    #[arg(long, default_value = "")]
    pub(crate) why: String,
    /// Also start a rollout of every entity of the profile
    #[arg(long)]
    pub(crate) rollout: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ActionVerb {
    /// List the actions of this machine's catalogue
    List {
        /// The agent's configuration file
        #[arg(short, long, default_value = "/etc/bellwether/agent.toml", value_name = "FILE")]
        config: PathBuf,
    },
}
