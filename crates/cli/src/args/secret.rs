//! `secret`, as typed.

use std::path::PathBuf;

use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum SecretVerb {
    /// Create a secret, or change its value, its readers or its description
    ///
    /// The value is read from a file or from stdin, never from the command line, which other users of the machine can see.
    /// Params take it by naming it: `bellwether profile set web password='{"$secret": "NAME"}'`. They have the value that it had then,
    /// until they are given the new one: `--propagate`, or `bellwether secret propagate NAME`.
    Set(SetSecret),
    /// List secrets, without their values
    List(ListFlags),
    /// Show a secret and the params that have its value, without the value
    Get {
        /// Secret name
        #[arg(value_name = "SECRET")]
        name: String,
    },
    /// Print the value of a secret, or of a secret param of a profile or node; recorded in the audit log
    Reveal {
        /// Secret name; with --profile or --node, the key of the param
        #[arg(value_name = "SECRET")]
        name: String,
        /// Profile that has the param
        #[arg(long, value_name = "PROFILE", conflicts_with = "node")]
        profile: Option<String>,
        /// Node that has the param
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
    },
    /// Give the present value of a secret to all params that name it
    ///
    /// Each profile gets a new revision, which is rolled out as any other; live profiles and nodes' params reach machines at once.
    Propagate {
        /// Secret name
        #[arg(value_name = "SECRET")]
        name: String,
        /// Reason, kept with the params and in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Delete a secret; params that have its value keep it
    Delete {
        /// Secret name
        #[arg(value_name = "SECRET")]
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Show the keys that secrets are encrypted with, and how many secrets each of them has
    Keys,
}

/// What is set of a secret.
#[derive(Debug, clap::Args)]
pub(crate) struct SetSecret {
    /// Secret name: letters, digits and `_ - . /`
    #[arg(value_name = "SECRET")]
    pub(crate) name: String,
    /// File with the value, without the line break at its end; `-` reads stdin
    #[arg(short, long, value_name = "FILE", conflicts_with = "provider")]
    pub(crate) file: Option<PathBuf>,
    /// Read the value as JSON instead of text
    #[arg(long, requires = "file")]
    pub(crate) json: bool,
    /// Provider that reads the value each time it is needed, by its name in the configuration of the servers
    #[arg(long, value_name = "NAME", requires = "reference")]
    pub(crate) provider: Option<String>,
    /// Text that the provider is asked for, such as a path
    #[arg(long, value_name = "TEXT", requires = "provider")]
    pub(crate) reference: Option<String>,
    /// Profile or node whose params may name it, sink that may sign with it, or ensemble whose clients may have it as a password: `profile/NAME`,
    /// `node/NAME`, `sink/NAME`, `ensemble/NAME`, each may end with `*`. Repeat for more; all if a new secret has none
    #[arg(long = "reader", value_name = "READER")]
    pub(crate) readers: Vec<String>,
    /// Description of the secret: what it is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Change only if this is the revision of the last change, 0 for a new secret; else exit 6 and change nothing
    #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
    pub(crate) if_revision: Option<u64>,
    /// Then give the value to all params that name it
    #[arg(long)]
    pub(crate) propagate: bool,
    /// Reason, kept with the secret and in the event
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}
