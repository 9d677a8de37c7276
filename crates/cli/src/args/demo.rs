//! `demo` and `dev` as typed.

use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Demo {
    /// Number of agents, 6 to 100
    #[arg(long, default_value_t = 12, value_parser = super::number::between(6_u16, 100), value_name = "N")]
    pub(crate) nodes: u16,
    /// Seed that selects the node that becomes unreachable
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = super::number::whole::<u64>)]
    pub(crate) seed: u64,
    /// Keep everything running at the end, until Ctrl-C
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Dev {
    /// Data directory; a temporary one that is removed at the end if absent
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address of the plain HTTP listener
    #[arg(long, default_value = "127.0.0.1:7421", value_name = "ADDRESS")]
    pub(crate) plain: std::net::SocketAddr,
    /// Address of the TLS listener
    #[arg(long, default_value = "127.0.0.1:7420", value_name = "ADDRESS")]
    pub(crate) listen: std::net::SocketAddr,
    /// Address on which the node answers DNS queries
    #[arg(long, default_value = "127.0.0.1:8600", value_name = "ADDRESS")]
    pub(crate) dns: std::net::SocketAddr,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DemoService {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) address: std::net::IpAddr,
    /// Port to listen on
    #[arg(long, value_parser = super::number::port)]
    pub(crate) port: u16,
    /// Version to answer with
    #[arg(long, env = "BELLWETHER_VERSION", value_name = "VERSION")]
    pub(crate) version_served: String,
}
