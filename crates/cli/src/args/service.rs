//! Services as typed: `service`, `wait`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceVerb {
    /// List services: how many are registered, how many serve
    List,
    /// Show one with its instances, and why those that do not serve do not
    Get {
        /// Its name
        name: String,
    },
    /// Offer a service of this machine, through its own agent
    Register(Box<Register>),
    /// Take back a service that was registered on this machine
    Deregister {
        /// Its id
        id: String,
        #[command(flatten)]
        agent: AgentDir,
    },
    /// Say how a registered service of this machine does, for a check with a ttl
    Pulse {
        /// Its id
        id: String,
        /// passing, warning or failing
        #[arg(default_value = "passing")]
        level: String,
        /// Which check, if there are several with a ttl
        #[arg(long)]
        check: Option<String>,
        /// One line for whoever asks why
        #[arg(long, default_value = "")]
        note: String,
        #[command(flatten)]
        agent: AgentDir,
    },
    /// Services of this machine, as its own agent has them
    Local {
        #[command(flatten)]
        agent: AgentDir,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AgentDir {
    /// Directory of this machine's agent
    #[arg(
        long,
        env = "BELLWETHER_AGENT_DIR",
        default_value = "/var/lib/bellwether/agent",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Register {
    /// The service
    pub(crate) name: String,
    /// Which one among those of this machine; the service's name if absent
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Its port
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Where it is reached, if not at the machine's own addresses
    #[arg(long)]
    pub(crate) address: Option<std::net::IpAddr>,
    /// A word that its like is told apart by; again for more
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Something its users want to know besides, KEY=VALUE; again for more
    #[arg(long = "meta", value_name = "KEY=VALUE")]
    pub(crate) meta: Vec<String>,
    /// It serves while this accepts connections, host:port
    #[arg(long)]
    pub(crate) tcp: Option<String>,
    /// It serves while this answers with success, http://host:port/path
    #[arg(long)]
    pub(crate) http: Option<String>,
    /// It serves while a program says so at least this often, by `service pulse`
    #[arg(long)]
    pub(crate) ttl: Option<String>,
    /// What must be there before it is said to serve, like db or "2 of db"; again for more
    #[arg(long = "need", value_name = "NEED")]
    pub(crate) needs: Vec<String>,
    /// How often tcp and http are asked
    #[arg(long)]
    pub(crate) interval: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WaitFor {
    /// The service
    #[arg(long)]
    pub(crate) service: String,
    /// So many instances must serve
    #[arg(long, value_name = "N", conflicts_with = "addressable")]
    pub(crate) functional: Option<u32>,
    /// So many instances must be registered, whether or not they serve
    #[arg(long, value_name = "N")]
    pub(crate) addressable: Option<u32>,
    /// How long to wait; for ever if absent
    #[arg(long)]
    pub(crate) timeout: Option<String>,
    /// What to run then, in place of this command
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
