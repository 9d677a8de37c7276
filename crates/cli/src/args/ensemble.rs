//! `ensemble`, as typed.

use bellwether_api::v1::ensemble::{EnsembleMode, EnsembleSize};
use bellwether_core::words::label::Label;
use bellwether_core::words::time::Span;
use clap::Subcommand;
use clap::builder::TypedValueParser;

use super::consent::Consent;
use super::list::ListFlags;

/// An OSD, as it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedOsd {
    /// By its number in the ensemble.
    Own(u64),
    /// By the number that the store gave it, as Ceph names it.
    Store(u32),
}

fn osd(text: &str) -> Result<NamedOsd, String> {
    let Some(number) = text.strip_prefix("osd.") else {
        return super::number::whole::<u64>(text).map(NamedOsd::Own);
    };
    super::number::whole::<u32>(number).map(NamedOsd::Store)
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnsembleVerb {
    /// Create an ensemble, such as of etcd or of copies of a program: the nodes that the filter matches get members
    Create {
        #[command(flatten)]
        of: EnsembleName,
        /// Software: etcd (default), redis, ceph, process, systemd or exec
        #[arg(long, value_name = "SERVICE", default_value = "etcd", hide_default_value = true, value_parser = ["etcd", "redis", "ceph", "process", "systemd", "exec"])]
        service: String,
        /// Snapshot that it is founded from, as 'ensemble snapshots' of its ensemble names it, also if that was deleted
        #[arg(long, value_name = "SNAPSHOT")]
        from_snapshot: Option<String>,
        /// Node on which the snapshot is [default: where it was taken, while its ensemble exists]
        #[arg(long, value_name = "NODE", requires = "from_snapshot")]
        snapshot_node: Option<String>,
        #[command(flatten)]
        change: EnsembleFlags,
    },
    /// Change an ensemble
    Set {
        #[command(flatten)]
        of: EnsembleName,
        #[command(flatten)]
        change: EnsembleFlags,
        /// Change only if this is its revision; else exit 6 and change nothing
        #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
        if_revision: Option<u64>,
        #[command(flatten)]
        consent: Consent,
    },
    /// List ensembles
    List(ListFlags),
    /// Show an ensemble with its members, what happens to them next, and what it waits for
    Get {
        #[command(flatten)]
        of: EnsembleName,
    },
    /// Plan what would happen to the members of an ensemble; nothing is changed
    Plan {
        #[command(flatten)]
        of: EnsembleName,
        /// Number of members that it would have, or quorum
        #[arg(long, value_name = "N")]
        size: Option<EnsembleSize>,
    },
    /// Scale an ensemble to another number of members
    Scale {
        #[command(flatten)]
        of: EnsembleName,
        /// Number of members, or quorum
        #[arg(value_name = "N")]
        size: EnsembleSize,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Have the primary of an ensemble of Redis hand over to a replica, without a loss
    Failover {
        #[command(flatten)]
        of: EnsembleName,
        /// Number of the member that becomes the primary [default: the first that works and has the data]
        #[arg(long, value_name = "MEMBER", value_parser = super::number::whole::<u64>)]
        to: Option<u64>,
        /// Make the member of --to the primary whatever writes are lost by it, also if the present one does not work
        #[arg(long, requires = "to")]
        accept_data_loss: bool,
        /// Acknowledge the last failover, and nothing else: the next one may take place within the hour
        #[arg(long, conflicts_with_all = ["to", "accept_data_loss"])]
        acknowledge: bool,
        /// Withdraw a handover that was asked for and has not begun
        #[arg(long, conflicts_with_all = ["to", "accept_data_loss", "acknowledge"])]
        withdraw: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Replace a member of an ensemble: another one takes its place before it leaves, or after it if it does not work
    Replace {
        #[command(flatten)]
        of: EnsembleName,
        /// Number of the member
        #[arg(value_name = "MEMBER", value_parser = super::number::whole::<u64>)]
        member: u64,
        /// Withdraw the request, unless the member is leaving already
        #[arg(long)]
        withdraw: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Restart the members of an ensemble one after the other, such as with another release of its program
    Restart {
        #[command(flatten)]
        of: EnsembleName,
        /// Withdraw the request: no other member is restarted
        #[arg(long)]
        withdraw: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Defragment the databases of the members of an etcd one after the other: each gives the space that it does not need back to its disk
    Defragment {
        #[command(flatten)]
        of: EnsembleName,
        /// Withdraw the request: no other member is defragmented
        #[arg(long)]
        withdraw: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Go on with an ensemble as it is recorded, after a restore of the control plane
    Resume {
        #[command(flatten)]
        of: EnsembleName,
        /// Go on although its members are known to be others, or to have other roles: what only these have may be lost
        #[arg(long)]
        accept_data_loss: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Remove an OSD of an ensemble of Ceph, once its data are on others
    RemoveOsd {
        #[command(flatten)]
        of: EnsembleName,
        /// Number of the OSD, or osd.N with the number that the store gave it
        #[arg(value_name = "OSD", value_parser = osd)]
        osd: NamedOsd,
        /// Withdraw the request: the OSD stays, and gets data again
        #[arg(long)]
        withdraw: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Replace an OSD of an ensemble of Ceph by one with another device, which gets its number in the store
    ReplaceOsd {
        #[command(flatten)]
        of: EnsembleName,
        /// Number of the OSD, or osd.N with the number that the store gave it
        #[arg(value_name = "OSD", value_parser = osd)]
        osd: NamedOsd,
        /// Serial number of the other device; it takes the place of the present one in the list of devices
        #[arg(
            long,
            value_name = "SERIAL",
            required_unless_present = "withdraw",
            conflicts_with = "withdraw"
        )]
        device: Option<String>,
        /// Withdraw the request: the OSD stays, and gets data again
        #[arg(long)]
        withdraw: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Remove a member of the store of an ensemble that something else runs, from the store; its process and data stay as they are
    RemoveForeignMember {
        #[command(flatten)]
        of: EnsembleName,
        /// Id of the member in the store, as 'ensemble get' shows it
        #[arg(value_name = "ID")]
        id: String,
        /// Withdraw the request, unless the member is removed already
        #[arg(long)]
        withdraw: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Take a snapshot of the data of an ensemble, which is kept on the node of a member
    Snapshot {
        #[command(flatten)]
        of: EnsembleName,
        /// Wait until it is taken; exit 1 if that fails
        #[arg(short = 'w', long)]
        wait: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Show the snapshots of the data of an ensemble, and where they are
    Snapshots {
        #[command(flatten)]
        of: EnsembleName,
    },
    /// Certify a client of an ensemble: a key is made here, and the control plane signs its certificate
    Certify {
        #[command(flatten)]
        of: EnsembleName,
        /// Directory for ca.pem, client.pem and client-key.pem, which must not be there yet
        #[arg(long, value_name = "DIR")]
        out: std::path::PathBuf,
        /// Time for which the certificate is valid, 1m to 365d
        #[arg(long, value_name = "TIME", default_value = "30d")]
        valid_for: Span,
    },
    /// Delete an ensemble: its members stop, and their data are set aside on their nodes
    Delete {
        #[command(flatten)]
        of: EnsembleName,
        /// Wait until all its members have stopped and its name is free again
        #[arg(short = 'w', long)]
        wait: bool,
        /// With --wait: stop waiting after this time, with exit 3
        #[arg(long, value_name = "TIME", requires = "wait")]
        timeout: Option<Span>,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The ensemble that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EnsembleName {
    /// Ensemble name
    #[arg(value_name = "ENSEMBLE")]
    pub(crate) name: String,
}

/// What an ensemble is to be.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EnsembleFlags {
    /// Filter of the nodes that may have a member, like 'role=db', or all
    #[arg(short = 'l', long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Number of members, 1 to 7, or quorum: as many as the nodes that match are good for [default: quorum]; of a process, a unit or executables
    /// 1 to 64 [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) size: Option<EnsembleSize>,
    /// Key of the label by whose values members are spread, like rack
    #[arg(long, value_name = "KEY", value_parser = label_key, conflicts_with = "no_spread")]
    pub(crate) spread: Option<String>,
    /// Members are not spread by a label any more
    #[arg(long)]
    pub(crate) no_spread: bool,
    /// Port of etcd for clients [default: 2379]
    #[arg(long, value_name = "PORT", value_parser = super::number::whole::<u32>)]
    pub(crate) client_port: Option<u32>,
    /// Port of etcd for the other members [default: 2380]
    #[arg(long, value_name = "PORT", value_parser = super::number::whole::<u32>)]
    pub(crate) peer_port: Option<u32>,
    /// Name of the program of a process in [ensembles.programs] of the agents
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
    /// Unit of systemd, or a template of units like web@.service, that units in [ensembles] of the agents names
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Option<String>,
    /// Name of the directory of executables, below service_agents in [ensembles] of the agents
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Port of Redis for clients and replicas [default: 6379], of the monitors of Ceph [default: 3300], or of a process, a unit or executables for clients [default: none]
    #[arg(long, value_name = "PORT", value_parser = super::number::whole::<u32>)]
    pub(crate) port: Option<u32>,
    /// Number of replicas that a primary of Redis must have to take writes, 0 to 6 [default: 1]
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) min_replicas_to_write: Option<u32>,
    /// Secret whose value is the password of clients of Redis; repeat for a second one, such as while clients change from one to the other
    #[arg(long, value_name = "SECRET", conflicts_with = "no_password")]
    pub(crate) password_secret: Vec<String>,
    /// No password for clients of Redis any more: any client that reaches a member may use it
    #[arg(long)]
    pub(crate) no_password: bool,
    /// Serial number of a device that may become an OSD of Ceph on the node that offers it, and is overwritten if it is empty; repeatable
    #[arg(long, value_name = "SERIAL")]
    pub(crate) device: Vec<String>,
    /// Serial number of a device that may not be taken any more; an OSD that it has stays until it is removed; repeatable
    #[arg(long, value_name = "SERIAL")]
    pub(crate) no_device: Vec<String>,
    /// Number of copies in the pools of Ceph that are made without one, 1 to 10 [default: 3]
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) replicas: Option<u32>,
    /// URLs of members of an etcd that something else runs, for clients: the ensemble joins that instead of founding its own; separated by commas
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub(crate) adopt: Vec<String>,
    /// TLS with certificates of the ensemble, for members and clients: true (default) or false
    #[arg(long, value_name = "BOOL")]
    pub(crate) tls: Option<bool>,
    /// Time for which a member may not work before it is replaced, 30s to 7d [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) failover_after: Option<Span>,
    /// Time that a new member may take until it votes, 10s to 24h [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) join_within: Option<Span>,
    /// Mode: managed (default), or unmanaged, which leaves members as they are
    #[arg(long, value_name = "MODE", value_parser = clap::builder::PossibleValuesParser::new(EnsembleMode::WORDS).map(mode))]
    pub(crate) mode: Option<EnsembleMode>,
    /// Time between two snapshots of its data, 60s to 365d, or never [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) snapshot_every: Option<String>,
    /// Number of snapshots that are kept, the latest, 1 to 100 [default: 7]
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) snapshots_kept: Option<u32>,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}

fn label_key(text: &str) -> Result<String, String> {
    match Label::new(text, "") {
        Ok(label) => Ok(label.key.to_string()),
        Err(_) if text.is_empty() => Err("to spread members by nothing, write --no-spread".to_owned()),
        Err(error) => Err(error.reason.to_owned()),
    }
}

/// The mode of a name that was checked.
fn mode(name: String) -> EnsembleMode {
    EnsembleMode::ALL.iter().copied().find(|mode| mode.as_str() == name).unwrap_or_default()
}
