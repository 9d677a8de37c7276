//! `service` and `wait` as typed.

use std::ffi::OsString;

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::list::ListFlags;
use super::server::AgentDir;

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceVerb {
    /// List services with the number of registered and healthy instances
    List(ListFlags),
    /// Show one service with its instances and why unhealthy ones are
    Get {
        /// Service name
        #[arg(value_name = "SERVICE")]
        name: String,
    },
    /// Forget a service that has no instances
    Forget {
        /// Service name
        #[arg(value_name = "SERVICE")]
        name: String,
    },
    /// Register a service instance of this node, through its agent
    Register(Box<Register>),
    /// Deregister a service instance of this node
    Deregister {
        /// Instance id
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        agent: AgentDir,
    },
    /// Update the TTL check of a service instance of this node
    #[command(subcommand)]
    Check(ServiceCheck),
    /// List the services of this node, as its agent knows them
    Local {
        #[command(flatten)]
        agent: AgentDir,
    },
}

/// The result that a TTL check is set to.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCheck {
    /// Set the check to passing
    Pass(CheckFlags),
    /// Set the check to warning; the instance stays functional
    Warn(CheckFlags),
    /// Set the check to failing
    Fail(CheckFlags),
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CheckFlags {
    /// Instance id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Check name; needed if the instance has several TTL checks
    #[arg(long)]
    pub(crate) check: Option<String>,
    /// Reason, one line
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Register {
    /// Service name
    #[arg(value_name = "SERVICE")]
    pub(crate) name: String,
    /// Instance id on this node; the service name if absent
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Port of the instance
    #[arg(long, value_parser = super::number::port)]
    pub(crate) port: Option<u16>,
    /// Address of the instance; this node's own addresses if absent
    #[arg(long)]
    pub(crate) address: Option<std::net::IpAddr>,
    /// Tag of the instance; may be repeated
    #[arg(long)]
    pub(crate) tag: Vec<String>,
    /// Metadata of the instance, KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) meta: Vec<String>,
    /// Check that host:port accepts TCP connections
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tcp: Option<String>,
    /// Check that http://host:port/path answers with success
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// Fail the instance unless `service check` passes it at least this often
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    /// Service that must be functional before the instance is, like db or "2 of db"; may be repeated
    #[arg(long = "need", value_name = "NEED")]
    pub(crate) needs: Vec<String>,
    /// Interval of the TCP and HTTP checks
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WaitFor {
    /// Service name
    #[arg(long)]
    pub(crate) service: String,
    /// Number of functional instances to wait for [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "addressable", value_parser = super::number::whole::<u32>)]
    pub(crate) functional: Option<u32>,
    /// Number of registered instances to wait for, functional or not
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) addressable: Option<u32>,
    /// Longest time to wait; unlimited if absent
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
    /// Command to run afterwards in place of this one, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
