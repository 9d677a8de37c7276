//! Data stores of nodes, as their agents probe them. Written when the node's own agent reports them, and by the decider of probes
//! when nothing is known of them any more.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use crate::words::name::{NodeName, ProbeName};
use crate::words::time::{Span, Timestamp};

/// Most probes of a node: stores are few on a machine, and each has one.
pub const MAX_PROBES: usize = 16;

/// Most shards of one data store.
pub const MAX_SHARDS: usize = 1_024;

/// Most members in a data store's own view of its cluster.
pub const MAX_MEMBERS: usize = 128;

/// Longest text of a data store, in bytes: ids and addresses have at most some seventy.
pub const MAX_TEXT_BYTES: usize = 256;

/// Longest reason, in bytes: one readable line.
pub const MAX_REASON_BYTES: usize = 512;

/// Size of all that is recorded of a node's data stores, in bytes of texts.
pub const MAX_PROBES_BYTES: usize = 262_144;

/// Shortest interval between two writes of which only offsets, lags and the wording of a reason differ.
pub const OFFSETS_INTERVAL: Span = Span::from_secs(30);

/// The data stores of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProbes {
    /// Name of the node.
    pub node: NodeName,
    /// Time at which the report arrived that was written last, by the server's clock.
    pub received_at: Timestamp,
    /// Number of that report among those of the node's agent; zero if it was not numbered.
    pub sequence: u64,
    /// By probe: its data store.
    pub stores: BTreeMap<ProbeName, DataStore>,
}

/// A data store, as a probe saw it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataStore {
    /// Its state.
    pub state: StoreState,
    /// Since when it has this state, by the server's clock.
    pub since: Timestamp,
    /// Why it is not up, or what it cannot do although it is, such as an etcd without a leader; empty if it is well.
    pub reason: String,
    /// What it said of itself when it was up last.
    pub facts: StoreFacts,
}

/// State of a data store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreState {
    /// It answered.
    Up,
    /// It refused, or said that it does not work.
    Down,
    /// Nobody knows: its agent is unreachable, or its answer did not come in time or made no sense.
    Unknown,
}

/// What a data store says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreFacts {
    /// Name of the software, such as `etcd`; empty before the first answer.
    pub software: String,
    /// Version of the software.
    pub version: Option<String>,
    /// Id of the cluster that it belongs to.
    pub cluster_id: Option<String>,
    /// Its own id in that cluster.
    pub member_id: Option<String>,
    /// By shard: its part in it. A store that is not sharded has one, `0`.
    pub shards: BTreeMap<String, Shard>,
    /// Its own view of the members of its cluster, by id; `None` if it has none.
    pub members: Option<BTreeMap<String, StoreMember>>,
}

/// A data store's part in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Its role.
    pub role: ShardRole,
    /// Id of the history that the offset is a position in, such as a timeline: offsets of two histories cannot be compared.
    pub history: Option<String>,
    /// How far it has come.
    pub offset: Option<Amount>,
    /// How far it is behind, if the store reports that itself.
    pub lag: Option<Amount>,
    /// Address of what it replicates from.
    pub upstream: Option<String>,
    /// Whether that replication is connected.
    pub streaming: Option<bool>,
}

/// Role in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShardRole {
    /// It accepts writes: the leader, primary or master.
    Primary,
    /// It follows the primary and may take its place.
    Replica,
    /// It follows and has no vote.
    Learner,
    /// It has no role at present, such as a member of an etcd without a leader.
    Vacant,
}

/// An amount with its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    /// The amount.
    pub amount: u64,
    /// Its unit, such as `bytes`.
    pub unit: String,
}

/// A member of a cluster, as one of its data stores sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreMember {
    /// Its name.
    pub name: Option<String>,
    /// Its address.
    pub address: Option<String>,
    /// Whether it votes.
    pub votes: bool,
    /// Whether the store that says so is connected to it.
    pub connected: Option<bool>,
}

/// Why a report of probes is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ProbesError {
    /// What is wrong, such as `stores.db.shards`.
    pub place: String,
    /// The limit that it exceeds.
    pub reason: String,
}

impl StoreState {
    /// Name of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Unknown => "unknown",
        }
    }
}

impl ShardRole {
    /// Name of the role.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Replica => "replica",
            Self::Learner => "learner",
            Self::Vacant => "vacant",
        }
    }
}

impl NodeProbes {
    /// Whether a report that came before this one was made after it.
    #[must_use]
    pub const fn is_overtaken(&self, last: &Self) -> bool {
        self.sequence > 0 && self.sequence < last.sequence
    }

    /// Whether there may be reports between the last one and this one that are yet to come: it is written although it says the same, so
    /// that they are known to be older.
    #[must_use]
    pub const fn is_behind_a_gap(&self, last: &Self) -> bool {
        self.sequence > last.sequence.saturating_add(1)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// [`ProbesError`] names the first place that exceeds one.
    pub fn check(&self) -> Result<(), ProbesError> {
        let wrong = |place: String, reason: String| Err(ProbesError { place, reason });
        if self.stores.len() > MAX_PROBES {
            return wrong("stores".into(), format!("there are more than {MAX_PROBES}"));
        }
        let mut size = 0;
        for (name, store) in &self.stores {
            let place =
                |error: ProbesError| ProbesError { place: format!("stores.{name}.{}", error.place), ..error };
            size += store.check().map_err(place)?;
        }
        if size > MAX_PROBES_BYTES {
            return wrong(
                "stores".into(),
                format!("all texts together have more than {MAX_PROBES_BYTES} bytes"),
            );
        }
        Ok(())
    }

    /// Whether something is recorded as known of any data store.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.stores.values().any(|store| store.state != StoreState::Unknown)
    }
}

impl DataStore {
    /// Size of its texts, in bytes, if they are within the limits.
    ///
    /// # Errors
    /// [`ProbesError`] names the first place that exceeds one.
    pub fn check(&self) -> Result<usize, ProbesError> {
        if self.reason.len() > MAX_REASON_BYTES {
            let reason = format!("it has more than {MAX_REASON_BYTES} bytes");
            return Err(ProbesError { place: "reason".into(), reason });
        }
        Ok(self.reason.len() + self.facts.size()?)
    }

    /// What is written at once when it changes: all but offsets, lags and the wording of the reason, which may change with every probe.
    #[must_use]
    pub fn essence(&self) -> Self {
        let mut store = Self { reason: String::new(), ..self.clone() };
        for shard in store.facts.shards.values_mut() {
            (shard.offset, shard.lag) = (None, None);
        }
        store
    }
}

impl Shard {
    /// What it replicates from, and whether it is connected, as events tell it; `None` if it does not replicate.
    #[must_use]
    pub fn replicates(&self) -> Option<String> {
        if self.upstream.is_none() && self.streaming.is_none() {
            return None;
        }
        let from = self.upstream.as_deref().unwrap_or("unknown");
        let connected = match self.streaming {
            Some(true) => " connected=true",
            Some(false) => " connected=false",
            None => "",
        };
        Some(format!("{from}{connected}"))
    }
}

impl StoreFacts {
    /// Its software and version, as events tell them; `None` if it never said.
    #[must_use]
    pub fn software_and_version(&self) -> Option<String> {
        let version = self.version.as_deref().unwrap_or("of unknown version");
        (!self.software.is_empty()).then(|| format!("{} {version}", self.software))
    }

    /// Size of the texts, in bytes.
    fn size(&self) -> Result<usize, ProbesError> {
        let limit = |place: &str, length: usize, most: usize| {
            let reason = || format!("there are more than {most}");
            if length > most { Err(ProbesError { place: place.into(), reason: reason() }) } else { Ok(()) }
        };
        limit("shards", self.shards.len(), MAX_SHARDS)?;
        limit("members", self.members.as_ref().map_or(0, BTreeMap::len), MAX_MEMBERS)?;
        let own = [
            ("software", Some(&self.software)),
            ("version", self.version.as_ref()),
            ("cluster_id", self.cluster_id.as_ref()),
            ("member_id", self.member_id.as_ref()),
        ];
        let own = own.into_iter().filter_map(|(place, text)| Some((place, text?)));
        let shards = self.shards.iter().flat_map(|(name, shard)| {
            let units = [shard.offset.as_ref(), shard.lag.as_ref()].into_iter().flatten();
            let texts = units.map(|amount| &amount.unit).chain(&shard.upstream).chain(&shard.history);
            core::iter::once(name).chain(texts).map(|text| ("shards", text))
        });
        let members = self.members.iter().flatten().flat_map(|(id, member)| {
            core::iter::once(id).chain(&member.name).chain(&member.address).map(|text| ("members", text))
        });
        let mut size = 0;
        for (place, text) in own.chain(shards).chain(members) {
            if text.len() > MAX_TEXT_BYTES {
                let reason = format!("a text has more than {MAX_TEXT_BYTES} bytes");
                return Err(ProbesError { place: place.into(), reason });
            }
            size += text.len() + 8;
        }
        Ok(size)
    }
}
