use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A root with these files.
fn root(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

const MACHINE: [(&str, &str); 5] = [
    ("etc/os-release", "NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"13\"\nID_LIKE=x\n"),
    ("proc/sys/kernel/osrelease", "6.12.1\n"),
    ("proc/sys/kernel/hostname", "web-1\n"),
    ("proc/meminfo", "MemTotal:       24684084 kB\nMemFree:        21163064 kB\n"),
    ("sys/devices/system/cpu/online", "0-3,6,8-9\n"),
];

#[test]
fn a_machine_is_described_by_its_files() {
    let dir = root(&MACHINE);
    let mut facts = read(dir.path());
    assert!(facts.remove("arch").is_some());
    let expected = json!({
        "os": "debian", "os_version": "13", "kernel": "6.12.1", "hostname": "web-1",
        "cpus": 7, "memory_gib": 23.5, "disks": [],
    });
    assert_eq!(json!(facts), expected);
}

#[test]
fn what_cannot_be_read_is_absent() {
    let dir = root(&[
        ("usr/lib/os-release", "ID='alpine'\nVERSION_ID=\n"),
        ("proc/meminfo", "nothing"),
        ("sys/devices/system/cpu/online", "3-1"),
    ]);
    let mut facts = read(dir.path());
    assert!(facts.remove("arch").is_some());
    assert_eq!(json!(facts), json!({"os": "alpine", "disks": []}));
}

#[test]
fn disks_are_those_with_hardware_and_their_emptiness_is_never_guessed() {
    let mut files = Vec::new();
    let names = ["sda", "sdb", "sdc", "sdd", "sde", "sdf", "nvme0n1", "sr0", "loop0", "zram0", "dm-0", "sdz"];
    for (number, name) in names.iter().enumerate() {
        let size = if *name == "sdz" { "0" } else { "209715200" };
        files.push((format!("sys/block/{name}/size"), format!("{size}\n")));
        files.push((format!("sys/block/{name}/dev"), format!("8:{number}\n")));
        files.push((format!("sys/block/{name}/queue/rotational"), "1\n".to_owned()));
        if !["loop0", "zram0", "dm-0"].contains(name) {
            files.push((format!("sys/block/{name}/device/model"), format!("Disk \u{7} {name}   \n")));
        }
    }
    let more = [
        ("sys/block/sda/sda1/partition", "1\n"),
        ("sys/block/sdb/holders/dm-0", ""),
        ("proc/self/mounts", "/dev/sdc /data ext4 rw 0 0\n/dev/sda1 / ext4 rw 0 0\n"),
        ("run/udev/data/b8:3", "I:123\nE:ID_FS_TYPE=ext4\n"),
        ("run/udev/data/b8:4", "I:123\nE:ID_BUS=ata\n"),
        ("run/udev/data/b8:5", "E:ID_BUS=ata\n"),
    ];
    files.extend(more.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let dir = root(&files);
    let disks = disks::read(dir.path());
    let empty = |name: &str| {
        let disk = disks.as_array().unwrap().iter().find(|disk| disk["name"] == name).unwrap();
        disk.get("empty").map(|empty| empty.as_bool().unwrap())
    };
    assert_eq!(disks.as_array().unwrap().len(), 7, "{disks}");
    for (name, expected) in [
        ("sda", Some(false)),
        ("sdb", Some(false)),
        ("sdc", Some(false)),
        ("sdd", Some(false)),
        ("sde", Some(true)),
        ("sdf", None),
        ("nvme0n1", None),
    ] {
        assert_eq!(empty(name), expected, "{name}");
    }
    let disk = json!({
        "name": "nvme0n1", "path": "/dev/nvme0n1", "size_bytes": 107_374_182_400_u64, "size_gib": 100,
        "model": "Disk  nvme0n1", "rotational": true,
    });
    assert_eq!(disks[0], disk);
}

#[test]
fn this_machine_has_processors_memory_and_a_kernel() {
    let facts = read(Path::new("/"));
    assert!(facts["cpus"].as_u64().unwrap() >= 1);
    assert!(facts["memory_gib"].as_f64().unwrap() > 0.1);
    assert_eq!(facts["arch"], std::env::consts::ARCH);
    assert!(facts["kernel"].as_str().unwrap().starts_with(|first: char| first.is_ascii_digit()));
    let shape = bellwether_api::v1::facts::NodeFacts {
        node: "web-1".to_owned(),
        rescan: 0,
        received_at_ms: 0,
        facts,
    };
    bellwether_core::records::facts::NodeFacts::try_from(shape).unwrap();
}
