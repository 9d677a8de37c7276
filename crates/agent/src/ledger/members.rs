//! Members of ensembles that this node has, or had, in the ledger: one file for each ensemble.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bellwether_core::local::member::{MemberKey, NotedMember};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::tasks::Tasks;
use serde::{Deserialize, Serialize};

use super::error::{LedgerError, damaged, file, read};
use crate::apply::process::ProcessMark;
use crate::disk;

/// The format of the files.
const SCHEMA: u32 = 1;

/// What the ledger has of the member of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberEntry {
    /// Which one it is, and whether it has left this node for good.
    pub(crate) noted: NotedMember,
    /// The address at which others reach it.
    pub(crate) address: IpAddr,
    /// Whether its program was being started: it may run, though its mark is not known.
    pub(crate) is_starting: bool,
    /// Its program; `None` if it does not run.
    pub(crate) process: Option<ProcessMark>,
    /// The manager beside it, of a monitor of Ceph; `None` if none runs.
    pub(crate) manager: Option<ProcessMark>,
    /// The restart that its program was started for last; `None` if for none.
    pub(crate) restarted: Option<Timestamp>,
    /// Whether it has ever served.
    pub(crate) has_served: bool,
    /// The id that the store gave it; `None` until it is known.
    pub(crate) store_id: Option<String>,
    /// The peer URLs of the members that the store had last.
    pub(crate) peers: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberFile {
    schema: u32,
    ensemble: String,
    identity: String,
    number: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_left: bool,
    address: IpAddr,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_starting: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<MarkShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manager: Option<MarkShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restarted_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_served: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    peers: Vec<String>,
}

/// The mark of a process, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarkShape {
    pid: i32,
    started_ticks: u64,
    boot_id: String,
}

impl From<&ProcessMark> for MarkShape {
    fn from(from: &ProcessMark) -> Self {
        Self { pid: from.pid, started_ticks: from.started_ticks, boot_id: from.boot_id.clone() }
    }
}

impl From<MarkShape> for ProcessMark {
    fn from(from: MarkShape) -> Self {
        Self { pid: from.pid, started_ticks: from.started_ticks, boot_id: from.boot_id }
    }
}

/// Stores members of ensembles. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct MemberStore {
    dir: PathBuf,
    tasks: Tasks,
}

impl MemberStore {
    pub(super) fn new(dir: &Path, tasks: &Tasks) -> Self {
        Self { dir: dir.join("members"), tasks: tasks.clone() }
    }

    /// The members that an agent before has stored.
    pub(super) fn read(&self) -> Result<BTreeMap<EnsembleName, MemberEntry>, LedgerError> {
        disk::private_dir(&self.dir).map_err(|source| file("create", &self.dir, source))?;
        let mut members = BTreeMap::new();
        let found = std::fs::read_dir(&self.dir).map_err(|source| file("read", &self.dir, source))?;
        for entry in found {
            let path = entry.map_err(|source| file("read", &self.dir, source))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(text) = read(&path)? else { continue };
            let (ensemble, member) = parse(&text).map_err(|reason| damaged(&path, reason))?;
            members.insert(ensemble, member);
        }
        Ok(members)
    }

    /// Stores what is known of a member. The error fits after "cannot ".
    pub(crate) async fn keep(&self, ensemble: &EnsembleName, member: &MemberEntry) -> Result<(), String> {
        let path = self.path(ensemble);
        let text = text(ensemble, member);
        self.on_disk(("write", path), move |path| disk::replace(path, &text)).await
    }

    /// Forgets the member of an ensemble. The error fits after "cannot ".
    pub(crate) async fn forget(&self, ensemble: &EnsembleName) -> Result<(), String> {
        self.on_disk(("remove", self.path(ensemble)), disk::remove).await
    }

    async fn on_disk(
        &self,
        (action, path): (&'static str, PathBuf),
        work: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
    ) -> Result<(), String> {
        let what = format!("{action} {}", path.display());
        let done = move || work(&path).map_err(|error| format!("{what}: {error}"));
        disk::off_runtime(&self.tasks, done).await
    }

    fn path(&self, ensemble: &EnsembleName) -> PathBuf {
        self.dir.join(format!("{ensemble}.json"))
    }
}

fn parse(text: &str) -> Result<(EnsembleName, MemberEntry), String> {
    let file: MemberFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA {
        return Err(format!("its format {} is not known; this release knows {SCHEMA}", file.schema));
    }
    let ensemble = file.ensemble.parse().map_err(|error| format!("its ensemble: {error}"))?;
    let key = MemberKey { identity: file.identity, number: MemberNumber::new(file.number) };
    let member = MemberEntry {
        noted: NotedMember { key, has_left: file.has_left },
        address: file.address,
        is_starting: file.is_starting,
        process: file.process.map(ProcessMark::from),
        manager: file.manager.map(ProcessMark::from),
        restarted: file.restarted_ms.map(Timestamp::from_millis),
        has_served: file.has_served,
        store_id: file.store_id,
        peers: file.peers,
    };
    Ok((ensemble, member))
}

fn text(ensemble: &EnsembleName, member: &MemberEntry) -> String {
    let file = MemberFile {
        schema: SCHEMA,
        ensemble: ensemble.to_string(),
        identity: member.noted.key.identity.clone(),
        number: member.noted.key.number.get(),
        has_left: member.noted.has_left,
        address: member.address,
        is_starting: member.is_starting,
        process: member.process.as_ref().map(MarkShape::from),
        manager: member.manager.as_ref().map(MarkShape::from),
        restarted_ms: member.restarted.map(Timestamp::as_millis),
        has_served: member.has_served,
        store_id: member.store_id.clone(),
        peers: member.peers.clone(),
    };
    serde_json::to_string(&file).unwrap_or_default()
}
