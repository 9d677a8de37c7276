//! The software that a member runs.

use std::net::SocketAddr;
use std::path::Path;

use bellwether_core::local::member::{MemberKey, StartWith};
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::words::name::EnsembleName;

use super::ceph::{self, Ceph};
use super::etcd::Etcd;
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
}

/// The name of the program of a service in `[ensembles]`, and the program itself.
pub(super) fn program(service: EnsembleService, settings: &EnsembleSettings) -> (&'static str, &str) {
    match service {
        EnsembleService::Etcd(_) => ("etcd", &settings.etcd),
        EnsembleService::Redis(_) => ("redis", &settings.redis),
        EnsembleService::Ceph(_) => ("ceph_mon", &settings.ceph.mon),
    }
}

/// The programs that a member of a service needs.
pub(super) fn programs(service: EnsembleService, settings: &EnsembleSettings) -> Vec<(&'static str, &str)> {
    match service {
        EnsembleService::Etcd(_) | EnsembleService::Redis(_) => vec![program(service, settings)],
        EnsembleService::Ceph(_) => ceph::programs(&settings.ceph).into(),
    }
}

impl Software {
    /// URL at which other members reach it.
    pub(super) fn peer_url(&self) -> String {
        match self {
            Self::Etcd(etcd) => etcd.peer_url(),
            Self::Redis(redis) => redis.peer_url(),
            Self::Ceph(ceph) => ceph.peer_url(),
        }
    }

    /// Where it serves clients.
    pub(super) fn client(&self) -> SocketAddr {
        match self {
            Self::Etcd(etcd) => etcd.client(),
            Self::Redis(redis) => redis.client(),
            Self::Ceph(ceph) => ceph.client(),
        }
    }

    /// Where it listens.
    pub(super) fn listens(&self) -> Vec<SocketAddr> {
        match self {
            Self::Etcd(etcd) => etcd.listens().into(),
            Self::Redis(redis) => vec![redis.client()],
            Self::Ceph(ceph) => vec![ceph.client()],
        }
    }

    /// The command that starts it.
    pub(super) fn command(
        &self,
        program: &str,
        data: &Path,
        of: (&EnsembleName, &MemberKey),
        with: &StartWith,
    ) -> Command {
        match self {
            Self::Etcd(etcd) => etcd.command(program, data, of, with),
            Self::Redis(redis) => redis.command(program, data),
            Self::Ceph(ceph) => ceph.command(program, data),
        }
    }
}
