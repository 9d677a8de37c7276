//! `namespace` as typed.

use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceVerb {
    /// List namespaces with the number of objects in each
    List(ListFlags),
    /// Delete an empty namespace and its events
    Delete {
        /// Namespace name
        #[arg(value_name = "NAMESPACE")]
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
}
