//! A real Ceph on four hosts with addresses of their own, on loop devices: each empty device that is named becomes an OSD, and one with
//! anything on it is never touched. Capacity grows with devices, a drained node is emptied, a host whose cable is out changes nothing, a lost
//! monitor is replaced, and an OSD that a person has removed leaves no object behind.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::ensemble::osd_reports::StoreAnswer;
use bellwether_api::v1::ensemble::osds::{EnsembleOsd, OsdPhase};
use bellwether_testbed::Network;

use crate::place::{Setup, done, text, wait_for};
use crate::story_osd_upkeep::{
    a_device_is_exchanged, all_are_restarted, one_is_removed, one_that_is_newer_than_the_records_serves_on,
};

pub(crate) const NODES: usize = 4;

/// How long data may move, on a machine that does other things, too.
const HEALTHY_WITHIN: Duration = Duration::from_secs(180);

/// How the names of those findings of the store begin that say that its machine is slow, or its disk nearly full.
const OF_MACHINE: [&str; 4] = ["MON_DISK_", "OSD_SLOW_PING_TIME_", "SLOW_OPS", "MON_CLOCK_SKEW"];

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

pub(crate) fn node(number: usize) -> String {
    format!("disk-{number}")
}

fn directory(place: &Setup, node: &str) -> String {
    place.path(&format!("{node}/data/ensembles"))
}

/// An installation, its hosts, and the devices in them.
pub(crate) struct Site {
    pub(crate) place: Setup,
    hosts: Network,
    loops: Loops,
}

impl Site {
    /// A device in each host, and in the first one three more: with a file system, mounted, and with a table of partitions.
    async fn new() -> Self {
        let hosts = Network::new(NODES).unwrap();
        let mut place = Setup::at(&hosts.outside()).await;
        let mut loops = Loops::default();
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
        let spare = loops.add(&place.path("spare.img"));
        for number in 1..=NODES {
            let device = loops.add(&place.path(&format!("{number}.img")));
            let more = match number {
                1 => format!(
                    ", used = {used:?}, mounted = {mounted:?}, parts = {parts:?}, typo = \"/dev/bw-none\""
                ),
                3 => format!(", spare = {spare:?}"),
                _ => String::new(),
            };
            let sections = format!(
                "addresses = {{ eth0 = [\"{}\"] }}\n\n[ensembles]\ndevice_paths = {{ d-{number} = {device:?}{more} }}\n",
                hosts.address(number)
            );
            place.start_agent_on(&hosts.on(number).unwrap(), &node(number), &sections);
        }
        Self { place, hosts, loops }
    }

    /// A host that has a monitor now: one that is drained gives it away.
    fn monitor(&self) -> usize {
        let has_files = |host: &usize| {
            let conf = format!("{}/disks/ceph.conf", directory(&self.place, &node(*host)));
            Path::new(&conf).exists()
        };
        (1..=NODES).find(has_files).unwrap()
    }

    /// What the administrator is answered who works on the host of a monitor.
    fn asked(&self, program: &str, words: &[&str]) -> Output {
        let host = self.monitor();
        let conf = format!("{}/disks/ceph.conf", directory(&self.place, &node(host)));
        let command = ["timeout", "30", program, "-c", &conf];
        self.hosts.run(host, &[&command, words].concat()).unwrap()
    }

    /// The same; nothing while nobody answers.
    pub(crate) fn ceph(&self, program: &str, words: &[&str]) -> Option<String> {
        let asked = self.asked(program, words);
        asked.status.success().then(|| text(&asked.stdout))
    }

    /// Total bytes of the store.
    fn capacity(&self) -> Option<u64> {
        let said: serde_json::Value =
            serde_json::from_str(&self.ceph("ceph", &["df", "-f", "json"])?).ok()?;
        said.pointer("/stats/total_bytes")?.as_u64()
    }

    /// Puts an object, with as many bytes as make it worth moving.
    fn put(&self) -> Vec<u8> {
        let written: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        std::fs::write(self.place.path("object"), &written).unwrap();
        for words in [
            &["osd", "pool", "create", "data", "8"][..],
            &["osd", "pool", "application", "enable", "data", "rados"],
        ] {
            assert!(self.ceph("ceph", words).is_some(), "{words:?}");
        }
        let put = ["-p", "data", "put", "alpha", &self.place.path("object")];
        assert!(self.ceph("rados", &put).is_some());
        written
    }

    /// The object, once the store answers: while data move, or just after a cable was out, it takes its time.
    async fn get(&self) -> Vec<u8> {
        let read = self.place.path("read");
        let get = ["-p", "data", "get", "alpha", &read];
        wait_for("the object is read", async || self.ceph("rados", &get).is_some()).await;
        std::fs::read(read).unwrap()
    }

    /// What the store finds wrong with itself, but what this machine is the cause of, with a disk and processors that others use, too; `None`
    /// while it does not answer.
    fn checks(&self) -> Option<Vec<String>> {
        let said = self.ceph("ceph", &["health", "-f", "json"])?;
        let health: serde_json::Value = serde_json::from_str(&said).ok()?;
        let checks = health.pointer("/checks")?.as_object()?.keys();
        let is_of_machine = |check: &&String| OF_MACHINE.iter().any(|start| check.starts_with(start));
        Some(checks.filter(|check| !is_of_machine(check)).cloned().collect())
    }

    /// The store finds nothing wrong with itself: its OSDs are up, and their data are where they are to be.
    async fn is_healthy(&self) {
        let mut last = None;
        let asking = async {
            while last.as_ref().is_none_or(|checks: &Vec<String>| !checks.is_empty()) {
                tokio::time::sleep(Duration::from_millis(500)).await;
                last = self.checks();
            }
        };
        let is_healthy = tokio::time::timeout(HEALTHY_WITHIN, asking).await.is_ok();
        assert!(is_healthy, "the store is not healthy: {last:?}: {:?}", self.ceph("ceph", &["-s"]));
    }

    /// The members, once three of them vote, and nothing is left to be done.
    async fn three_vote(&self, what: &str) -> Vec<EnsembleMember> {
        let client = self.place.client();
        let mut members = Vec::new();
        wait_for(what, async || {
            members = client.ensemble("default", "disks").await.unwrap().status.unwrap().members;
            members.len() == 3 && members.iter().all(|member| member.state == MemberPhase::Voting)
        })
        .await;
        members
    }
}

/// The OSDs, once they are like this: on a busy machine the store takes its time to move data.
pub(crate) async fn osds(
    place: &Setup,
    what: &str,
    holds: impl Fn(&[EnsembleOsd]) -> bool,
) -> Vec<EnsembleOsd> {
    let client = place.client();
    let mut osds = Vec::new();
    let asking = async {
        loop {
            osds = client.ensemble("default", "disks").await.unwrap().status.unwrap().osds;
            if holds(&osds) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let is_in_time = tokio::time::timeout(HEALTHY_WITHIN, asking).await.is_ok();
    assert!(is_in_time, "never saw that {what}: {osds:?}");
    osds
}

pub(crate) fn serving(osds: &[EnsembleOsd]) -> usize {
    osds.iter().filter(|osd| osd.state == OsdPhase::In && osd.is_up == Some(true)).count()
}

/// The processes of OSDs on a node.
pub(crate) fn programs(place: &Setup, node: &str) -> Vec<String> {
    let found =
        Command::new("pgrep").args(["-f", &format!("^ceph-osd .*{}/", directory(place, node))]).output();
    text(&found.unwrap().stdout).lines().map(str::to_owned).collect()
}

fn kill(pids: &[String]) {
    assert!(Command::new("kill").arg("-9").args(pids).status().unwrap().success());
}

pub(crate) fn why(place: &Setup) -> String {
    text(&place.run(&["why", "ensemble/disks"]).stdout)
}

/// The program of an OSD is started again, and one whose agent is killed goes on.
async fn osds_outlive_their_agents(site: &mut Site) {
    let (two, place) = (node(2), &mut site.place);
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
    place.resume_agent_on(&site.hosts.on(2).unwrap(), &two);
    wait_for("the agent reports", async || done(place, &["node", "get", &two]).contains("up")).await;
    osds(place, "it serves still", |osds| serving(osds) == 3).await;
    assert_eq!(programs(place, &two), before, "it was taken over");
}

/// What a drained node has goes to others, and comes back.
async fn a_drained_node_is_emptied(place: &Setup) {
    done(place, &["node", "drain", "disk-4"]);
    let is_empty = |osd: &EnsembleOsd| {
        osd.node == "disk-4" && osd.state == OsdPhase::Out && osd.safe_to_remove == Some(StoreAnswer::Yes)
    };
    osds(place, "what it has is on others", |osds| osds.iter().any(is_empty)).await;
    assert_eq!(programs(place, "disk-4").len(), 1, "it runs, and is not removed");
    let said = done(place, &["node", "why", "disk-4"]);
    assert!(said.contains("ensemble disks: OSD 4 (osd.3) with device d-4 on node disk-4 is empty"), "{said}");
    done(place, &["node", "uncordon", "disk-4"]);
    osds(place, "all have data again", |osds| serving(osds) == 4).await;
}

/// Of an OSD on a host that is cut off, nothing is known, and nothing is changed.
async fn a_host_that_is_cut_off_keeps_its_osd(site: &Site) {
    let place = &site.place;
    site.hosts.cable(4, false).unwrap();
    let is_unknown = |osd: &EnsembleOsd| osd.node == "disk-4" && osd.is_up != Some(true);
    let osds_then = osds(place, "it is not said to work", |osds| osds.iter().any(is_unknown)).await;
    assert!(osds_then.iter().all(|osd| osd.state == OsdPhase::In), "{osds_then:?}");
    let said = why(place);
    assert!(said.contains("its node is unreachable for"), "{said}");
    let status = done(place, &["status"]);
    assert!(status.contains("ensemble   disks: ") && status.contains("3 of 4 OSDs work"), "{status}");
    let failed = text(&place.run(&["get-failures"]).stdout);
    assert!(!failed.contains("ensemble/disks"), "silence is no failure: {failed}");
    site.hosts.cable(4, true).unwrap();
    osds(place, "it serves again", |osds| serving(osds) == 4).await;
}

/// A monitor that is lost with its disk is replaced, by one on the node that has none.
async fn a_lost_monitor_is_replaced(site: &Site) {
    let before = site.three_vote("three monitors").await;
    let (lost, last) = (before.last().unwrap(), before.last().unwrap().number);
    let data = format!("{}/disks/", directory(&site.place, &lost.node));
    // In one step: what is started again meanwhile finds none of them.
    std::fs::rename(&data, site.place.path("lost")).unwrap();
    let ended = Command::new("pkill").args(["-9", "-f", &format!("^ceph-mon .*{data}")]).status();
    assert!(ended.unwrap().success());
    let mut members = Vec::new();
    wait_for("another one takes its place", async || {
        members = site.three_vote("three vote").await;
        members.iter().all(|member| member.number != lost.number)
    })
    .await;
    assert!(members.iter().any(|member| member.number > last), "{members:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_devices_become_osds_capacity_follows_them_and_one_that_is_removed_takes_nothing_with_it() {
    let mut site = Site::new().await;
    let used = std::fs::read(Path::new(&site.place.path("used.img"))).unwrap();
    let place = &site.place;
    let create = ["ensemble", "create", "disks", "--service", "ceph", "-l", "all", "--size", "3"];
    let settings = ["--failover-after", "30s", "--replicas", "2"];
    let devices = ["--device", "d-1", "--device", "d-2", "--device", "d-3", "--device", "used"];
    let never = ["--device", "mounted", "--device", "parts", "--device", "none", "--device", "typo"];
    let warned = place.run(&[&create[..], &settings, &devices, &never].concat());
    assert!(warned.status.success(), "{}", text(&warned.stderr));
    assert!(text(&warned.stderr).contains("no node offers device none"), "{}", text(&warned.stderr));
    site.three_vote("three monitors").await;
    for number in 1..=3 {
        osds(place, &format!("{number} of three OSDs"), |osds| serving(osds) >= number).await;
    }
    let said = why(place);
    for line in [
        "device used is not taken: it is not free: ext4 (/dev/loop",
        "device parts is not taken: it is not free: a partition table, dos (/dev/loop",
        "device none is not taken: no node offers it",
        "device typo is not taken: it is not free: no device is there (/dev/bw-none on node disk-1)",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let mounted = said.lines().find(|line| line.starts_with("device mounted is not taken")).unwrap();
    assert!(mounted.contains("a file system that is mounted at") && mounted.contains("ext4"), "{mounted}");
    let booted = done(place, &["node", "logs", "disk-1", "ensemble/disks/osd-1"]);
    assert!(booted.contains("osd.0"), "{booted}");
    let none = place.run(&["node", "logs", "disk-1", "ensemble/disks/osd-9"]);
    assert!(text(&none.stderr).contains("no OSD 9 of ensemble disks was started"), "{none:?}");
    let written = site.put();
    osds_outlive_their_agents(&mut site).await;
    site.place.back_up().await;
    capacity_grows(&site).await;
    one_that_is_newer_than_the_records_serves_on(&mut site).await;
    a_drained_node_is_emptied(&site.place).await;
    a_host_that_is_cut_off_keeps_its_osd(&site).await;
    assert_eq!(site.get().await, written);
    a_lost_monitor_is_replaced(&site).await;
    site.is_healthy().await;
    assert_eq!(site.get().await, written);
    all_are_restarted(&site).await;
    assert_eq!(site.get().await, written);
    a_device_is_exchanged(&site).await;
    one_is_removed(&site).await;
    assert_eq!(site.get().await, written);

    let place = &site.place;
    done(place, &["ensemble", "delete", "disks", "--yes"]);
    let all = async || (1..=NODES).all(|number| programs(place, &node(number)).is_empty());
    wait_for("all are stopped", all).await;
    wait_for("nothing is left of it", async || {
        text(&place.run(&["why", "ensemble/disks"]).stderr).contains("disks")
    })
    .await;
    let now = std::fs::read(Path::new(&place.path("used.img"))).unwrap();
    assert!(now == used, "a device of {:?} was touched", site.loops.devices);
}

async fn capacity_grows(site: &Site) {
    let place = &site.place;
    let small = site.capacity().unwrap();
    done(place, &["ensemble", "set", "disks", "--device", "d-4"]);
    osds(place, "a fourth OSD", |osds| serving(osds) == 4).await;
    wait_for("capacity grows", async || site.capacity().is_some_and(|now| now > small)).await;
    let shown = done(place, &["ensemble", "get", "disks"]);
    assert!(
        shown.contains("osd.3")
            && shown.contains("devices         d-1, d-2, d-3, d-4, mounted, none, parts, typo, used")
            && shown.contains("device none is not taken"),
        "{shown}"
    );
}
