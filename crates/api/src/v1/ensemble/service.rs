//! The service agent that runs the members of an ensemble, with its settings.

use bellwether_core::records::ensemble as core;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, some_object};

/// The service agent that runs the members of an ensemble. Exactly one is named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceAgentSpec {
    /// etcd, with these settings.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub etcd: Option<EtcdSpec>,
    /// Redis, with these settings.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub redis: Option<RedisSpec>,
    /// The monitors of Ceph, with these settings.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub ceph: Option<CephSpec>,
}

/// Settings of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EtcdSpec {
    /// Port for clients. Default 2379.
    #[schema(example = 2379)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_port: Option<u32>,
    /// Port for the other members. Default 2380.
    #[schema(example = 2380)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_port: Option<u32>,
    /// Whether members and clients speak TLS alone, with certificates of the ensemble's own authorities. Default true.
    #[schema(example = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<bool>,
}

/// Settings of Redis.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisSpec {
    /// Port for clients and replicas. Default 6379.
    #[schema(example = 6379)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// How many replicas the primary must have to take writes, 0 to 6; at most all other members. A write that so many replicas have (see
    /// `WAIT` of Redis) is lost by no failover. Default 1.
    #[schema(example = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas_to_write: Option<u32>,
    /// Whether clients and replicas speak TLS alone, with certificates of the ensemble's own authorities. Default true.
    #[schema(example = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<bool>,
}

/// Settings of the monitors of Ceph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CephSpec {
    /// Port for clients and the other monitors. Default 3300.
    #[schema(example = 3300)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
}

impl From<core::EnsembleService> for ServiceAgentSpec {
    fn from(from: core::EnsembleService) -> Self {
        match from {
            core::EnsembleService::Etcd(etcd) => Self {
                etcd: Some(EtcdSpec {
                    client_port: Some(etcd.client_port.into()),
                    peer_port: Some(etcd.peer_port.into()),
                    tls: Some(etcd.tls),
                }),
                ..Self::default()
            },
            core::EnsembleService::Redis(redis) => Self {
                redis: Some(RedisSpec {
                    port: Some(redis.port.into()),
                    min_replicas_to_write: Some(redis.min_replicas),
                    tls: Some(redis.tls),
                }),
                ..Self::default()
            },
            core::EnsembleService::Ceph(ceph) => {
                Self { ceph: Some(CephSpec { port: Some(ceph.port.into()) }), ..Self::default() }
            }
        }
    }
}

impl ServiceAgentSpec {
    /// The service agent with its settings.
    pub(super) fn read(&self) -> Result<core::EnsembleService, ShapeError> {
        match (&self.etcd, &self.redis, &self.ceph) {
            (Some(etcd), None, None) => Ok(core::EnsembleService::Etcd(etcd.read()?)),
            (None, Some(redis), None) => Ok(core::EnsembleService::Redis(redis.read()?)),
            (None, None, Some(ceph)) => Ok(core::EnsembleService::Ceph(ceph.read()?)),
            (None, None, None) => Err(ShapeError::at(
                "service",
                "missing; write the service agent that runs the members: etcd, redis or ceph",
            )),
            (_, _, _) => {
                Err(ShapeError::at("service", "etcd, redis and ceph exclude each other: write one of them"))
            }
        }
    }
}

impl EtcdSpec {
    fn read(&self) -> Result<core::EtcdSettings, ShapeError> {
        let client_port = port("service.etcd.client_port", self.client_port, core::ETCD_CLIENT_PORT)?;
        let peer_port = port("service.etcd.peer_port", self.peer_port, core::ETCD_PEER_PORT)?;
        if client_port == peer_port {
            let reason = format!("{peer_port}; this is the port for clients, too: write another one");
            return Err(ShapeError::at("service.etcd.peer_port", reason));
        }
        Ok(core::EtcdSettings { client_port, peer_port, tls: self.tls.unwrap_or(true) })
    }
}

impl RedisSpec {
    fn read(&self) -> Result<core::RedisSettings, ShapeError> {
        let port = port("service.redis.port", self.port, core::REDIS_PORT)?;
        let min_replicas = self.min_replicas_to_write.unwrap_or(core::MIN_REPLICAS);
        let most = core::MAX_VOTERS - 1;
        if min_replicas > most {
            let reason = format!("{min_replicas}; write 0 to {most}");
            return Err(ShapeError::at("service.redis.min_replicas_to_write", reason));
        }
        Ok(core::RedisSettings { port, min_replicas, tls: self.tls.unwrap_or(true) })
    }
}

impl CephSpec {
    fn read(&self) -> Result<core::CephSettings, ShapeError> {
        Ok(core::CephSettings { port: port("service.ceph.port", self.port, core::CEPH_PORT)? })
    }
}

fn port(place: &str, port: Option<u32>, default: u16) -> Result<u16, ShapeError> {
    let Some(number) = port else { return Ok(default) };
    let read = u16::try_from(number).ok().filter(|port| *port > 0);
    read.ok_or_else(|| ShapeError::at(place, format!("{number}; write 1 to {}", u16::MAX)))
}
