//! The devices of this node that it offers to ensembles: found by serial number or by name, and looked at without being changed. One counts as
//! free only if no look finds anything: a signature, a partition, a holder, a mount, or somebody who has it open.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::local::osd::{OsdDevice, OsdLabel};
use bellwether_core::records::osd::{DeviceReport, MAX_NODE_DEVICES};
use bellwether_core::words::name::DeviceSerial;
use rustix::fs::{OFlags, major, minor};
use serde_json::Value;

use crate::apply::CommandFacts;
use crate::apply::answer::answer;
use crate::config::ensembles::OfferedDevices;
use crate::config::recipe::Command;
use crate::disk;

/// Longest time for a look at a device: one that fails takes its time for each read.
const CALL: Duration = Duration::from_secs(30);

/// Most bytes of an answer.
const MAX_BYTES: usize = 1024 * 1024;

/// Where the kernel tells of devices.
const SYS: &str = "/sys/dev/block";

/// Prints what is on a device, and how that went: that nothing is there is an exit code.
const PROBE: &str = "blkid -p -o export \"$1\"; echo \"exit=$?\"";

/// What there is of an OSD on a device, and what else is.
#[derive(Debug)]
pub(super) struct Devices<'a> {
    pub(super) offered: &'a OfferedDevices,
    pub(super) bluestore_tool: &'a str,
    pub(super) facts: &'a CommandFacts,
}

impl Devices<'_> {
    /// All that this node offers.
    ///
    /// # Errors
    /// Why they cannot be looked at, in words that fit after "cannot ".
    pub(super) async fn report(&self) -> Result<BTreeMap<DeviceSerial, DeviceReport>, String> {
        let mut reports = BTreeMap::new();
        for (serial, paths) in self.all().await?.into_iter().take(MAX_NODE_DEVICES) {
            let Some(path) = paths.first() else { continue };
            let mut used_by = match self.used_by(path).await {
                Ok(used_by) => used_by,
                Err(error) => vec![format!("something that cannot be looked at: cannot {error}")],
            };
            if paths.len() > 1 {
                used_by.insert(0, format!("the same serial number as on {}", shown(paths.iter().skip(1))));
            }
            let bytes = size(path).unwrap_or_default();
            let path = path.display().to_string();
            reports.insert(serial, DeviceReport { path, bytes, used_by });
        }
        // A path that is mistyped is not one that is not offered.
        for (name, path) in self.offered.paths.iter().take(MAX_NODE_DEVICES.saturating_sub(reports.len())) {
            let absent = || DeviceReport {
                path: path.display().to_string(),
                bytes: 0,
                used_by: vec!["no device is there".to_owned()],
            };
            reports.entry(name.clone()).or_insert_with(absent);
        }
        Ok(reports)
    }

    /// A device, as it is now, with its path.
    pub(super) async fn look(&self, serial: &DeviceSerial) -> (OsdDevice, Option<PathBuf>) {
        let all = match self.all().await {
            Ok(all) => all,
            Err(error) => return (OsdDevice::Unknown(format!("cannot {error}")), None),
        };
        let paths = all.get(serial).map(Vec::as_slice).unwrap_or_default();
        let [path] = paths else {
            let names = paths.iter().map(|path| path.display().to_string()).collect();
            return (if paths.is_empty() { OsdDevice::Absent } else { OsdDevice::Several(names) }, None);
        };
        let device = match self.used_by(path).await {
            Err(error) => OsdDevice::Unknown(format!("cannot {error}")),
            Ok(used_by) if used_by.is_empty() => OsdDevice::Empty,
            Ok(used_by) if used_by.iter().any(|of| of == BLUESTORE) => match self.label(path).await {
                Ok(label) => OsdDevice::Labelled(label),
                Err(error) => OsdDevice::Unknown(format!("cannot {error}")),
            },
            Ok(used_by) => OsdDevice::Used(used_by),
        };
        (device, Some(path.clone()))
    }

    /// The paths of all devices that are offered; of one serial number there may be several.
    async fn all(&self) -> Result<BTreeMap<DeviceSerial, Vec<PathBuf>>, String> {
        let mut all: BTreeMap<DeviceSerial, Vec<PathBuf>> = BTreeMap::new();
        for (name, path) in &self.offered.paths {
            // One that is not there is absent, whatever its name is.
            if let Ok(path) = fs::canonicalize(path) {
                all.entry(name.clone()).or_default().push(path);
            }
        }
        if !self.offered.has_serials() {
            return Ok(all);
        }
        let argv = ["lsblk", "--json", "--nodeps", "--paths", "--output", "PATH,SERIAL,TYPE"];
        let listed = self.call(argv.map(str::to_owned).into()).await;
        let listed = listed.map_err(|error| format!("list devices with lsblk: {error}"))?;
        let listed: Value =
            serde_json::from_slice(&listed).map_err(|error| format!("read what lsblk wrote: {error}"))?;
        for device in listed.get("blockdevices").and_then(Value::as_array).into_iter().flatten() {
            let text = |field: &str| device.get(field).and_then(Value::as_str);
            let serial = text("serial").and_then(|serial| serial.trim().parse::<DeviceSerial>().ok());
            let Some((serial, path)) = serial.zip(text("path")).filter(|_| text("type") == Some("disk"))
            else {
                continue;
            };
            if self.offered.has(&serial) {
                all.entry(serial).or_default().push(path.into());
            }
        }
        Ok(all)
    }

    /// What is on a device, or has it; nothing if it is free.
    async fn used_by(&self, path: &Path) -> Result<Vec<String>, String> {
        let mut used = held(path).map_err(|error| format!("look at {}: {error}", path.display()))?;
        let signatures = self.signatures(path).await?;
        let is_bluestore = signatures.iter().any(|of| of == BLUESTORE);
        used.extend(signatures);
        // Its OSD has it open for itself.
        if !is_bluestore && used.is_empty() && is_busy(path) {
            used.push("a program or a driver that has it open for itself".to_owned());
        }
        Ok(used)
    }

    /// The signatures on a device.
    async fn signatures(&self, path: &Path) -> Result<Vec<String>, String> {
        let argv = ["sh", "-c", PROBE, "sh", &path.display().to_string()].map(str::to_owned);
        let written = self.call(argv.into()).await;
        let written = written.map_err(|error| format!("look at {} with blkid: {error}", path.display()))?;
        signatures(&String::from_utf8_lossy(&written))
            .map_err(|code| format!("look at {} with blkid: exit code {code}", path.display()))
    }

    /// The label of an OSD on a device.
    async fn label(&self, path: &Path) -> Result<OsdLabel, String> {
        let shown = path.display().to_string();
        let argv = [self.bluestore_tool, "show-label", "--dev", &shown].map(str::to_owned);
        let written = self.call(argv.into()).await;
        let written = written.map_err(|error| format!("read the label on {shown}: {error}"))?;
        let labels: Value = serde_json::from_slice(&written)
            .map_err(|error| format!("read the label on {shown}: {error}"))?;
        label(&labels).ok_or_else(|| format!("read the label on {shown}: it names no OSD"))
    }

    async fn call(&self, argv: Vec<String>) -> Result<Vec<u8>, String> {
        let command = Command { argv, workdir: "/".into(), env: BTreeMap::new(), stdin: None };
        answer(&command, self.facts, CALL, MAX_BYTES).await
    }
}

/// The signature of an OSD's data.
pub(super) const BLUESTORE: &str = "ceph_bluestore";

/// What `blkid` says of a device, before how it ended.
fn signatures(written: &str) -> Result<Vec<String>, String> {
    let value = |name: &str| written.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    // The shell's own line is the last one, whatever a label on the device says.
    match written.lines().next_back().and_then(|line| line.strip_prefix("exit=")) {
        Some("2") => Ok(Vec::new()),
        Some("0") => {
            let kind = |name: &str| value(name).map(str::to_owned);
            let table = value("PTTYPE").map(|kind| format!("a partition table, {kind}"));
            let found: Vec<String> = kind("TYPE").into_iter().chain(table).collect();
            Ok(if found.is_empty() { vec!["a signature that is not known".to_owned()] } else { found })
        }
        Some("8") => Ok(vec!["signatures of several kinds".to_owned()]),
        code => Err(code.unwrap_or("unknown").to_owned()),
    }
}

/// The label of an OSD, of the only device that was asked for. What is not whole yet has no store and no number, and is of whom its id says.
fn label(labels: &Value) -> Option<OsdLabel> {
    let label = labels.as_object()?.values().next()?;
    let text = |field: &str| label.get(field).and_then(Value::as_str);
    let number = text("whoami").and_then(|number| number.parse().ok());
    Some(OsdLabel {
        fsid: text("ceph_fsid").unwrap_or_default().to_owned(),
        uuid: text("osd_uuid")?.to_owned(),
        number: number.unwrap_or_default(),
        is_whole: number.is_some() && text("ceph_fsid").is_some() && text("ready") == Some("ready"),
    })
}

/// What the kernel says of who has a device.
fn held(path: &Path) -> io::Result<Vec<String>> {
    let metadata = fs::metadata(path)?;
    if !metadata.file_type().is_block_device() {
        return Ok(vec!["something else than a device".to_owned()]);
    }
    let (major, minor) = (major(metadata.rdev()), minor(metadata.rdev()));
    let sys = PathBuf::from(format!("{SYS}/{major}:{minor}"));
    let mut held = Vec::new();
    let mut partitions = BTreeSet::new();
    for entry in fs::read_dir(&sys)? {
        let entry = entry?;
        if entry.path().join("partition").is_file() {
            partitions.insert(format!("{}", entry.file_name().display()));
        }
    }
    if !partitions.is_empty() {
        held.push(format!("partitions: {}", partitions.into_iter().collect::<Vec<_>>().join(", ")));
    }
    for holder in fs::read_dir(sys.join("holders"))? {
        held.push(format!("{} above it", holder?.file_name().display()));
    }
    let mounts = disk::read(Path::new("/proc/self/mountinfo"))?.unwrap_or_default();
    let number = format!("{major}:{minor}");
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(2);
        (words.next() == Some(&number)).then(|| words.nth(1))?
    });
    held.extend(mounted.map(|at| format!("a file system that is mounted at {at}")));
    let word = |name: &str| disk::read(&sys.join(name)).map(|text| text.map(|text| text.trim().to_owned()));
    if word("ro")?.as_deref() == Some("1") {
        held.push("write protection".to_owned());
    }
    if word("size")?.as_deref() == Some("0") {
        held.push("no medium".to_owned());
    }
    Ok(held)
}

/// Whether somebody has a device for himself, as of a file system that is mounted, or a driver.
fn is_busy(path: &Path) -> bool {
    let flags = i32::try_from(OFlags::EXCL.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path).is_err()
}

/// The size of a device in bytes.
fn size(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    let (major, minor) = (major(metadata.rdev()), minor(metadata.rdev()));
    let text = disk::read(Path::new(&format!("{SYS}/{major}:{minor}/size")))?.unwrap_or_default();
    // In sectors of 512 bytes, whatever those of the device are.
    text.trim().parse::<u64>().map(|sectors| sectors.saturating_mul(512)).map_err(io::Error::other)
}

fn shown<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_exit_code_for_nothing_found_says_that_a_device_is_free() {
        assert_eq!(signatures("exit=2\n"), Ok(vec![]));
        assert_eq!(
            signatures("DEVNAME=/dev/loop0\nTYPE=ext4\nUSAGE=filesystem\nexit=0\n"),
            Ok(vec!["ext4".to_owned()])
        );
        assert_eq!(signatures("PTTYPE=gpt\nexit=0\n"), Ok(vec!["a partition table, gpt".to_owned()]));
        assert_eq!(signatures("exit=0\n").unwrap().len(), 1, "it found something");
        assert_eq!(signatures("exit=8\n").unwrap().len(), 1, "it found too much");
        let forged = signatures("LABEL=a\nexit=2\nTYPE=ext4\nexit=0\n");
        assert_eq!(forged, Ok(vec!["ext4".to_owned()]), "a label says nothing of how it went");
        for bad in ["", "exit=4\n", "exit=127\n", "sh: blkid: not found\nexit=127\n"] {
            assert!(signatures(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_label_is_whole_once_it_says_so() {
        let half = json!({"/dev/loop0": {"osd_uuid": "u", "size": 5}});
        let read = label(&half).unwrap();
        assert!(read.uuid == "u" && !read.is_whole, "{read:?}");
        let whole =
            json!({"/dev/loop0": {"osd_uuid": "u", "ceph_fsid": "f", "ready": "ready", "whoami": "3"}});
        let read = label(&whole).unwrap();
        assert!(read.is_whole && read.number == 3 && read.fsid == "f", "{read:?}");
        assert_eq!(label(&json!({})), None);
    }

    #[test]
    fn what_is_no_device_is_never_free() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(held(home.path()).unwrap(), ["something else than a device"]);
        assert!(held(&home.path().join("none")).is_err());
    }
}
