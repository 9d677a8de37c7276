//! Ensembles: distributed services that are managed whole, such as an etcd of three members. Written only by operations; its members are
//! in a record of their own.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::records::annotation::Annotation;
use crate::records::ensemble_adoption::AdoptionSource;
use crate::records::ensemble_restore::RestoreSource;
use crate::records::ensemble_snapshots::SnapshotPolicy;
use crate::words::counter::EnsembleRevision;
use crate::words::label::Labels;
use crate::words::name::{DeviceSerial, EnsembleName, ProgramName, SecretName, UnitName};
use crate::words::selector::Selector;
use crate::words::time::Span;

/// Most ensembles of a namespace.
pub const MAX_ENSEMBLES: usize = 256;

/// Most members of one ensemble whose members vote: each write waits for more than half of them.
pub const MAX_VOTERS: u32 = 7;

/// Most members of one ensemble whose members are independent of each other.
pub const MAX_INDEPENDENT: u32 = 64;

/// Default time for which a member may be silent before it is replaced: longer than a machine takes to reboot.
pub const FAILOVER_AFTER: Span = Span::from_secs(10 * 60);

/// Shortest such time: that contact with a machine is lost may be noticed 20 s later, and until then a member that lacks the others looks
/// like the one that fails.
pub const MIN_FAILOVER_AFTER: Span = Span::from_secs(30);

/// Longest such time.
pub const MAX_FAILOVER_AFTER: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Default time that a new member may take until it votes.
pub const JOIN_WITHIN: Span = Span::from_secs(10 * 60);

/// Shortest such time.
pub const MIN_JOIN_WITHIN: Span = Span::from_secs(10);

/// Longest such time.
pub const MAX_JOIN_WITHIN: Span = Span::from_secs(24 * 60 * 60);

/// Default port of etcd for clients.
pub const ETCD_CLIENT_PORT: u16 = 2379;

/// Default port of etcd for its other members.
pub const ETCD_PEER_PORT: u16 = 2380;

/// Default port of Redis.
pub const REDIS_PORT: u16 = 6379;

/// Default port of Ceph's monitors, for the second version of its protocol.
pub const CEPH_PORT: u16 = 3300;

/// Default number of replicas that a primary must have to take writes.
pub const MIN_REPLICAS: u32 = 1;

/// Most secrets whose values are passwords at once: the present one, and the one before or after it.
pub const MAX_PASSWORD_SECRETS: usize = 2;

/// A distributed service that is managed whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ensemble {
    /// Its name, unique in its namespace.
    pub name: EnsembleName,
    /// Number of its last change, from 1.
    pub revision: EnsembleRevision,
    /// The service agent that runs its members, with its settings.
    pub service: EnsembleService,
    /// How many members there are to be.
    pub size: EnsembleSize,
    /// Which nodes may have members. One that does not match any more keeps the member that it has.
    pub filter: Selector,
    /// Key of the label by whose values members are spread, such as `rack`; `None` to spread them by nothing.
    pub spread: Option<String>,
    /// How long a member may be silent before it is replaced.
    pub failover_after: Span,
    /// How long a new member may take until it votes.
    pub join_within: Span,
    /// Whether its members are changed.
    pub mode: EnsembleMode,
    /// When snapshots of its data are taken, and how many are kept.
    pub snapshots: SnapshotPolicy,
    /// The snapshot that it is founded from; `None` if it begins without data. Once it has members it stays.
    pub restore: Option<RestoreSource>,
    /// The store that it adopts; `None` if it founds its own. Once it has members it stays, but for the endpoints.
    pub adopt: Option<AdoptionSource>,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
}

/// A service agent with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnsembleService {
    /// etcd.
    Etcd(EtcdSettings),
    /// Redis.
    Redis(RedisSettings),
    /// Ceph: its monitors are the members, and its OSDs the devices that they have.
    Ceph(CephSettings),
    /// Something that each node has by itself, whose members are independent of each other.
    Independent(IndependentSettings),
}

/// Settings of an ensemble whose members are independent of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndependentSettings {
    /// What runs.
    pub workload: Workload,
    /// The port that clients use; `None` if it has none.
    pub port: Option<u16>,
}

/// What runs as an independent member. Each node says itself what that is under this name, or does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// A program that the node's agent supervises.
    Process(ProgramName),
    /// A unit of systemd, or a template of which each member is an instance.
    Systemd(UnitName),
    /// Executables of the node that start it, stop it and tell how it is.
    Exec(ProgramName),
}

/// Settings of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Port for clients.
    pub client_port: u16,
    /// Port for its other members.
    pub peer_port: u16,
    /// Whether its members and clients speak TLS alone, with certificates of the ensemble's own authority.
    pub tls: bool,
}

/// Settings of Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// Port for clients and replicas.
    pub port: u16,
    /// How many replicas the primary must have to take writes, and a client waits for until its write is one that no failover loses.
    pub min_replicas: u32,
    /// Whether clients and replicas speak TLS alone, with certificates of the ensemble's own authority.
    pub tls: bool,
    /// The secrets whose values are passwords of clients, at most [`MAX_PASSWORD_SECRETS`]; without one, clients need none.
    pub password_secrets: Vec<SecretName>,
}

/// Settings of Ceph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CephSettings {
    /// Port of the monitors for clients and each other, who all prove who they are by keys.
    pub port: u16,
    /// Copies of each object in a pool that is made without a number of its own.
    pub replicas: u32,
    /// The devices that may be taken, each for an OSD, on whichever node they are found.
    pub devices: BTreeSet<DeviceSerial>,
}

/// How many members there are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsembleSize {
    /// So many, at least 1.
    Number(u32),
    /// As many as a quorum of the nodes that match wants: 1 of up to 2 nodes, 3 of up to 20, 5 of up to 100, and 7 of more. It grows with
    /// the nodes and never shrinks by itself: nodes that are gone for a while, or that a filter does not match any more, remove no member.
    Quorum,
}

/// Whether the members of an ensemble are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnsembleMode {
    /// They are added, replaced and removed.
    #[default]
    Managed,
    /// They are left as they are; what runs goes on.
    Unmanaged,
}

impl EnsembleService {
    /// The devices that may be taken; none where members have none.
    #[must_use]
    pub const fn devices(&self) -> Option<&BTreeSet<DeviceSerial>> {
        match self {
            Self::Ceph(ceph) => Some(&ceph.devices),
            Self::Etcd(_) | Self::Redis(_) | Self::Independent(_) => None,
        }
    }

    /// The secrets whose values are passwords of clients; none if clients need none.
    #[must_use]
    pub fn password_secrets(&self) -> &[SecretName] {
        match self {
            Self::Redis(redis) => &redis.password_secrets,
            Self::Etcd(_) | Self::Ceph(_) | Self::Independent(_) => &[],
        }
    }

    /// Name of the service agent.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Etcd(_) => "etcd",
            Self::Redis(_) => "redis",
            Self::Ceph(_) => "ceph",
            Self::Independent(independent) => independent.workload.as_str(),
        }
    }

    /// Name of the software, in a sentence.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        match self {
            Self::Etcd(_) => "etcd",
            Self::Redis(_) => "Redis",
            Self::Ceph(_) => "Ceph",
            Self::Independent(independent) => independent.workload.as_str(),
        }
    }

    /// Most members.
    #[must_use]
    pub const fn max_members(&self) -> u32 {
        match self {
            Self::Etcd(_) | Self::Redis(_) | Self::Ceph(_) => MAX_VOTERS,
            Self::Independent(_) => MAX_INDEPENDENT,
        }
    }

    /// Whether each change waits for more than half of the members.
    #[must_use]
    pub const fn has_voters(&self) -> bool {
        match self {
            Self::Etcd(_) | Self::Ceph(_) => true,
            Self::Redis(_) | Self::Independent(_) => false,
        }
    }

    /// Whether it is an etcd.
    #[must_use]
    pub const fn is_etcd(&self) -> bool {
        match self {
            Self::Etcd(_) => true,
            Self::Redis(_) | Self::Ceph(_) | Self::Independent(_) => false,
        }
    }

    /// The ports that a member listens on, each with what it is for.
    #[must_use]
    pub fn ports(&self) -> Vec<(&'static str, u16)> {
        match self {
            Self::Etcd(etcd) => vec![("client_port", etcd.client_port), ("peer_port", etcd.peer_port)],
            Self::Redis(redis) => vec![("port", redis.port)],
            Self::Independent(independent) => {
                independent.port.map(|port| ("port", port)).into_iter().collect()
            }
            Self::Ceph(ceph) => vec![("port", ceph.port)],
        }
    }

    /// The port that clients use; `None` if there is none.
    #[must_use]
    pub const fn client_port(&self) -> Option<u16> {
        match self {
            Self::Etcd(etcd) => Some(etcd.client_port),
            Self::Redis(redis) => Some(redis.port),
            Self::Ceph(ceph) => Some(ceph.port),
            Self::Independent(independent) => independent.port,
        }
    }

    /// Whether members and clients speak TLS alone.
    #[must_use]
    pub const fn has_tls(&self) -> bool {
        match self {
            Self::Etcd(etcd) => etcd.tls,
            Self::Redis(redis) => redis.tls,
            Self::Ceph(_) | Self::Independent(_) => false,
        }
    }

    /// Whether a new member joins the store by itself once it runs, so that no other one adds it or has it vote. Such a store takes one
    /// also while another member is unreachable, and a member that is lost leaves after its replacement has joined.
    #[must_use]
    pub const fn admits_by_itself(&self) -> bool {
        match self {
            Self::Etcd(_) | Self::Redis(_) | Self::Independent(_) => false,
            Self::Ceph(_) => true,
        }
    }
}

impl Workload {
    /// Name of the service agent.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Process(_) => "process",
            Self::Systemd(_) => "systemd",
            Self::Exec(_) => "exec",
        }
    }

    /// The setting that names it.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Process(_) => "program",
            Self::Systemd(_) => "unit",
            Self::Exec(_) => "agent",
        }
    }

    /// Its name on the nodes.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Process(name) | Self::Exec(name) => name.as_str(),
            Self::Systemd(unit) => unit.as_str(),
        }
    }

    /// Whether a node can have it once only, whatever ensembles have it.
    #[must_use]
    pub fn is_single(&self) -> bool {
        match self {
            Self::Process(_) | Self::Exec(_) => false,
            Self::Systemd(unit) => !unit.is_template(),
        }
    }
}

impl EnsembleSize {
    /// The number of members that are wanted with this many nodes that match, where there are some already.
    #[must_use]
    pub const fn wanted(self, nodes: usize, members: usize) -> usize {
        let wanted = match self {
            // Shorter than any fleet.
            Self::Number(number) => return number as usize,
            Self::Quorum => match nodes {
                0..=2 => 1,
                3..=20 => 3,
                21..=100 => 5,
                _ => 7,
            },
        };
        if wanted > members { wanted } else { members }
    }
}

impl EnsembleMode {
    /// Name of the mode.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Unmanaged => "unmanaged",
        }
    }
}
