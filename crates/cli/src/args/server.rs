//! `server` and `agent` as typed: setting up and running the two long-lived programs.

use std::path::PathBuf;

use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::authorities::CaVerb;
use crate::server_addresses::ServerAddresses;

/// Reads the addresses of servers, with commas between.
pub(super) fn addresses(text: &str) -> Result<ServerAddresses, std::convert::Infallible> {
    Ok(ServerAddresses::parse(text))
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerVerb {
    /// Initialise a control plane: certificate authority, store, first admin token
    Init {
        #[command(flatten)]
        config: ServerConfig,
    },
    /// List the servers of the control plane and show which one leads
    List,
    /// Have the leader hand the leadership over to another server, and stay a server
    ///
    /// The command goes to the leader, whichever server is configured. Use it before the leader is upgraded or its machine restarted.
    StepDown {
        /// Reason, kept in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Replace the certificate authority: make another one, bring it into use, trust the one before no more
    #[command(subcommand)]
    Ca(CaVerb),
    /// Create a join token for a server; it is shown only once and admits one server, once
    ///
    /// The server that joins with it receives the keys of the installation, so that it needs every right. List and revoke it as the join
    /// tokens of nodes: `bellwether join-token list`.
    #[command(name = "join-token")]
    JoinToken {
        /// Lifetime of the token, at most 1h; 15m by default
        #[arg(long, value_name = "TIME")]
        expires_in: Option<Span>,
    },
    /// Make this machine a server of a control plane that has its records in an etcd
    ///
    /// The server that is asked is verified by the join token. It sends the keys of the installation, which are written to the data
    /// directory, and how to reach etcd, which is written to the configuration file with what is given here. Certificates for etcd are
    /// not sent.
    Join(ServerJoin),
    /// Copy the whole store to another one; no server may use either meanwhile
    Migrate {
        #[command(flatten)]
        config: ServerConfig,
        /// Configuration file of a server that uses the destination store
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Write a backup of all records to a file
    ///
    /// With `--online` a running server gives it, while everything goes on. Otherwise the command opens the store itself: an embedded
    /// store only while its server is stopped.
    Backup {
        #[command(flatten)]
        config: ServerConfig,
        /// Have the running server give the backup; the token needs every right
        #[arg(long, conflicts_with_all = ["config", "data_dir", "listen"])]
        online: bool,
        /// Have the keys of the installation in it too, so that a restore needs nothing else: encrypt it
        #[arg(long)]
        with_keys: bool,
        /// Backup file, which must not exist; `-` writes to stdout
        file: PathBuf,
    },
    /// Show what a backup contains and verify that it is complete
    Inspect {
        /// Backup file; `-` reads stdin
        file: PathBuf,
    },
    /// Restore a backup into an empty store
    ///
    /// Numbers that agents, lock holders and clients may know from the time after the backup are not issued again: those issued from
    /// now on are greater.
    Restore {
        #[command(flatten)]
        config: ServerConfig,
        /// Backup file
        #[arg(required_unless_present = "in_place", conflicts_with = "in_place")]
        file: Option<PathBuf>,
        /// Raise the numbers of a store that was set back by other means, such as a snapshot of etcd
        #[arg(long)]
        in_place: bool,
        /// Believe the system clock, also if it is more than a day later than the newest time in the records
        #[arg(long)]
        accept_clock: bool,
        /// Restore also if pki in the data directory is of another installation; put that of the backup there afterwards
        #[arg(long, conflicts_with = "in_place")]
        any_authority: bool,
    },
    /// Check the whole store of a stopped server: every page, record and event, and its history; changes nothing
    Check {
        #[command(flatten)]
        config: ServerConfig,
    },
    /// Let in an admin who lost every token: create an admin token in the store of this machine's server
    ///
    /// It needs no token, but the right to read the data directory and, with etcd, its credentials. Stop the server first if it has a
    /// store of its own. The token is written to admin-token in the data directory; delete the lost ones with it.
    Recover {
        #[command(flatten)]
        config: ServerConfig,
        /// Create an admin token
        #[arg(long, required = true)]
        admin_token: bool,
    },
    /// Add a key to the keys that secrets are encrypted with, in pki/secrets.key of the data directory
    ///
    /// Copy the file to the other servers, then restart all of them, one after the other. Once every server has the key, secrets are
    /// encrypted with it, and those that are stored are encrypted again: `bellwether secret keys` shows how far that is. Then the old key
    /// may be taken out of the file, unless backups need it.
    SecretKey {
        #[command(flatten)]
        config: ServerConfig,
    },
    /// Run a server
    Run {
        #[command(flatten)]
        config: ServerConfig,
        /// Check the configuration and exit
        #[arg(long)]
        check: bool,
        /// Believe the system clock, also if it is more than a day from the time at which this server ran last
        #[arg(long)]
        accept_clock: bool,
        /// Stop when the process that started this one ends
        #[arg(long, hide = true)]
        die_with_parent: bool,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerJoin {
    /// Server to join from, https://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// File with the join token; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// Name of this server, unique among the servers
    #[arg(long, value_name = "SERVER")]
    pub(crate) name: ServerName,
    /// URL at which agents, people and other servers reach this server
    #[arg(long, value_name = "URL")]
    pub(crate) address: String,
    /// Listen address
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:7420")]
    pub(crate) listen: std::net::SocketAddr,
    /// Configuration file of this server; one that exists is used as it is
    #[arg(short, long, value_name = "FILE", default_value = "/etc/bellwether/server.toml")]
    pub(crate) config: PathBuf,
    /// Data directory of this server
    #[arg(long, value_name = "DIR", default_value = "/var/lib/bellwether/server")]
    pub(crate) data_dir: PathBuf,
    /// CA certificate of etcd on this machine, if its path is not that of the other server
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_ca_file: Option<PathBuf>,
    /// Client certificate for etcd on this machine, if its path is not that of the other server
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_cert_file: Option<PathBuf>,
    /// Key of the client certificate for etcd on this machine, if its path is not that of the other server
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerConfig {
    /// Server configuration file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data directory; overrides the configuration file
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Listen address; overrides the configuration file
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentVerb {
    /// Join this machine to the server given by --server, with a join token
    Join {
        /// File with the join token; `-` reads stdin
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
        /// Node name
        #[arg(long, value_name = "NODE")]
        name: String,
        /// Initial label, KEY=VALUE; may be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        label: Vec<String>,
        /// Data directory of the agent
        #[arg(long, default_value = "/var/lib/bellwether/agent", value_name = "DIR")]
        data_dir: PathBuf,
        /// Join also if this machine has joined before; what runs on it goes on
        #[arg(long)]
        force: bool,
    },
    /// Run the agent
    Run {
        /// Agent configuration file
        #[arg(short, long, default_value = "/etc/bellwether/agent.toml", value_name = "FILE")]
        config: PathBuf,
        /// Check the configuration and exit
        #[arg(long)]
        check: bool,
        /// Stop when the process that started this one ends
        #[arg(long, hide = true)]
        die_with_parent: bool,
    },
    /// Reload the configuration of this machine's agent: all of it, or nothing if anything in it is not valid
    Reload {
        #[command(flatten)]
        agent: AgentDir,
        /// Longest wait for running steps to end, which a reload does not interrupt
        #[arg(long, default_value = "5m", value_name = "TIME")]
        timeout: Span,
    },
    /// Show the state of this machine's agent
    Status {
        #[command(flatten)]
        agent: AgentDir,
    },
}

/// Which agent of this machine a command talks to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AgentDir {
    /// Data directory of this machine's agent
    #[arg(
        long,
        env = "BELLWETHER_AGENT_DIR",
        hide_env = true,
        default_value = "/var/lib/bellwether/agent",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}
