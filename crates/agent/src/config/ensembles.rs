//! `[ensembles]`: whether this node runs members of ensembles, with which programs, and where their data are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bellwether_core::words::name::{DeviceSerial, ProgramName, UnitName};
use bellwether_rt::config_error::ConfigError;

use super::command::{CommandDefaults, directory, from_table};
use super::config_path::ConfigPath;
use super::file::EnsemblesTable;
use super::recipe::Command;

/// Where the executables of service agents are, each with a directory of its name.
const SERVICE_AGENTS: &str = "/etc/bellwether/service-agents";

/// In place of serial numbers: all disks that have one.
const ALL_DEVICES: &str = "*";

/// How this node runs members of ensembles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsembleSettings {
    /// The program of etcd; one without `/` is looked up in the `PATH` of commands.
    pub etcd: String,
    /// The program that restores snapshots of etcd; `None` for `etcdutl`, or `etcdctl` where that is not installed.
    pub etcdutl: Option<String>,
    /// The program of Redis; one without `/` is looked up in the `PATH` of commands.
    pub redis: String,
    /// The programs of Ceph.
    pub ceph: CephPrograms,
    /// Where the directories of members are. They belong to the agent.
    pub dir: PathBuf,
    /// The programs that ensembles may have here.
    pub programs: BTreeMap<ProgramName, ProgramRecipe>,
    /// The units that ensembles may have here.
    pub units: BTreeSet<UnitName>,
    /// Where the executables of service agents are.
    pub service_agents: PathBuf,
    /// The devices that ensembles may take here.
    pub devices: OfferedDevices,
}

/// The devices that ensembles may take on this node, if nothing is on them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferedDevices {
    /// Whether all disks with a serial number are.
    pub all: bool,
    /// The serial numbers of disks.
    pub serials: BTreeSet<DeviceSerial>,
    /// Devices that have no serial number, by the names that stand for it.
    pub paths: BTreeMap<DeviceSerial, PathBuf>,
}

impl OfferedDevices {
    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_serials() && self.paths.is_empty()
    }

    /// Whether disks are, by their serial numbers.
    #[must_use]
    pub fn has_serials(&self) -> bool {
        self.all || !self.serials.is_empty()
    }

    /// Whether a disk with this serial number is.
    #[must_use]
    pub fn has(&self, serial: &DeviceSerial) -> bool {
        self.all || self.serials.contains(serial)
    }
}

/// A program that an ensemble may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRecipe {
    /// Its command, with placeholders; without a working directory it is that of the member's data.
    pub command: Command,
    /// The path that is asked for at its port; without one a connection is enough.
    pub http: Option<String>,
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
    /// The OSD.
    pub osd: String,
    /// The program that reads and writes the labels of OSDs on devices.
    pub bluestore_tool: String,
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
    let etcdutl = table.etcdutl.map(|given| program("etcdutl", Some(given), "etcdutl")).transpose()?;
    let redis = program("redis", table.redis, "redis-server")?;
    let ceph = CephPrograms {
        mon: program("ceph_mon", table.ceph_mon, "ceph-mon")?,
        mgr: program("ceph_mgr", table.ceph_mgr, "ceph-mgr")?,
        ceph: program("ceph", table.ceph, "ceph")?,
        monmaptool: program("monmaptool", table.monmaptool, "monmaptool")?,
        osd: program("ceph_osd", table.ceph_osd, "ceph-osd")?,
        bluestore_tool: program("ceph_bluestore_tool", table.ceph_bluestore_tool, "ceph-bluestore-tool")?,
    };
    let dir = table.dir.unwrap_or_else(|| data_dir.join("ensembles"));
    let dir = directory(&dir).map_err(|reason| place.at("dir").refuse(reason))?;
    let mut programs = BTreeMap::new();
    for (name, table) in table.programs {
        let place = place.at(&format!("programs.{name}"));
        let name: ProgramName = name.parse().map_err(|reason| place.refuse(reason))?;
        programs.insert(name, recipe(table).map_err(|reason| place.refuse(reason))?);
    }
    let mut units = BTreeSet::new();
    for unit in table.units {
        units.insert(unit.parse().map_err(|reason| place.at("units").refuse(reason))?);
    }
    let service_agents = table.service_agents.unwrap_or_else(|| SERVICE_AGENTS.into());
    let service_agents =
        directory(&service_agents).map_err(|reason| place.at("service_agents").refuse(reason))?;
    let devices = devices(place, table.devices, table.device_paths)?;
    Ok(EnsembleSettings { etcd, etcdutl, redis, ceph, dir, programs, units, service_agents, devices })
}

/// The devices that are offered.
fn devices(
    place: &ConfigPath<'_>,
    serials: Vec<String>,
    paths: BTreeMap<String, PathBuf>,
) -> Result<OfferedDevices, ConfigError> {
    let mut devices = OfferedDevices::default();
    for serial in serials {
        if serial == ALL_DEVICES {
            devices.all = true;
        } else {
            devices.serials.insert(serial.parse().map_err(|reason| place.at("devices").refuse(reason))?);
        }
    }
    for (name, path) in paths {
        let place = place.at(&format!("device_paths.{name}"));
        if !path.starts_with("/dev") {
            return Err(place.refuse(format!("{} is not a path below /dev", path.display())));
        }
        devices.paths.insert(name.parse().map_err(|reason| place.refuse(reason))?, path);
    }
    Ok(devices)
}

/// A program: a command, and how it is asked whether it works.
fn recipe(mut table: toml::Table) -> Result<ProgramRecipe, String> {
    let http = match table.remove("http") {
        None => None,
        Some(toml::Value::String(path)) if path.starts_with('/') => Some(path),
        Some(other) => return Err(format!("http: {other} is not a path that begins with /")),
    };
    let setting = CommandDefaults { workdir: PathBuf::new(), env: BTreeMap::new() };
    Ok(ProgramRecipe { command: from_table(&table, &setting)?, http })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unwrap_in_result, reason = "only the settings may be refused here")]
    fn read(text: &str) -> Result<EnsembleSettings, ConfigError> {
        let table = toml::from_str(text).expect("it is a table of [ensembles]");
        let place = ConfigPath::new(Path::new("agent.toml"), "ensembles".to_owned());
        ensembles(&place, table, Path::new("/data"))
    }

    #[test]
    fn a_node_says_which_programs_units_and_executables_it_has() {
        let text = r#"
            units = ["proxy@.service"]
            [programs.web]
            argv = ["/usr/bin/web", "{listen}"]
            env = { LOG = "info" }
            http = "/health"
        "#;
        let settings = read(text).unwrap();
        let (name, program) = settings.programs.first_key_value().unwrap();
        assert_eq!((name.as_str(), program.http.as_deref()), ("web", Some("/health")));
        assert_eq!(program.command.workdir, PathBuf::new());
        assert!(settings.units.iter().all(UnitName::is_template));
        assert_eq!(settings.service_agents, Path::new(SERVICE_AGENTS));
        assert_eq!(settings.dir, Path::new("/data/ensembles"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_place() {
        for (text, expected) in [
            ("[programs.Web]\nargv = [\"/usr/bin/web\"]", "programs.Web"),
            ("[programs.web]\nargv = [\"usr/bin/web\"]", "is a relative path"),
            ("[programs.web]\nhttp = \"/\"", "the command has no argv"),
            ("[programs.web]\nargv = [\"/bin/web\"]\nhttp = \"health\"", "is not a path that begins with /"),
            ("[programs.web]\nargv = [\"/bin/web\"]\nuser = \"web\"", "unknown key \"user\""),
            ("units = [\"proxy\"]", "it does not end with .service"),
            ("units = [\"--help.service\"]", "it may not start with"),
            ("service_agents = \"agents\"", "service_agents"),
            ("devices = [\"a b\"]", "devices"),
            (
                "[device_paths]\nd1 = \"/tmp/disk\"",
                "device_paths.d1 in agent.toml: /tmp/disk is not a path below /dev",
            ),
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }
}
