//! Verbs that ask this machine's own agent about services, over its socket.

use std::path::PathBuf;

use super::service::AgentDir;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CacheServices {
    /// hiera, json or env
    #[arg(long, default_value = "hiera")]
    pub(crate) format: String,
    /// Where to write it, replaced whole and only if it changed; to stdout if absent
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// functional or addressable; as the format has it if absent
    #[arg(long)]
    pub(crate) level: Option<String>,
    #[command(flatten)]
    pub(crate) here: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PublishService {
    /// The service
    pub(crate) name: String,
    /// Its port
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Where it is reached, if not at this machine's own addresses
    #[arg(long)]
    pub(crate) address: Option<std::net::IpAddr>,
    /// Which one of this machine it is; the service's name if absent
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// A word to tell it apart by; may be given several times
    #[arg(long)]
    pub(crate) tag: Vec<String>,
    /// It serves for this long, like 5m, unless it is published again; for ever if absent
    #[arg(long)]
    pub(crate) ttl: Option<String>,
    /// Take it back instead
    #[arg(long, conflicts_with_all = ["port", "address", "tag", "ttl"])]
    pub(crate) withdraw: bool,
    #[command(flatten)]
    pub(crate) here: AgentDir,
}
