//! `[ensembles]`: whether this node runs members of ensembles, with which programs, and where their data are.

use std::path::{Path, PathBuf};

use bellwether_rt::config_error::ConfigError;

use super::command::directory;
use super::config_path::ConfigPath;
use super::file::EnsemblesTable;

/// How this node runs members of ensembles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsembleSettings {
    /// The program of etcd; one without `/` is looked up in the `PATH` of commands.
    pub etcd: String,
    /// The program of Redis; one without `/` is looked up in the `PATH` of commands.
    pub redis: String,
    /// The programs of Ceph.
    pub ceph: CephPrograms,
    /// Where the directories of members are. They belong to the agent.
    pub dir: PathBuf,
}

/// The programs of Ceph; each without `/` is looked up in the `PATH` of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CephPrograms {
    /// The monitor.
    pub mon: String,
    /// The manager.
    pub mgr: String,
    /// The program that asks and changes a store.
    pub ceph: String,
    /// The program that makes the list of monitors that a new one knows.
    pub monmaptool: String,
}

/// Reads the section.
pub(super) fn ensembles(
    place: &ConfigPath<'_>,
    table: EnsemblesTable,
    data_dir: &Path,
) -> Result<EnsembleSettings, ConfigError> {
    let program = |key: &str, program: Option<String>, default: &str| {
        let program = program.unwrap_or_else(|| default.to_owned());
        if program.is_empty() || (program.contains('/') && !program.starts_with('/')) {
            let reason = format!("{program:?} is neither the name of a program nor an absolute path");
            return Err(place.at(key).refuse(reason));
        }
        Ok(program)
    };
    let etcd = program("etcd", table.etcd, "etcd")?;
    let redis = program("redis", table.redis, "redis-server")?;
    let ceph = CephPrograms {
        mon: program("ceph_mon", table.ceph_mon, "ceph-mon")?,
        mgr: program("ceph_mgr", table.ceph_mgr, "ceph-mgr")?,
        ceph: program("ceph", table.ceph, "ceph")?,
        monmaptool: program("monmaptool", table.monmaptool, "monmaptool")?,
    };
    let dir = table.dir.unwrap_or_else(|| data_dir.join("ensembles"));
    let dir = directory(&dir).map_err(|reason| place.at("dir").refuse(reason))?;
    Ok(EnsembleSettings { etcd, redis, ceph, dir })
}
