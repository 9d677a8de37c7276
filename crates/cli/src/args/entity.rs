//! `entity` as typed.

use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;
use super::policy::PolicyFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum EntityVerb {
    /// List entities
    List(ListFlags),
    /// Show one entity with its policy
    Get {
        /// Entity name
        #[arg(value_name = "ENTITY")]
        name: String,
    },
    /// Create an entity, or change its selector, policy, owner or description
    Set(Box<SetEntity>),
    /// Delete an entity and its history; targets keep what they run
    Delete {
        /// Entity name
        #[arg(value_name = "ENTITY")]
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SetEntity {
    /// Entity name
    #[arg(value_name = "ENTITY")]
    pub(crate) name: String,
    /// Selector of the nodes that are targets, like role=web; `all` selects every node
    #[arg(short = 'l', long, conflicts_with_all = ["external", "unreachable_after", "remove_after"])]
    pub(crate) selector: Option<String>,
    /// Take the targets from controllers that report them over the API, instead of from nodes
    #[arg(long, conflicts_with_all = ["profile", "action"])]
    pub(crate) external: bool,
    /// Time without a report after which an external target is unreachable [default: 5m]
    #[arg(long, value_name = "TIME")]
    pub(crate) unreachable_after: Option<String>,
    /// Time without a report after which an external target is removed [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub(crate) remove_after: Option<String>,
    /// Profile whose revisions are the versions; only for a new entity
    #[arg(long, conflicts_with = "action")]
    pub(crate) profile: Option<String>,
    /// Action whose runs are the versions; only for a new entity
    #[arg(long)]
    pub(crate) action: Option<String>,
    /// Team or person responsible for the entity, one line of at most 256 bytes; empty to unset
    #[arg(long, value_name = "TEXT")]
    pub(crate) owner: Option<String>,
    /// Description of the entity, one line of at most 1,000 bytes; empty to unset
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Change it only if it is at this revision, as `entity get` shows it; exit 6 otherwise
    #[arg(long, value_name = "REVISION")]
    pub(crate) if_revision: Option<u64>,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}
