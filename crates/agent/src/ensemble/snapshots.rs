//! Snapshots that this node takes of the data of an ensemble, beside the directory of its member. One is complete or absent: its description is
//! written last. Those that the order keeps stay, as do all of other ensembles and those that the order does not know yet.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::records::ensemble_snapshots::{
    SnapshotContent, SnapshotId, SnapshotOrder, SnapshotReport,
};
use bellwether_core::records::member::MemberOrder;
use bellwether_core::records::probes::MAX_REASON_BYTES;
use bellwether_core::words::counter::SnapshotNumber;
use bellwether_core::words::name::EnsembleName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::observed;
use bellwether_rt::tasks::Tasks;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::etcd::Etcd;
use super::snapshot_stream::SnapshotWriter;
use crate::apply::output::one_line;
use crate::disk;

/// Longest time between two pieces of a snapshot.
const STALL: Duration = Duration::from_secs(30);

/// Snapshots of an ensemble on this node.
#[derive(Debug)]
pub(super) struct Snapshots {
    dir: PathBuf,
    tasks: Tasks,
    /// What was followed last.
    followed: SnapshotOrder,
    /// What became of the one that was ordered last.
    told: watch::Receiver<Option<SnapshotReport>>,
}

/// What is in a snapshot, as it is written beside it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    bytes: u64,
    revision: u64,
    pub(super) sha256: String,
}

/// What is written beside a snapshot; `None` if nothing is.
pub(super) fn described(description: &Path) -> io::Result<Option<Description>> {
    let text = disk::read(description)?;
    Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
}

impl Snapshots {
    pub(super) fn new(dir: &Path, ensemble: &EnsembleName, tasks: &Tasks) -> Self {
        let (_, told) = watch::channel(None);
        let dir = dir.join(format!("{ensemble}.snapshots"));
        Self { dir, tasks: tasks.clone(), followed: SnapshotOrder::default(), told }
    }

    /// What became of the snapshot that was ordered last; `None` while it is being taken.
    pub(super) fn report(&self) -> Option<SnapshotReport> {
        self.told.borrow().clone()
    }

    /// Begins with what is ordered, unless it has.
    pub(super) fn follow(&mut self, order: &MemberOrder, etcd: &Etcd) {
        if order.snapshots == self.followed {
            return;
        }
        let before = std::mem::replace(&mut self.followed, order.snapshots.clone());
        let files = SnapshotFiles { dir: self.dir.clone(), identity: order.identity.clone() };
        if (before.kept, before.latest) != (order.snapshots.kept.clone(), order.snapshots.latest) {
            let (files, order) = (files.clone(), order.snapshots.clone());
            drop(self.tasks.spawn_blocking(move || files.remove(&order)));
        }
        if let Some(id) = order.snapshots.take.filter(|id| before.take != Some(*id)) {
            let (tell, told) = watch::channel(None);
            self.told = told;
            let (etcd, token, tasks) = (etcd.clone(), self.tasks.token(), self.tasks.clone());
            self.tasks.spawn("snapshot", async move {
                // One that is broken off is begun again by the next agent.
                let outcome = tokio::select! {
                    () = token.cancelled() => return,
                    outcome = files.take(id, &etcd, &tasks) => outcome,
                };
                let outcome = outcome.map_err(|reason| one_line(&reason, MAX_REASON_BYTES));
                tell.send_replace(Some(SnapshotReport { id, outcome }));
            });
        }
    }
}

/// The snapshots of one ensemble in a directory.
#[derive(Debug, Clone)]
struct SnapshotFiles {
    dir: PathBuf,
    identity: String,
}

impl SnapshotFiles {
    fn path(&self, id: SnapshotId, extension: &str) -> PathBuf {
        self.dir.join(format!("{}-{id}.{extension}", self.identity))
    }

    async fn take(&self, id: SnapshotId, etcd: &Etcd, tasks: &Tasks) -> Result<SnapshotContent, String> {
        let (data, part, description) = (self.path(id, "db"), self.path(id, "part"), self.path(id, "json"));
        let (own, made) = (self.clone(), description.clone());
        let look =
            move || own.prepare(&made).map_err(|error| format!("cannot use {}: {error}", own.dir.display()));
        if let Some(taken) = disk::off_runtime(tasks, look).await? {
            return Ok(taken);
        }
        let written = self.write(&part, etcd).await;
        let part = &part;
        let content = match written {
            Ok(content) => content,
            Err(reason) => {
                drop(tokio::fs::remove_file(part).await);
                return Err(reason);
            }
        };
        fail::pass(FailPoint::SnapshotWritten);
        let moved = tokio::fs::rename(part, &data).await;
        moved.map_err(|error| format!("cannot rename {}: {error}", part.display()))?;
        fail::pass(FailPoint::SnapshotNamed);
        let SnapshotContent { bytes, revision, sha256 } = content.clone();
        let text = serde_json::to_string(&Description { bytes, revision, sha256 });
        let text = text.map_err(|error| format!("cannot describe it: {error}"))?;
        let what = format!("cannot write {}", description.display());
        let described =
            move || disk::replace(&description, &text).map_err(|error| format!("{what}: {error}"));
        disk::off_runtime(tasks, described).await?;
        fail::pass(FailPoint::SnapshotDescribed);
        Ok(content)
    }

    /// What is in a snapshot that is there already. Removes what is left of others that were broken off.
    fn prepare(&self, description: &Path) -> io::Result<Option<SnapshotContent>> {
        disk::private_dir(&self.dir)?;
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if self.id(&path).is_some() && path.extension().is_some_and(|extension| extension == "part") {
                disk::remove(&path)?;
            }
        }
        let Some(found) = described(description)? else { return Ok(None) };
        let Description { bytes, revision, sha256 } = found;
        let is_whole =
            std::fs::metadata(description.with_extension("db")).is_ok_and(|data| data.len() == bytes);
        Ok(is_whole.then_some(SnapshotContent { bytes, revision, sha256 }))
    }

    async fn write(&self, part: &Path, etcd: &Etcd) -> Result<SnapshotContent, String> {
        let revision = etcd.revision().await?;
        let mut answer = etcd.snapshot().await?;
        let mut writer = SnapshotWriter::create(part).await?;
        loop {
            let piece = observed::timeout(STALL, answer.next()).await;
            let piece = piece.map_err(|_| format!("etcd sent nothing of it for {}s", STALL.as_secs()))?;
            match piece.map_err(|error| format!("etcd broke it off: {error}"))? {
                None => break,
                Some(piece) => writer.take(&piece).await?,
            }
        }
        writer.finish(revision).await
    }

    /// Which snapshot of the ensemble a file is of.
    fn id(&self, path: &Path) -> Option<SnapshotId> {
        let name = path.file_stem()?.to_str()?;
        let (number, at) = name.strip_prefix(&self.identity)?.strip_prefix('-')?.split_once('-')?;
        let at = Timestamp::from_millis(u64::from_str_radix(at, 16).ok()?);
        Some(SnapshotId { number: SnapshotNumber::new(number.parse().ok()?), at })
    }

    /// Removes those that are not kept any more.
    fn remove(&self, order: &SnapshotOrder) {
        let Ok(found) = std::fs::read_dir(&self.dir) else { return };
        let mut paths: Vec<PathBuf> = found.filter_map(|entry| Some(entry.ok()?.path())).collect();
        // The description first: without it there is no snapshot.
        paths.sort_by_key(|path| path.extension().is_none_or(|extension| extension != "json"));
        for path in paths.into_iter().filter(|path| self.id(path).is_some_and(|id| order.drops(id))) {
            if let Err(error) = disk::remove(&path) {
                tracing::warn!(path = %path.display(), "cannot remove a snapshot: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_order_knows_and_does_not_keep_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let files = SnapshotFiles { dir: dir.path().to_owned(), identity: "store-1f".to_owned() };
        let id =
            |number, at| SnapshotId { number: SnapshotNumber::new(number), at: Timestamp::from_millis(at) };
        for (number, at) in [(1, 0xa), (2, 0xb), (3, 0xc), (4, 0xd), (9, 0xe)] {
            for extension in ["db", "json"] {
                std::fs::write(files.path(id(number, at), extension), "").unwrap();
            }
        }
        std::fs::write(dir.path().join("store-2f-1-a.db"), "").unwrap();
        std::fs::write(dir.path().join("notes.txt"), "").unwrap();
        let kept = vec![id(3, 0xc), id(4, 0xd)];
        let kept = SnapshotOrder { take: Some(id(2, 0xb)), kept, latest: Some(id(4, 0xd)) };
        files.remove(&kept);
        let found = std::fs::read_dir(dir.path()).unwrap();
        let mut left: Vec<String> =
            found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let of = |number: u64, at: &str| ["db", "json"].map(|kind| format!("store-1f-{number}-{at}.{kind}"));
        let mut wanted: Vec<String> =
            [of(2, "b"), of(3, "c"), of(4, "d"), of(9, "e")].into_iter().flatten().collect();
        wanted.extend(["store-2f-1-a.db".to_owned(), "notes.txt".to_owned()]);
        wanted.sort();
        assert_eq!(left, wanted);
        files.remove(&SnapshotOrder::default());
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            10,
            "an order that knows none removes none"
        );
        // Those that are kept are all on other nodes.
        files.remove(&SnapshotOrder { latest: Some(id(4, 0xd)), ..SnapshotOrder::default() });
        let left = |number, at| files.path(id(number, at), "db").exists();
        assert!(!left(2, 0xb) && !left(3, 0xc) && left(4, 0xd) && left(9, 0xe));
    }
}
