//! What an OSD of Ceph is registered, made and started with, and what it says of itself.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_rt::observed;

use super::admin_socket;
use super::osd_files::OsdFiles;
use crate::apply::CommandFacts;
use crate::apply::answer::answer;
use crate::config::ensembles::CephPrograms;
use crate::config::recipe::Command;

/// Longest time for a call of the store.
const CALL: Duration = Duration::from_secs(20);

/// Longest time for what is written to a device.
const MAKE: Duration = Duration::from_secs(600);

/// Longest time for an answer of the OSD.
const ANSWER: Duration = Duration::from_secs(3);

/// Most bytes of an answer.
const MAX_BYTES: usize = 1024 * 1024;

/// The configuration of all programs: none, since what is set on the machine is for others.
const NO_CONF: [&str; 2] = ["--conf", "/dev/null"];

/// An OSD of this node, with what its programs are called with.
#[derive(Debug)]
pub(super) struct OsdCalls<'a> {
    pub(super) programs: &'a CephPrograms,
    pub(super) facts: &'a CommandFacts,
    pub(super) files: &'a OsdFiles,
    /// Id of the OSD.
    pub(super) uuid: &'a str,
    /// Where the monitors are.
    pub(super) monitors: &'a [String],
}

impl OsdCalls<'_> {
    /// The number that the store gives it, the same each time: the one that it is to take, if that was given up for it. The error fits after
    /// "cannot ".
    pub(super) async fn register(&self, takes: Option<u32>) -> Result<u32, String> {
        let secrets = Some(self.files.secrets());
        let takes = takes.map(|number| number.to_string());
        let number = takes.as_deref();
        let words: Vec<&str> =
            ["osd", "new", self.uuid].into_iter().chain(number).chain(["-i", "-"]).collect();
        let told = self.ask(&words, secrets).await;
        let told = told.map_err(|error| format!("register it: {error}"))?;
        let told = String::from_utf8_lossy(&told).into_owned();
        told.trim().parse().map_err(|_| format!("register it: the store answered {:?}", told.trim()))
    }

    /// Writes to its device, which is linked and was just looked at. The error fits after "cannot ".
    pub(super) async fn make(&self, number: u32, fsid: &str) -> Result<(), String> {
        let map = self.files.map().display().to_string();
        let fetched = self.ask(&["mon", "getmap", "-o", &map], None).await;
        fetched.map_err(|error| format!("fetch the list of monitors: {error}"))?;
        let (keyring, number) = (self.files.keyring().display().to_string(), number.to_string());
        let (data, monitors) = (self.files.data().display().to_string(), self.monitors.join(","));
        let words = ["-i", &number, "--mkfs", "--osd-uuid", self.uuid, "--osd-data", &data];
        let of_store = ["--osd-objectstore", "bluestore", "--fsid", fsid, "-m", &monitors];
        let keys = ["--keyring", &keyring, "--monmap", &map];
        let outputs = ["--log-to-file=false", "--log-to-stderr=true", "--err-to-stderr=true"];
        let all = NO_CONF.into_iter().chain(words).chain(of_store).chain(keys).chain(outputs);
        let argv = std::iter::once(self.programs.osd.as_str()).chain(all).map(str::to_owned).collect();
        self.call(argv, None, MAKE).await.map(drop).map_err(|error| format!("make it: {error}"))
    }

    /// Writes what it is started with from the label of its device. The error fits after "cannot ".
    pub(super) async fn prime(&self, device: &Path) -> Result<(), String> {
        let (dir, device) = (self.files.data().display().to_string(), device.display().to_string());
        let argv = [&self.programs.bluestore_tool, "prime-osd-dir", "--dev", &device, "--path", &dir];
        let done = self.call(argv.map(str::to_owned).into(), None, CALL).await;
        done.map(drop).map_err(|error| format!("read what is on {device}: {error}"))
    }

    /// The command that starts it.
    pub(super) fn command(&self, number: u32, node: &str, address: IpAddr) -> Command {
        let (dir, keyring) = (self.files.data(), self.files.keyring().display().to_string());
        let (data, number) = (dir.display().to_string(), number.to_string());
        let (monitors, address) = (self.monitors.join(","), address.to_string());
        let place = format!("root=default host={node}");
        let words = ["-f", "-i", &number, "-m", &monitors, "--osd-data", &data, "--keyring", &keyring];
        let place = ["--public-addr", &address, "--cluster-addr", &address, "--crush-location", &place];
        let outputs = [
            "--admin-socket",
            admin_socket::OSD,
            "--pid-file=",
            "--log-to-file=false",
            "--log-to-stderr=true",
            "--err-to-stderr=true",
            "--debug-rocksdb=1/5",
        ];
        let all = NO_CONF.into_iter().chain(words).chain(place).chain(outputs);
        let argv = std::iter::once(self.programs.osd.as_str()).chain(all).map(str::to_owned).collect();
        Command { argv, workdir: dir.to_owned(), env: BTreeMap::new(), stdin: None }
    }

    /// Whether it serves; what it does instead otherwise, after "it ".
    pub(super) async fn serves(&self) -> Result<(), String> {
        let asked = admin_socket::ask(self.files.data(), admin_socket::OSD, "status");
        let status = match observed::timeout(ANSWER, asked).await {
            Ok(Ok(status)) => status,
            Ok(Err(error)) => return Err(format!("does not answer yet: {error}")),
            Err(_) => return Err(format!("does not answer within {}s", ANSWER.as_secs())),
        };
        match status.get("state").and_then(serde_json::Value::as_str) {
            Some("active") => Ok(()),
            state => Err(format!("starts, and is {}", state.unwrap_or("in no state that it names"))),
        }
    }

    /// What the monitors answer to who may register OSDs.
    async fn ask(&self, words: &[&str], stdin: Option<PathBuf>) -> Result<Vec<u8>, String> {
        let (keyring, monitors) = (self.files.bootstrap().display().to_string(), self.monitors.join(","));
        let of =
            ["--connect-timeout", "10", "-n", "client.bootstrap-osd", "--keyring", &keyring, "-m", &monitors];
        let all = NO_CONF.iter().chain(&of).chain(words).copied();
        let argv = std::iter::once(self.programs.ceph.as_str()).chain(all).map(str::to_owned).collect();
        self.call(argv, stdin, CALL).await
    }

    async fn call(
        &self,
        argv: Vec<String>,
        stdin: Option<PathBuf>,
        deadline: Duration,
    ) -> Result<Vec<u8>, String> {
        let workdir: PathBuf = self.files.data().to_owned();
        let command = Command { argv, workdir, env: BTreeMap::new(), stdin };
        answer(&command, self.facts, deadline, MAX_BYTES).await
    }
}
