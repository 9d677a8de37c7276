//! An agent that has an OSD of a real Ceph, killed at every named moment of it: it is registered, its device is written to, it is started, emptied,
//! stopped and forgotten, and what the agent left behind is taken up by the next one. No device is used twice, and no number.

use std::process::Command;

use bellwether_api::v1::ensemble::osds::{EnsembleOsd, OsdPhase, RemoveOsd};
use bellwether_api::v1::ensemble::service::{CephSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::{EnsembleSize, EnsembleSpec};
use bellwether_rt::fail::FailPoint;
use bellwether_testbed::Options;

use super::{small, under};
use crate::bed::Bed;

const AGENT: &str = "agent-1";

/// Files as devices, until the play is over.
struct Loops {
    dir: tempfile::TempDir,
    devices: Vec<String>,
}

impl Loops {
    fn new(count: usize) -> Self {
        let mut loops = Self { dir: tempfile::tempdir().unwrap(), devices: Vec::new() };
        for number in 1..=count {
            let file = loops.dir.path().join(format!("{number}.img"));
            std::fs::File::create(&file).unwrap().set_len(1 << 30).unwrap();
            let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
            assert!(made.status.success(), "{made:?}");
            loops.devices.push(String::from_utf8(made.stdout).unwrap().trim().to_owned());
        }
        loops
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for device in &self.devices {
            drop(Command::new("losetup").args(["--detach", device]).status());
        }
    }
}

/// Where an agent dies: at a point, after it passed it so often, while an OSD joins or while one is removed.
fn moments(point: FailPoint) -> &'static [(u32, bool)] {
    // It is put out, and forgotten.
    if point == FailPoint::OsdChanged {
        return &[(0, false), (1, false)];
    }
    if point == FailPoint::OsdStopped { &[(0, false)] } else { &[(0, true)] }
}

/// A store with one monitor, and what it is to have.
struct Play {
    bed: Bed,
    devices: Vec<String>,
}

impl Play {
    async fn set(&self) {
        let ceph = CephSpec { devices: self.devices.clone(), replicas: Some(1), ..CephSpec::default() };
        let spec = EnsembleSpec {
            service: ServiceAgentSpec { ceph: Some(ceph), ..ServiceAgentSpec::default() },
            size: Some(EnsembleSize::Number(1)),
            filter: "all".to_owned(),
            ..EnsembleSpec::default()
        };
        self.bed.client(1).set_ensemble("default", "disks", &spec).await.unwrap();
    }

    async fn osds(&self, what: &str, holds: impl Fn(&[EnsembleOsd]) -> bool) -> Vec<EnsembleOsd> {
        let mut osds = Vec::new();
        self.bed
            .wait_for(what, async || {
                let asked = self.bed.client(1).ensemble("default", "disks").await;
                let Some(status) = asked.ok().and_then(|ensemble| ensemble.status) else { return false };
                osds = status.osds;
                holds(&osds)
            })
            .await;
        osds
    }

    /// An agent that is killed at this point, and the next one.
    fn arm(&mut self, point: FailPoint, passings: u32) {
        self.bed.obey(&format!("kill {AGENT}"));
        self.bed.arm(AGENT, point, passings);
    }

    fn mend(&mut self) {
        self.bed.killed(AGENT);
        self.bed.obey(&format!("start {AGENT}"));
    }

    /// One joins, and is removed; the agent dies in between.
    async fn joins_and_leaves(&mut self, number: u64, (point, passings, joins): (FailPoint, u32, bool)) {
        let name = point.name();
        if joins {
            self.arm(point, passings);
        }
        self.devices.push(format!("d-{number}"));
        self.set().await;
        if joins {
            self.mend();
        }
        let serves =
            |osd: &EnsembleOsd| osd.number == number && osd.state == OsdPhase::In && osd.is_up == Some(true);
        let osds = self.osds(&format!("it serves after {name}"), |osds| osds.iter().any(serves)).await;
        assert_eq!(osds.len() as u64, number, "{name}: {osds:?}");
        assert_eq!(programs(&self.bed), 1, "{name}");
        if !joins {
            self.arm(point, passings);
        }
        let request = RemoveOsd { osd: number, ..RemoveOsd::default() };
        self.bed.client(1).remove_osd("default", "disks", &request).await.unwrap();
        if !joins {
            self.mend();
        }
        let is_gone =
            |osd: &EnsembleOsd| osd.number == number && osd.state == OsdPhase::Removed && osd.is_up.is_none();
        self.osds(&format!("it is forgotten after {name}"), |osds| osds.iter().any(is_gone)).await;
        self.bed.wait_for("it is stopped", async || programs(&self.bed) == 0).await;
    }
}

/// Number of programs of OSDs on the machine of the agent.
fn programs(bed: &Bed) -> usize {
    let data = bed.inner.home(AGENT).display().to_string();
    let found = Command::new("pgrep").args(["-fc", &format!("^ceph-osd .*{data}")]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_every_named_moment_of_an_osd_is_followed_by_one_that_goes_on() {
    let moments: Vec<(FailPoint, u32, bool)> = under("osd.")
        .into_iter()
        .flat_map(|point| moments(point).iter().map(move |(passings, joins)| (point, *passings, *joins)))
        .collect();
    let loops = Loops::new(moments.len());
    let named = loops.devices.iter().enumerate();
    let paths: Vec<String> = named.map(|(index, device)| format!("d-{} = {device:?}", index + 1)).collect();
    let sections = format!("[ensembles]\ndevice_paths = {{ {} }}\n", paths.join(", "));
    let bed = Bed::start(Options { sections, ..small(0, 1, 1) }).await;
    bed.wait_for("the agent is up", async || bed.up().await == 1).await;
    let mut play = Play { bed, devices: Vec::new() };
    play.set().await;
    for (number, moment) in (1..).zip(moments) {
        play.joins_and_leaves(number, moment).await;
    }
    play.bed.client(1).delete_ensemble("default", "disks").await.unwrap();
}
