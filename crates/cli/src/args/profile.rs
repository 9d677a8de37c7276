//! `profile` and `action` as typed.

use std::path::PathBuf;

use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileVerb {
    /// List profiles
    List(ListFlags),
    /// Show the parameters of one profile
    Get {
        #[command(flatten)]
        of: ProfileName,
        /// Revision number; the newest if absent
        #[arg(long, value_name = "N", value_parser = super::number::whole::<u64>)]
        revision: Option<u64>,
        /// Parameter key; every parameter if absent
        #[arg(long)]
        key: Option<String>,
    },
    /// Set parameters of a profile, creating the profile if needed
    Set {
        #[command(flatten)]
        of: ProfileName,
        /// Parameter; a value that is valid JSON is stored as JSON, any other as text
        #[arg(required = true, value_name = "KEY=VALUE")]
        params: Vec<String>,
        #[command(flatten)]
        expected: Expected,
        /// Change only if the profile has none of these parameters; else exit 6 and change nothing
        #[arg(long, conflicts_with = "value")]
        if_absent: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Add parameters to a profile that it does not have, creating the profile if needed
    Add {
        #[command(flatten)]
        of: ProfileName,
        /// Parameter; a value that is valid JSON is stored as JSON, any other as text
        #[arg(required = true, value_name = "KEY=VALUE")]
        params: Vec<String>,
        #[command(flatten)]
        change: Change,
    },
    /// Make a profile live: a change then reaches the nodes that read it at once, without a rollout
    ///
    /// A node reads the live profiles in its list (`node profiles`), and the profile `global` if that is live. An entity
    /// cannot use a live profile.
    Live {
        #[command(flatten)]
        of: ProfileName,
        /// Make it no longer live
        #[arg(long)]
        off: bool,
        /// Reason, kept with the profile and in the event
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Remove parameters from a profile
    Remove {
        #[command(flatten)]
        of: ProfileName,
        /// Parameter keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        #[command(flatten)]
        expected: Expected,
        #[command(flatten)]
        change: Change,
    },
    /// Change parameters of a profile as a JSON Patch (RFC 6902) describes it
    Patch {
        #[command(flatten)]
        of: ProfileName,
        /// File with the JSON Patch, an array of operations; `-` reads stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Read a JSON Merge Patch (RFC 7396) instead: an object whose members replace the parameters, null removes one
        #[arg(long)]
        merge: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Replace all parameters of a profile with those in a file
    Replace {
        #[command(flatten)]
        of: ProfileName,
        /// File with one JSON object; `-` reads stdin
        #[arg(short, long)]
        file: PathBuf,
        /// Change only if all parameters are those of this file; else exit 6 and change nothing
        #[arg(long, value_name = "FILE")]
        if_file: Option<PathBuf>,
        #[command(flatten)]
        change: Change,
    },
    /// List the revisions of one profile, newest first
    History {
        #[command(flatten)]
        of: ProfileName,
    },
    /// Show the differences between two revisions of a profile
    Diff {
        #[command(flatten)]
        of: ProfileName,
        /// Older revision number
        #[arg(value_parser = super::number::whole::<u64>)]
        from: u64,
        /// Newer revision number; the newest if absent
        #[arg(value_parser = super::number::whole::<u64>)]
        to: Option<u64>,
    },
    /// Delete a profile and its revisions; refused while an entity uses it
    Delete {
        #[command(flatten)]
        of: ProfileName,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The profile that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProfileName {
    /// Profile name
    #[arg(value_name = "PROFILE")]
    pub(crate) name: String,
}

/// The value that a parameter must have.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Expected {
    /// Change only if the parameter has this value, read as VALUE in KEY=VALUE; for one parameter; else exit 6 and change nothing
    #[arg(long = "if", value_name = "VALUE")]
    pub(crate) value: Option<String>,
}

/// How a profile is changed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Change {
    /// Change only if this is the newest revision, 0 for a new profile; else exit 6 and change nothing
    #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
    pub(crate) if_revision: Option<u64>,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// Start a rollout of every entity that uses the profile
    #[arg(long)]
    pub(crate) rollout: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ActionVerb {
    /// List the actions of this machine's agent
    List {
        /// Agent configuration file
        #[arg(short, long, default_value = "/etc/bellwether/agent.toml", value_name = "FILE")]
        config: PathBuf,
    },
}
