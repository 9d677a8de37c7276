//! Verbs that ask this node's own agent about services, over its socket.

use std::path::PathBuf;

use super::server::AgentDir;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CacheServices {
    /// File format: hiera, json or env
    #[arg(long, default_value = "hiera")]
    pub(crate) format: String,
    /// File to write, replaced as a whole and only if it changes; stdout if absent
    #[arg(short, long)]
    pub(crate) file: Option<PathBuf>,
    /// Instances to include: functional or addressable; the format's own default if absent
    #[arg(long)]
    pub(crate) level: Option<String>,
    #[command(flatten)]
    pub(crate) here: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PublishService {
    /// Service name
    #[arg(value_name = "SERVICE")]
    pub(crate) name: String,
    /// Port of the instance
    #[arg(long, value_parser = super::number::port)]
    pub(crate) port: Option<u16>,
    /// Address of the instance; this node's own addresses if absent
    #[arg(long)]
    pub(crate) address: Option<std::net::IpAddr>,
    /// Instance id on this node; the service name if absent
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Tag of the instance; may be repeated
    #[arg(long)]
    pub(crate) tag: Vec<String>,
    /// Time that the instance stays healthy without being published again, like 5m; unlimited if absent
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    /// Deregister the service instead
    #[arg(long, conflicts_with_all = ["port", "address", "tag", "ttl"])]
    pub(crate) withdraw: bool,
    #[command(flatten)]
    pub(crate) here: AgentDir,
}
