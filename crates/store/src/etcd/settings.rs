//! The settings of an etcd: its addresses, credentials and our keys. Owns what is refused.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::error::OpenError;

/// The key by which servers agree on who compacts. It counts for the whole etcd, whatever prefixes are used in it.
pub(super) const COMPACTION_KEY: &str = "bellwether-compaction";

/// The longest prefix: with it, the largest transaction still fits etcd's 1.5 MiB.
const MAX_PREFIX_BYTES: usize = 256;

/// How to reach and use an etcd of version 3.4 or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Client URLs of its members, `https://host:2379` or `http://host:2379`, at least one, all of one etcd. A call
    /// goes to one of them and moves on when it fails or hangs.
    pub endpoints: Vec<String>,
    /// Certificates (PEM) of etcd's authority; `None` trusts those of the system.
    pub ca_file: Option<PathBuf>,
    /// The client certificate; `None` if etcd requires none.
    pub identity: Option<EtcdIdentity>,
    /// Prefix of our keys in etcd, 1 to 256 bytes. Callers never see it. Of two prefixes used in one etcd
    /// neither may begin with the other.
    pub prefix: Bytes,
    /// How long a call may take in total. Half of it is left for another member when one hangs.
    pub deadline: Duration,
    /// Interval at which etcd's status is polled.
    pub probe_every: Duration,
    /// When history is compacted; `None` leaves that to others. It affects the whole etcd.
    pub compaction: Option<Compaction>,
    /// How often the members of etcd are read, to be used beside the endpoints; `None` if these alone are used.
    pub follow_every: Option<Duration>,
    /// File that remembers these members, for a start at which no endpoint answers; `None` if nothing is remembered. Written only while members
    /// are followed.
    pub remembered: Option<PathBuf>,
}

/// A client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdIdentity {
    /// The certificate with its chain (PEM).
    pub cert_file: PathBuf,
    /// Its key (PEM).
    pub key_file: PathBuf,
}

/// A schedule for compaction. Servers agree on who does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Interval.
    pub every: Duration,
    /// How much history is kept, at least.
    pub keep: Duration,
}

impl Default for Compaction {
    /// Every 5 minutes to the revision of 5 minutes before: enough for any live watcher to catch up, and
    /// at 200 writes a second some 100 MiB of history.
    fn default() -> Self {
        let minutes = Duration::from_mins(5);
        Self { every: minutes, keep: minutes }
    }
}

impl EtcdSettings {
    /// These endpoints with defaults: the prefix `/bellwether`, 5 s for a call, a probe every 2 s,
    /// compaction as by [`Compaction::default`].
    #[must_use]
    pub fn new(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            ca_file: None,
            identity: None,
            prefix: Bytes::from_static(b"/bellwether"),
            deadline: Duration::from_secs(5),
            probe_every: Duration::from_secs(2),
            compaction: Some(Compaction::default()),
            follow_every: None,
            remembered: None,
        }
    }

    /// Refuses unusable settings, before anything is sent.
    pub(super) fn check(&self) -> Result<(), OpenError> {
        let refuse = |setting, reason: &str| Err(OpenError::Setting { setting, reason: reason.to_owned() });
        if self.endpoints.is_empty() {
            return refuse("endpoints", "there are none; name at least one, like https://host:2379");
        }
        if self.prefix.len() > MAX_PREFIX_BYTES {
            return refuse("prefix", "it is longer than 256 bytes; use a shorter one");
        }
        if COMPACTION_KEY.as_bytes().starts_with(&self.prefix) {
            return refuse(
                "prefix",
                "it would hold the key bellwether-compaction; use another, like /bellwether",
            );
        }
        if self.deadline.is_zero() || self.probe_every.is_zero() {
            return refuse("deadline and probe", "must be over 0; use a few seconds");
        }
        if self.compaction.is_some_and(|schedule| schedule.every.is_zero()) {
            return refuse("compaction", "must be over 0; use a few minutes");
        }
        Ok(())
    }
}
