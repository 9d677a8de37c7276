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

impl From<core::EnsembleService> for ServiceAgentSpec {
    fn from(from: core::EnsembleService) -> Self {
        match from {
            core::EnsembleService::Etcd(etcd) => Self {
                etcd: Some(EtcdSpec {
                    client_port: Some(etcd.client_port.into()),
                    peer_port: Some(etcd.peer_port.into()),
                    tls: Some(etcd.tls),
                }),
            },
        }
    }
}

impl ServiceAgentSpec {
    /// The service agent with its settings.
    pub(super) fn read(&self) -> Result<core::EnsembleService, ShapeError> {
        match &self.etcd {
            Some(etcd) => Ok(core::EnsembleService::Etcd(etcd.read()?)),
            None => {
                Err(ShapeError::at("service", "missing; write the service agent that runs the members: etcd"))
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

fn port(place: &str, port: Option<u32>, default: u16) -> Result<u16, ShapeError> {
    let Some(number) = port else { return Ok(default) };
    let read = u16::try_from(number).ok().filter(|port| *port > 0);
    read.ok_or_else(|| ShapeError::at(place, format!("{number}; write 1 to {}", u16::MAX)))
}
