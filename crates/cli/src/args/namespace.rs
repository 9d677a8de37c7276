//! `namespace` as typed.

use clap::Subcommand;

use super::consent::Consent;

#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceVerb {
    /// List namespaces with the number of objects in each
    List,
    /// Delete an empty namespace and its events
    Delete {
        /// Namespace name
        #[arg(value_name = "NAMESPACE")]
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
}
