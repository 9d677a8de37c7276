//! The OSDs of a real Ceph, on loop devices of four nodes: each empty device that is named becomes one, and one with a file system is never
//! touched. Capacity grows with devices, a drained node is emptied, and one that a person has removed leaves no object behind.

use std::path::Path;
use std::process::Command;

use bellwether_api::v1::ensemble::osd_reports::SafeToRemove;
use bellwether_api::v1::ensemble::osds::{EnsembleOsd, OsdPhase};

use crate::place::{Setup, done, free_ports, text, wait_for};

const NODES: usize = 4;

/// Files as devices, until the story is over, and where one is mounted.
#[derive(Default)]
struct Loops {
    devices: Vec<String>,
    mounted: Option<String>,
}

impl Loops {
    /// A device of one gigabyte.
    fn add(&mut self, file: &str) -> String {
        let options = std::fs::OpenOptions::new().create(true).append(true).open(file);
        options.unwrap().set_len(1 << 30).unwrap();
        let made = Command::new("losetup").args(["--find", "--show", file]).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let device = text(&made.stdout).trim().to_owned();
        self.devices.push(device.clone());
        device
    }

    /// A device with a file system that is mounted.
    fn mount(&mut self, file: &str) -> String {
        let (device, at) = (self.add(file), format!("{file}.mounted"));
        assert!(Command::new("mkfs.ext4").args(["-q", &device]).status().unwrap().success());
        std::fs::create_dir(&at).unwrap();
        assert!(Command::new("mount").args([&device, &at]).status().unwrap().success());
        self.mounted = Some(at);
        device
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        if let Some(at) = &self.mounted {
            drop(Command::new("umount").arg(at).status());
        }
        for device in &self.devices {
            drop(Command::new("losetup").args(["--detach", device]).status());
        }
    }
}

fn node(number: usize) -> String {
    format!("disk-{number}")
}

fn directory(place: &Setup, node: &str) -> String {
    place.path(&format!("{node}/data/ensembles"))
}

/// An installation with a device for each agent, and on the first node one more, with a file system.
async fn installed(loops: &mut Loops) -> (Setup, String) {
    let mut place = Setup::new().await;
    let used = loops.add(&place.path("used.img"));
    assert!(Command::new("mkfs.ext4").args(["-q", &used]).status().unwrap().success());
    let mounted = loops.mount(&place.path("mounted.img"));
    // A table of one partition, as BIOSes read it.
    let mut table = vec![0; 446];
    table.extend([0x80, 1, 1, 0, 0x83, 1, 1, 9, 0, 8, 0, 0, 0, 0x10, 0, 0]);
    table.extend([0; 48]);
    table.extend([0x55, 0xaa]);
    std::fs::write(place.path("parts.img"), table).unwrap();
    let parts = loops.add(&place.path("parts.img"));
    for number in 1..=NODES {
        let device = loops.add(&place.path(&format!("{number}.img")));
        let more = match number {
            1 => format!(", used = {used:?}, mounted = {mounted:?}, parts = {parts:?}"),
            _ => String::new(),
        };
        let sections = format!(
            "addresses = {{ lo = [\"127.0.39.{number}\"] }}\n\n[ensembles]\ndevice_paths = {{ d-{number} = {device:?}{more} }}\n"
        );
        place.start_agent(&node(number), &sections);
    }
    (place, used)
}

/// What the administrator is answered who works on the node of the monitor; nothing while nobody answers.
fn ceph(place: &Setup, monitor: &str, program: &str, words: &[&str]) -> Option<String> {
    let conf = format!("{}/disks/ceph.conf", directory(place, monitor));
    let mut command = Command::new("timeout");
    let asked = command.args(["30", program, "-c", &conf]).args(words).output().unwrap();
    asked.status.success().then(|| text(&asked.stdout))
}

/// The OSDs, once they are like this.
async fn osds(place: &Setup, what: &str, holds: impl Fn(&[EnsembleOsd]) -> bool) -> Vec<EnsembleOsd> {
    let client = place.client();
    let mut osds = Vec::new();
    wait_for(what, async || {
        osds = client.ensemble("default", "disks").await.unwrap().status.unwrap().osds;
        holds(&osds)
    })
    .await;
    osds
}

fn serving(osds: &[EnsembleOsd]) -> usize {
    osds.iter().filter(|osd| osd.state == OsdPhase::In && osd.is_up == Some(true)).count()
}

/// The processes of OSDs on a node.
fn programs(place: &Setup, node: &str) -> Vec<String> {
    let found =
        Command::new("pgrep").args(["-f", &format!("^ceph-osd .*{}/", directory(place, node))]).output();
    text(&found.unwrap().stdout).lines().map(str::to_owned).collect()
}

fn kill(pids: &[String]) {
    assert!(Command::new("kill").arg("-9").args(pids).status().unwrap().success());
}

/// Total bytes of the store.
fn capacity(place: &Setup, monitor: &str) -> Option<u64> {
    let said: serde_json::Value =
        serde_json::from_str(&ceph(place, monitor, "ceph", &["df", "-f", "json"])?).ok()?;
    said.pointer("/stats/total_bytes")?.as_u64()
}

fn why(place: &Setup) -> String {
    text(&place.run(&["why", "ensemble/disks"]).stdout)
}

/// Puts an object, with as many bytes as make it worth moving.
fn put(place: &Setup, monitor: &str) -> Vec<u8> {
    let written: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    std::fs::write(place.path("object"), &written).unwrap();
    assert!(ceph(place, monitor, "ceph", &["osd", "pool", "create", "data", "8"]).is_some());
    assert!(ceph(place, monitor, "rados", &["-p", "data", "put", "alpha", &place.path("object")]).is_some());
    written
}

fn get(place: &Setup, monitor: &str) -> Vec<u8> {
    let read = place.path("read");
    assert!(ceph(place, monitor, "rados", &["-p", "data", "get", "alpha", &read]).is_some());
    std::fs::read(read).unwrap()
}

/// The program of an OSD is started again, and one whose agent is killed goes on.
async fn osds_outlive_their_agents(place: &mut Setup) {
    let two = node(2);
    let before = programs(place, &two);
    assert_eq!(before.len(), 1, "{before:?}");
    kill(&before);
    wait_for("it is started again", async || {
        let now = programs(place, &two);
        now.len() == 1 && now != before
    })
    .await;
    osds(place, "it serves again", |osds| serving(osds) == 3).await;
    let before = programs(place, &two);
    place.kill_agent(&two);
    place.resume_agent(&two);
    wait_for("the agent reports", async || done(place, &["node", "get", &two]).contains("up")).await;
    osds(place, "it serves still", |osds| serving(osds) == 3).await;
    assert_eq!(programs(place, &two), before, "it was taken over");
}

/// What a drained node has goes to others, and comes back.
async fn a_drained_node_is_emptied(place: &Setup) {
    done(place, &["node", "drain", "disk-3"]);
    let is_empty = |osd: &EnsembleOsd| {
        osd.node == "disk-3" && osd.state == OsdPhase::Out && osd.safe_to_remove == Some(SafeToRemove::Yes)
    };
    osds(place, "what it has is on others", |osds| osds.iter().any(is_empty)).await;
    assert_eq!(programs(place, "disk-3").len(), 1, "it runs, and is not removed");
    done(place, &["node", "uncordon", "disk-3"]);
    osds(place, "all have data again", |osds| serving(osds) == 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_devices_become_osds_capacity_follows_them_and_one_that_is_removed_takes_nothing_with_it() {
    let mut loops = Loops::default();
    let (mut place, used) = installed(&mut loops).await;
    let before = std::fs::read(Path::new(&place.path("used.img"))).unwrap();
    let [port] = free_ports().map(|port| port.to_string());
    let create =
        ["ensemble", "create", "disks", "--service", "ceph", "-l", "all", "--size", "1", "--port", &port];
    let devices =
        ["--replicas", "2", "--device", "d-1", "--device", "d-2", "--device", "d-3", "--device", "used"];
    let never = ["--device", "mounted", "--device", "parts", "--device", "none"];
    done(&place, &create.iter().chain(&devices).chain(&never).copied().collect::<Vec<_>>());
    osds(&place, "three OSDs", |osds| serving(osds) == 3).await;
    let said = why(&place);
    for line in [
        "device used is not taken: there is ext4 on it",
        "device parts is not taken: there is a partition table, dos on it",
        "device none is not taken: no node offers it",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let mounted = said.lines().find(|line| line.starts_with("device mounted is not taken")).unwrap();
    assert!(mounted.contains("a file system that is mounted at") && mounted.contains("ext4"), "{mounted}");
    let members = place.client().ensemble("default", "disks").await.unwrap().status.unwrap().members;
    let monitor = members.first().unwrap().node.clone();
    let written = put(&place, &monitor);
    osds_outlive_their_agents(&mut place).await;

    let small = capacity(&place, &monitor).unwrap();
    done(&place, &["ensemble", "set", "disks", "--device", "d-4"]);
    osds(&place, "a fourth OSD", |osds| serving(osds) == 4).await;
    wait_for("capacity grows", async || capacity(&place, &monitor).is_some_and(|now| now > small)).await;
    let shown = done(&place, &["ensemble", "get", "disks"]);
    assert!(
        shown.contains("osd.3")
            && shown.contains("devices         d-1, d-2, d-3, d-4, mounted, none, parts, used"),
        "{shown}"
    );
    a_drained_node_is_emptied(&place).await;
    assert_eq!(get(&place, &monitor), written);

    // The device of one that is removed has its label still, and is not taken again, whatever is on it.
    done(&place, &["ensemble", "remove-osd", "disks", "2", "--yes"]);
    let is_removed = |osds: &[EnsembleOsd]| {
        osds.iter().any(|osd| osd.number == 2 && osd.state == OsdPhase::Removed && osd.is_up.is_none())
    };
    osds(&place, "it is removed", is_removed).await;
    wait_for("it is stopped", async || programs(&place, &node(2)).is_empty()).await;
    let listed = ceph(&place, &monitor, "ceph", &["osd", "ls"]).unwrap();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert_eq!(get(&place, &monitor), written);
    let said = why(&place);
    assert!(said.contains("device d-2 is not taken: OSD 2, which had it, was removed"), "{said}");

    done(&place, &["ensemble", "delete", "disks", "--yes"]);
    let all = async || (1..=NODES).all(|number| programs(&place, &node(number)).is_empty());
    wait_for("all are stopped", all).await;
    wait_for("nothing is left of it", async || {
        text(&place.run(&["why", "ensemble/disks"]).stderr).contains("disks")
    })
    .await;
    assert!(std::fs::read(Path::new(&place.path("used.img"))).unwrap() == before, "{used} was touched");
}
