//! `filter`, as typed.

use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum FilterVerb {
    /// Save a filter under a name, or change a saved one
    ///
    /// Every filter of the same list then has the term @NAME for it, as in `bellwether node list '@old and zone=b'`.
    Set(SetFilter),
    /// List saved filters
    List(ListFlags),
    /// Show a saved filter
    Get {
        /// Filter name
        #[arg(value_name = "FILTER_NAME")]
        name: String,
    },
    /// Delete a saved filter; refused while another one names it
    Delete {
        /// Filter name
        #[arg(value_name = "FILTER_NAME")]
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct SetFilter {
    /// Filter name
    #[arg(value_name = "FILTER_NAME")]
    pub(crate) name: String,
    /// Filter to save, like 'age > 30d and not cordoned'
    #[arg(value_name = "FILTER")]
    pub(crate) filter: String,
    /// List that it is of, as its path in the API ends: nodes, entities, services, rollouts and so on
    #[arg(long, value_name = "LIST", default_value = bellwether_api::v1::filter::DEFAULT_LIST)]
    pub(crate) of: String,
    /// Description of the filter: what it is for
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) description: String,
    /// Change only if this is its revision, 0 if it must not exist; else exit 6 and change nothing
    #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
    pub(crate) if_revision: Option<u64>,
}
