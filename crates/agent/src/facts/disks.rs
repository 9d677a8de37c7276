//! The disks of the machine: block devices with hardware behind them. Loop devices, memory disks and what the device mapper or
//! a software RAID makes of disks are left out.

use std::fs;
use std::path::Path;

use bellwether_core::words::facts::MAX_FACT_ITEMS;
use serde_json::{Map, Value};

use super::value::{gib, line};

/// Size of the sectors in which the kernel counts, whatever those of the disk are.
const SECTOR_BYTES: u64 = 512;

/// The disks, by name.
pub(super) fn read(root: &Path) -> Value {
    let entries = fs::read_dir(root.join("sys/block")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let used = Used::read(root);
    names.iter().filter_map(|name| disk(root, name, &used)).take(MAX_FACT_ITEMS).collect()
}

/// A disk; `None` for a block device that is none, or that has no medium.
fn disk(root: &Path, name: &str, used: &Used) -> Option<Value> {
    let dir = root.join("sys/block").join(name);
    let is_on = |file: &str| line(&dir.join(file)).is_some_and(|text| text == "1");
    // Optical and floppy drives hold no data of a node; boot areas of memory cards are parts of another device.
    let is_other = ["sr", "fd"].iter().any(|prefix| name.starts_with(prefix)) || name.contains("boot");
    if !dir.join("device").exists() || is_other || is_on("hidden") {
        return None;
    }
    let bytes =
        line(&dir.join("size"))?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES).filter(|size| *size > 0)?;
    // The kernel writes '!' for the '/' in the name of a device.
    let path = format!("/dev/{}", name.replace('!', "/"));
    let rotational = line(&dir.join("queue/rotational")).map(|text| Value::from(text == "1"));
    let members = [
        ("name", Some(Value::from(name))),
        ("size_bytes", Some(Value::from(bytes))),
        ("size_gib", gib(bytes / 1024)),
        ("model", line(&dir.join("device/model")).map(Value::from)),
        ("rotational", rotational),
        ("empty", is_empty(root, &dir, (name, &path), used).map(Value::from)),
        ("path", Some(Value::from(path.as_str()))),
    ];
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Some(Value::Object(members.collect::<Map<_, _>>()))
}

/// Whether a disk holds nothing: no partitions, no file system or other signature, and no user. `None` if that is not known.
fn is_empty(root: &Path, dir: &Path, (name, path): (&str, &str), used: &Used) -> Option<bool> {
    let inside: Vec<_> = fs::read_dir(dir).ok()?.flatten().collect();
    let is_partition = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(name) && entry.path().join("partition").exists()
    };
    let is_held = fs::read_dir(dir.join("holders")).is_ok_and(|mut holders| holders.next().is_some());
    if is_held || used.has(path) || inside.iter().any(is_partition) {
        return Some(false);
    }
    let device = line(&dir.join("dev"))?;
    let probed = fs::read_to_string(root.join(format!("run/udev/data/b{device}"))).ok()?;
    // udev probes a disk when it appears and after each writer closed it, and then writes when it was done.
    let is_done = probed.lines().any(|line| line.starts_with("I:"));
    let has_signature = |line: &str| {
        ["E:ID_FS_TYPE=", "E:ID_FS_USAGE=", "E:ID_PART_TABLE_TYPE="].iter().any(|key| line.starts_with(key))
    };
    is_done.then(|| !probed.lines().any(has_signature))
}

/// Devices that are mounted or used as swap, one a line, with what follows their path.
struct Used(String);

impl Used {
    fn read(root: &Path) -> Self {
        let files = ["proc/self/mounts", "proc/swaps"];
        let texts = files.map(|file| fs::read_to_string(root.join(file)).unwrap_or_default());
        Self(texts.join("\n"))
    }

    fn has(&self, path: &str) -> bool {
        self.0.lines().any(|line| line.split_whitespace().next() == Some(path))
    }
}
