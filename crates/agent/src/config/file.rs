//! The configuration files as written: their tables, and how several files are merged.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_rt::config_error::ConfigError;
use serde::Deserialize;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    agent: Option<AgentTable>,
    #[serde(default)]
    entity: BTreeMap<String, EntityTable>,
    #[serde(default)]
    action: BTreeMap<String, ActionTable>,
    #[serde(default)]
    probe: BTreeMap<String, ProbeTable>,
    #[serde(default)]
    service: Vec<ServiceDefinition>,
    #[serde(default)]
    file: Vec<CatalogueFileTable>,
    dns: Option<DnsTable>,
    http: Option<HttpTable>,
    ensembles: Option<EnsemblesTable>,
}

/// `[ensembles]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnsemblesTable {
    pub(super) etcd: Option<String>,
    pub(super) etcdutl: Option<String>,
    pub(super) redis: Option<String>,
    pub(super) ceph_mon: Option<String>,
    pub(super) ceph_mgr: Option<String>,
    pub(super) ceph: Option<String>,
    pub(super) monmaptool: Option<String>,
    pub(super) ceph_osd: Option<String>,
    pub(super) ceph_bluestore_tool: Option<String>,
    #[serde(default)]
    pub(super) devices: Vec<String>,
    #[serde(default)]
    pub(super) device_paths: BTreeMap<String, PathBuf>,
    pub(super) dir: Option<PathBuf>,
    #[serde(default)]
    pub(super) programs: BTreeMap<String, toml::Table>,
    #[serde(default)]
    pub(super) units: Vec<String>,
    pub(super) service_agents: Option<PathBuf>,
}

/// `[agent]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentTable {
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) server: Option<toml::Value>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) services_on_exit: Option<String>,
    pub(super) tasks: Option<String>,
    #[serde(default)]
    pub(super) hosts_logical: bool,
    pub(super) reboot_command: Option<Vec<String>>,
    pub(super) poweroff_command: Option<Vec<String>>,
    pub(super) service_dir: Option<PathBuf>,
    pub(super) cgroup: Option<PathBuf>,
    pub(super) addresses: Option<BTreeMap<String, Vec<IpAddr>>>,
}

/// `[dns]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DnsTable {
    pub(super) listen: Option<Vec<String>>,
    pub(super) domain: Option<String>,
    pub(super) datacentre: Option<String>,
    pub(super) ttl: Option<String>,
    pub(super) negative_ttl: Option<String>,
    #[serde(default)]
    pub(super) forward: Vec<String>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) answers_per_second: Option<u32>,
}

/// `[http]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpTable {
    pub(super) listen: Option<Vec<String>>,
    #[serde(default)]
    pub(super) allow_remote: bool,
    pub(super) datacentre: Option<String>,
    #[serde(default)]
    pub(super) hosts: Vec<String>,
}

/// `[entity.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntityTable {
    pub(super) r#static: Option<toml::Value>,
    pub(super) dynamic: Option<toml::Value>,
    pub(super) validate: Option<toml::Value>,
    pub(super) validate_every: Option<String>,
    #[serde(default)]
    pub(super) needs: Vec<toml::Value>,
    #[serde(default)]
    pub(super) follows: Vec<String>,
    #[serde(default)]
    pub(super) from_start: bool,
    pub(super) timeout: Option<String>,
    pub(super) workdir: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) memory_max: Option<String>,
    pub(super) cpu_quota: Option<String>,
    pub(super) nofile: Option<u64>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) process: Option<ProcessTable>,
    #[serde(default)]
    pub(super) check: Vec<CheckTable>,
    #[serde(default)]
    pub(super) file: Vec<ManagedFileTable>,
    pub(super) action: Option<String>,
}

/// `[[entity.NAME.file]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManagedFileTable {
    pub(super) path: PathBuf,
    pub(super) template: Option<PathBuf>,
    pub(super) text: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) check: Option<Vec<String>>,
    pub(super) reload: Option<Vec<String>>,
}

/// `[[file]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CatalogueFileTable {
    pub(super) path: PathBuf,
    pub(super) format: Option<String>,
    pub(super) template: Option<PathBuf>,
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) services: Vec<String>,
    pub(super) level: Option<String>,
    #[serde(default)]
    pub(super) required: Vec<String>,
    pub(super) mode: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) check: Option<Vec<String>>,
    pub(super) reload: Option<Vec<String>>,
    pub(super) timeout: Option<String>,
    pub(super) debounce: Option<String>,
    #[serde(default)]
    pub(super) before: Vec<String>,
}

/// `[action.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionTable {
    pub(super) run: Vec<String>,
    pub(super) timeout: Option<String>,
    pub(super) workdir: Option<PathBuf>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) idempotent: bool,
}

/// `[probe.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProbeTable {
    pub(super) etcd: Option<String>,
    pub(super) redis: Option<String>,
    pub(super) sentinel: Option<String>,
    pub(super) postgresql: Option<String>,
    pub(super) zookeeper: Option<String>,
    pub(super) exec: Option<Vec<String>>,
    pub(super) interval: Option<String>,
    pub(super) timeout: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) cert_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) handover: bool,
    pub(super) workdir: Option<PathBuf>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

/// `[entity.NAME.process]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessTable {
    pub(super) argv: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) workdir: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) stop_timeout: Option<String>,
    pub(super) drain_time: Option<String>,
}

/// `[[entity.NAME.check]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckTable {
    pub(super) name: String,
    pub(super) exec: Option<Vec<String>>,
    pub(super) http: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) tcp: Option<String>,
    pub(super) interval: Option<String>,
    pub(super) timeout: Option<String>,
    pub(super) fall: Option<u32>,
    pub(super) rise: Option<u32>,
}

/// The tables of all files, each with the file it is in.
#[derive(Debug, Default)]
pub(super) struct ConfigTables {
    pub(super) agent: Option<(PathBuf, AgentTable)>,
    pub(super) entities: BTreeMap<String, (PathBuf, EntityTable)>,
    pub(super) actions: BTreeMap<String, (PathBuf, ActionTable)>,
    pub(super) probes: BTreeMap<String, (PathBuf, ProbeTable)>,
    pub(super) services: Vec<(PathBuf, ServiceDefinition)>,
    pub(super) files: Vec<(PathBuf, CatalogueFileTable)>,
    pub(super) dns: Option<(PathBuf, DnsTable)>,
    pub(super) http: Option<(PathBuf, HttpTable)>,
    pub(super) ensembles: Option<(PathBuf, EnsemblesTable)>,
}

impl ConfigTables {
    /// Adds the tables of one file.
    pub(super) fn add(&mut self, path: &Path) -> Result<(), ConfigError> {
        let file: ConfigFile = ConfigError::read_toml(path)?;
        let twice = |key: String, other: &Path| ConfigError::Value {
            path: Some(path.to_owned()),
            key,
            reason: format!("it is already in {}; keep one of them", other.display()),
        };
        if let Some(agent) = file.agent {
            if let Some((other, _)) = &self.agent {
                return Err(twice("agent".to_owned(), other));
            }
            self.agent = Some((path.to_owned(), agent));
        }
        self.services.extend(file.service.into_iter().map(|service| (path.to_owned(), service)));
        self.files.extend(file.file.into_iter().map(|one| (path.to_owned(), one)));
        if let Some(dns) = file.dns {
            if let Some((other, _)) = &self.dns {
                return Err(twice("dns".to_owned(), other));
            }
            self.dns = Some((path.to_owned(), dns));
        }
        if let Some(http) = file.http {
            if let Some((other, _)) = &self.http {
                return Err(twice("http".to_owned(), other));
            }
            self.http = Some((path.to_owned(), http));
        }
        if let Some(ensembles) = file.ensembles {
            if let Some((other, _)) = &self.ensembles {
                return Err(twice("ensembles".to_owned(), other));
            }
            self.ensembles = Some((path.to_owned(), ensembles));
        }
        for (name, entity) in file.entity {
            if let Some((other, _)) = self.entities.get(&name) {
                return Err(twice(format!("entity.{name}"), other));
            }
            self.entities.insert(name, (path.to_owned(), entity));
        }
        for (name, action) in file.action {
            if let Some((other, _)) = self.actions.get(&name) {
                return Err(twice(format!("action.{name}"), other));
            }
            self.actions.insert(name, (path.to_owned(), action));
        }
        for (name, probe) in file.probe {
            if let Some((other, _)) = self.probes.get(&name) {
                return Err(twice(format!("probe.{name}"), other));
            }
            self.probes.insert(name, (path.to_owned(), probe));
        }
        Ok(())
    }
}

/// The files of `conf.d` beside `path`, in name order; empty if there is no such directory.
pub(super) fn conf_d(path: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let dir = path.parent().unwrap_or(Path::new(".")).join("conf.d");
    let failed = |source| ConfigError::Read { path: dir.clone(), source };
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
