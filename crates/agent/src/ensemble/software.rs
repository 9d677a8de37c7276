//! The software that a member runs.

use std::net::SocketAddr;
use std::path::Path;

use bellwether_core::local::member::{MemberKey, StartWith};
use bellwether_core::words::name::EnsembleName;

use super::ceph::{self, Ceph};
use super::etcd::Etcd;
use super::independent::Independent;
use super::program::lack;
use super::redis::Redis;
use crate::config::ensembles::EnsembleSettings;
use crate::config::recipe::Command;

/// The software that a member runs, at the address of its node.
#[derive(Debug, Clone)]
pub(super) enum Software {
    /// etcd.
    Etcd(Etcd),
    /// A monitor of Ceph.
    Ceph(Ceph),
    /// Redis.
    Redis(Redis),
    /// Something that this node has by itself.
    Independent(Independent),
}

impl Software {
    /// URL at which other members reach it.
    pub(super) fn peer_url(&self) -> String {
        match self {
            Self::Etcd(etcd) => etcd.peer_url(),
            Self::Redis(redis) => redis.peer_url(),
            Self::Independent(independent) => independent.peer_url(),
            Self::Ceph(ceph) => ceph.peer_url(),
        }
    }

    /// Where it serves clients; with port 0 if it does not.
    pub(super) fn client(&self) -> SocketAddr {
        match self {
            Self::Etcd(etcd) => etcd.client(),
            Self::Redis(redis) => redis.client(),
            Self::Independent(independent) => independent.client(),
            Self::Ceph(ceph) => ceph.client(),
        }
    }

    /// What is missing for a start, in words that fit after "waits for "; `None` if nothing is. Not for the runtime's threads.
    pub(super) fn lack(&self, settings: &EnsembleSettings, runs: bool) -> Option<String> {
        // One that runs has its ports.
        let listens = |all: &[SocketAddr]| if runs { Vec::new() } else { all.to_vec() };
        match self {
            Self::Etcd(etcd) => lack(&[("etcd", &settings.etcd)], &listens(&etcd.listens())),
            Self::Redis(redis) => lack(&[("redis", &settings.redis)], &listens(&[redis.client()])),
            Self::Independent(independent) => independent.lack(settings, runs),
            Self::Ceph(ceph) => lack(&ceph::programs(&settings.ceph), &listens(&[ceph.client()])),
        }
    }

    /// The command that starts it; `None` if this node does not have it.
    pub(super) fn command(
        &self,
        (settings, node): (&EnsembleSettings, &str),
        data: &Path,
        of: (&EnsembleName, &MemberKey),
        with: &StartWith,
    ) -> Option<Command> {
        match self {
            Self::Etcd(etcd) => Some(etcd.command(&settings.etcd, data, of, with)),
            Self::Redis(redis) => Some(redis.command(&settings.redis, data)),
            Self::Independent(independent) => independent.command(settings, data, node),
            Self::Ceph(ceph) => Some(ceph.command(&settings.ceph.mon, data)),
        }
    }
}
