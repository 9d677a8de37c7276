//! `param`, and the verbs of `node` about params, as typed.

use std::path::PathBuf;

use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;
use super::node_choice::NodeName;
use super::profile::Expected;

#[derive(Debug, Subcommand)]
pub(crate) enum ParamVerb {
    /// Declare a param: which values it may have, its default, what it is for
    ///
    /// From then on, a value that does not fit is refused wherever it is written. Values that are there must fit.
    Declare {
        /// Key of the param
        #[arg(value_name = "PARAM")]
        key: String,
        /// Type of its values: string, integer, number, boolean, array or object
        #[arg(long = "type", value_name = "TYPE", conflicts_with = "schema")]
        kind: Option<String>,
        /// File with the JSON Schema (2020-12) of its values, an object without references; `-` reads stdin
        #[arg(long, value_name = "FILE")]
        schema: Option<PathBuf>,
        /// Value for nodes that have none; one that is valid JSON is stored as JSON, any other as text
        #[arg(long, value_name = "VALUE")]
        default: Option<String>,
        /// Description of the param: what it is for
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        description: String,
        /// Keep its values encrypted, and show them to nobody who may not reveal them
        #[arg(long, conflicts_with = "default")]
        secret: bool,
    },
    /// List declared params
    List(ListFlags),
    /// Show a declared param
    Get {
        /// Key of the param
        #[arg(value_name = "PARAM")]
        key: String,
    },
    /// Delete the declaration and the default of a param; values stay
    Delete {
        /// Key of the param
        #[arg(value_name = "PARAM")]
        key: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Show the params of a node, and which of its levels decides each
    ///
    /// The levels, in order of precedence: the node's own params, the live profiles in its list, the profile `global` if it is
    /// live, the defaults of declared params. With `--entity`, the revision of the entity's profile that the node is assigned comes
    /// before `global`, as in the files of the entity.
    Explain {
        #[command(flatten)]
        of: NodeName,
        /// Key of the param; every param if absent
        key: Option<String>,
        /// Entity of a profile: explain the params as its files have them
        #[arg(short, long)]
        entity: Option<String>,
    },
}

/// The verbs of `node` about params.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeParamsVerb {
    /// Set params of a node
    Set {
        #[command(flatten)]
        of: NodeName,
        /// Param; a value that is valid JSON is stored as JSON, any other as text
        #[arg(required = true, value_name = "KEY=VALUE")]
        params: Vec<String>,
        #[command(flatten)]
        expected: Expected,
        /// Change only if the node has none of these params; else exit 6 and change nothing
        #[arg(long, conflicts_with = "value")]
        if_absent: bool,
        #[command(flatten)]
        change: ParamsChange,
    },
    /// Remove params of a node
    Unset {
        #[command(flatten)]
        of: NodeName,
        /// Keys of the params
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        #[command(flatten)]
        expected: Expected,
        #[command(flatten)]
        change: ParamsChange,
    },
    /// Change params of a node as a JSON Patch (RFC 6902) describes it
    Patch {
        #[command(flatten)]
        of: NodeName,
        /// File with the JSON Patch, an array of operations; `-` reads stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Read a JSON Merge Patch (RFC 7396) instead: an object whose members replace the params, null removes one
        #[arg(long)]
        merge: bool,
        #[command(flatten)]
        change: ParamsChange,
    },
    /// Set the profiles whose params a node reads, the one that takes precedence first
    Profiles {
        #[command(flatten)]
        of: NodeName,
        #[command(flatten)]
        choice: ProfilesChoice,
        #[command(flatten)]
        change: ParamsChange,
    },
}

/// How the params of a node are changed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ParamsChange {
    /// Change only if this is the revision of the last change, 0 for a node that has no params; else exit 6 and change nothing
    #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
    pub(crate) if_revision: Option<u64>,
    /// Reason, kept with the params and in the event
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}

/// The profiles that a node is to read.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ProfilesChoice {
    /// Profile names
    #[arg(value_name = "PROFILE")]
    pub(crate) profiles: Vec<String>,
    /// Read none
    #[arg(long)]
    pub(crate) none: bool,
}
