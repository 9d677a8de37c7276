//! The service agent that runs the members of an ensemble, with its settings.

use std::collections::BTreeSet;

use bellwether_core::records::ensemble as core;
use bellwether_core::records::osd::{MAX_DEVICES, MAX_REPLICAS, REPLICAS};
use bellwether_core::words::name::SecretName;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, some_object};

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
    /// Ceph: monitors, and OSDs on the devices that are named, with these settings.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub ceph: Option<CephSpec>,
    /// A program that each node's agent supervises.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub process: Option<ProcessSpec>,
    /// A unit of systemd.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub systemd: Option<SystemdSpec>,
    /// Executables of each node that start it, stop it and tell how it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub exec: Option<ExecSpec>,
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
    /// Names of secrets of the namespace whose values are passwords of clients, at most 2: the present one, and the one before or after it. Default
    /// none: clients need no password.
    #[schema(example = json!(["cache/password"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub password_secrets: Vec<String>,
}

/// Settings of Ceph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CephSpec {
    /// Port of the monitors, for clients and each other. Default 3300.
    #[schema(example = 3300)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// Copies of each object in a pool that is made without a number of its own, 1 to 10. Default 3.
    #[schema(example = 3)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Serial numbers of the devices that may be taken, each for an OSD, on whichever node that matches it is found; at most 256. A device is
    /// overwritten if nothing is on it, and only then. Default none.
    #[schema(example = json!(["S3YJNX0M701234"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

/// A program of each node, which the node's agent supervises.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessSpec {
    /// Name of the program in `[ensembles.programs]` of the agents. A node that does not have it gets no member.
    #[schema(example = "web")]
    pub program: String,
    /// Port for clients, on which it listens once it works. Default: it has none, and works while it runs.
    #[schema(example = 8080)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
}

/// A unit of systemd of each node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemdSpec {
    /// Name of the unit, or of a template (`NAME@.service`) of which each member is an instance. A node whose agent does not list it in
    /// `units` of `[ensembles]` gets no member.
    #[schema(example = "web@.service")]
    pub unit: String,
    /// Port for clients, on which it listens once it works. Default: it has none, and works while the unit is active.
    #[schema(example = 8080)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
}

/// Executables of each node that start it, stop it and tell how it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecSpec {
    /// Name of the directory with them, below `service_agents` in `[ensembles]` of the agents. A node that does not have it gets no member.
    #[schema(example = "postgres")]
    pub agent: String,
    /// Port for clients. Default: it has none.
    #[schema(example = 5432)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
}

impl From<&core::EnsembleService> for ServiceAgentSpec {
    fn from(from: &core::EnsembleService) -> Self {
        let none = Self::default();
        match from {
            core::EnsembleService::Etcd(etcd) => Self {
                etcd: Some(EtcdSpec {
                    client_port: Some(etcd.client_port.into()),
                    peer_port: Some(etcd.peer_port.into()),
                    tls: Some(etcd.tls),
                }),
                ..none
            },
            core::EnsembleService::Redis(redis) => Self {
                redis: Some(RedisSpec {
                    port: Some(redis.port.into()),
                    min_replicas_to_write: Some(redis.min_replicas),
                    tls: Some(redis.tls),
                    password_secrets: redis.password_secrets.iter().map(ToString::to_string).collect(),
                }),
                ..none
            },
            core::EnsembleService::Independent(independent) => {
                let port = independent.port.map(u32::from);
                match &independent.workload {
                    core::Workload::Process(name) => {
                        Self { process: Some(ProcessSpec { program: name.to_string(), port }), ..none }
                    }
                    core::Workload::Systemd(unit) => {
                        Self { systemd: Some(SystemdSpec { unit: unit.to_string(), port }), ..none }
                    }
                    core::Workload::Exec(name) => {
                        Self { exec: Some(ExecSpec { agent: name.to_string(), port }), ..none }
                    }
                }
            }
            core::EnsembleService::Ceph(ceph) => {
                let devices = ceph.devices.iter().map(ToString::to_string).collect();
                let (port, replicas) = (Some(ceph.port.into()), Some(ceph.replicas));
                Self { ceph: Some(CephSpec { port, replicas, devices }), ..none }
            }
        }
    }
}

impl ServiceAgentSpec {
    /// Name of the service agent; `None` if none is named.
    #[must_use]
    pub fn kind(&self) -> Option<&'static str> {
        self.kinds().next()
    }

    fn kinds(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("etcd", self.etcd.is_some()),
            ("redis", self.redis.is_some()),
            ("ceph", self.ceph.is_some()),
            ("process", self.process.is_some()),
            ("systemd", self.systemd.is_some()),
            ("exec", self.exec.is_some()),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name)
    }

    /// The service agent with its settings.
    pub(super) fn read(&self) -> Result<core::EnsembleService, ShapeError> {
        let mut kinds = self.kinds();
        if let (Some(one), Some(other)) = (kinds.next(), kinds.next()) {
            let reason = format!("{one} and {other} exclude each other: write one of them");
            return Err(ShapeError::at("service", reason));
        }
        let Self { etcd, redis, ceph, process, systemd, exec } = self;
        if let Some(etcd) = etcd {
            return Ok(core::EnsembleService::Etcd(etcd.read()?));
        }
        if let Some(redis) = redis {
            return Ok(core::EnsembleService::Redis(redis.read()?));
        }
        if let Some(ceph) = ceph {
            return Ok(core::EnsembleService::Ceph(ceph.read()?));
        }
        let independent = process
            .as_ref()
            .map(ProcessSpec::read)
            .or_else(|| systemd.as_ref().map(SystemdSpec::read))
            .or_else(|| exec.as_ref().map(ExecSpec::read));
        match independent {
            Some(settings) => Ok(core::EnsembleService::Independent(settings?)),
            None => Err(ShapeError::at(
                "service",
                "missing; write the service agent that runs the members: etcd, redis, ceph, process, systemd or exec",
            )),
        }
    }
}

impl ProcessSpec {
    fn read(&self) -> Result<core::IndependentSettings, ShapeError> {
        let program = read("service.process.program", &self.program)?;
        let port = some_port("service.process.port", self.port)?;
        Ok(core::IndependentSettings { workload: core::Workload::Process(program), port })
    }
}

impl SystemdSpec {
    fn read(&self) -> Result<core::IndependentSettings, ShapeError> {
        let unit = read("service.systemd.unit", &self.unit)?;
        let port = some_port("service.systemd.port", self.port)?;
        Ok(core::IndependentSettings { workload: core::Workload::Systemd(unit), port })
    }
}

impl ExecSpec {
    fn read(&self) -> Result<core::IndependentSettings, ShapeError> {
        let agent = read("service.exec.agent", &self.agent)?;
        let port = some_port("service.exec.port", self.port)?;
        Ok(core::IndependentSettings { workload: core::Workload::Exec(agent), port })
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
        let tls = self.tls.unwrap_or(true);
        Ok(core::RedisSettings { port, min_replicas, tls, password_secrets: self.secrets()? })
    }

    fn secrets(&self) -> Result<Vec<SecretName>, ShapeError> {
        let place = "service.redis.password_secrets";
        let names = self.password_secrets.iter().map(|name| read(place, name));
        let names: Vec<SecretName> = names.collect::<Result<_, ShapeError>>()?;
        let is_twice = names.iter().collect::<BTreeSet<_>>().len() < names.len();
        if names.len() > core::MAX_PASSWORD_SECRETS || is_twice {
            let reason = format!("write {} different secrets at most", core::MAX_PASSWORD_SECRETS);
            return Err(ShapeError::at(place, reason));
        }
        Ok(names)
    }
}

impl CephSpec {
    fn read(&self) -> Result<core::CephSettings, ShapeError> {
        let replicas = self.replicas.unwrap_or(REPLICAS);
        if !(1..=MAX_REPLICAS).contains(&replicas) {
            let reason = format!("{replicas}; write 1 to {MAX_REPLICAS}");
            return Err(ShapeError::at("service.ceph.replicas", reason));
        }
        let devices = self.devices.iter().map(|serial| read("service.ceph.devices", serial));
        let devices: BTreeSet<_> = devices.collect::<Result<_, ShapeError>>()?;
        if devices.len() > MAX_DEVICES {
            let reason = format!("there are {}; write {MAX_DEVICES} at most", devices.len());
            return Err(ShapeError::at("service.ceph.devices", reason));
        }
        let port = port("service.ceph.port", self.port, core::CEPH_PORT)?;
        Ok(core::CephSettings { port, replicas, devices })
    }
}

fn port(place: &str, port: Option<u32>, default: u16) -> Result<u16, ShapeError> {
    Ok(some_port(place, port)?.unwrap_or(default))
}

fn some_port(place: &str, port: Option<u32>) -> Result<Option<u16>, ShapeError> {
    let Some(number) = port else { return Ok(None) };
    let read = u16::try_from(number).ok().filter(|port| *port > 0);
    read.map(Some).ok_or_else(|| ShapeError::at(place, format!("{number}; write 1 to {}", u16::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<core::EnsembleService, String> {
        let spec: ServiceAgentSpec = serde_json::from_str(text).map_err(|error| error.to_string())?;
        spec.read().map_err(|error| error.to_string())
    }

    #[test]
    fn each_service_agent_reads_back_as_it_was_written() {
        for text in [
            r#"{"etcd":{"client_port":1,"peer_port":2,"tls":false}}"#,
            r#"{"redis":{"port":1,"min_replicas_to_write":2,"tls":true}}"#,
            r#"{"redis":{"port":1,"min_replicas_to_write":2,"tls":true,"password_secrets":["a/b","c"]}}"#,
            r#"{"ceph":{"port":3300,"replicas":2,"devices":["S1","S2"]}}"#,
            r#"{"process":{"program":"web"}}"#,
            r#"{"systemd":{"unit":"web@.service","port":80}}"#,
            r#"{"exec":{"agent":"postgres","port":5432}}"#,
        ] {
            let service = read(text).unwrap();
            let written = serde_json::to_string(&ServiceAgentSpec::from(&service)).unwrap();
            assert_eq!(written, text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_field() {
        for (text, expected) in [
            ("{}", "service: missing; write the service agent that runs the members"),
            (r#"{"etcd":{},"exec":{"agent":"a"}}"#, "service: etcd and exec exclude each other"),
            (r#"{"process":{"program":""}}"#, "service.process.program"),
            (r#"{"process":{"program":"web","port":0}}"#, "service.process.port: 0; write 1 to 65535"),
            (r#"{"systemd":{"unit":"a b.service"}}"#, "service.systemd.unit"),
            (r#"{"exec":{"agent":"../a"}}"#, "service.exec.agent"),
            (r#"{"ceph":{"replicas":0}}"#, "service.ceph.replicas: 0; write 1 to 10"),
            (r#"{"ceph":{"devices":["/dev/sda"]}}"#, "service.ceph.devices"),
            (r#"{"redis":{"password_secrets":["a","a"]}}"#, "write 2 different secrets at most"),
            (r#"{"redis":{"password_secrets":["a b"]}}"#, "service.redis.password_secrets"),
            (r#"{"exec":{}}"#, "missing field `agent`"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }
}
