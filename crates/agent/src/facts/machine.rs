//! Facts of the machine itself: operating system, kernel, processors and memory.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::value::{MachineFacts, gib, line, shown};

/// The facts of the machine whose file system begins at `root`; what cannot be read is absent.
pub(super) fn read(root: &Path) -> MachineFacts {
    let release = ["etc/os-release", "usr/lib/os-release"];
    let release = release.iter().find_map(|path| fs::read_to_string(root.join(path)).ok());
    let release = release.unwrap_or_default();
    let text = |text: Option<String>| text.map(Value::from);
    let facts = [
        ("os", text(assigned(&release, "ID"))),
        ("os_version", text(assigned(&release, "VERSION_ID"))),
        ("arch", text(shown(&rustix::system::uname().machine().to_string_lossy()))),
        ("kernel", text(line(&root.join("proc/sys/kernel/osrelease")))),
        ("hostname", text(line(&root.join("proc/sys/kernel/hostname")))),
        ("cpus", cpus(root).map(Value::from)),
        ("memory_gib", memory(root)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The value of a variable in an os-release file, without its quotes.
fn assigned(release: &str, name: &str) -> Option<String> {
    let mut lines = release.lines().filter_map(|line| line.trim().split_once('='));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    shown(value.trim_matches(['"', '\'']))
}

/// The number of processors that are online, such as of `0-3,6`.
fn cpus(root: &Path) -> Option<u64> {
    let online = line(&root.join("sys/devices/system/cpu/online"))?;
    let counts = online.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    counts.sum()
}

fn memory(root: &Path) -> Option<Value> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    gib(total.trim().strip_suffix("kB")?.trim().parse().ok()?)
}
