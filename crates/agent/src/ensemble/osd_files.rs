//! The files of an OSD: its keys, a link to its device, and what is known of it. All of its data are on the device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::ensemble::keys::OsdKeys;
use bellwether_core::local::osd::NotedOsd;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::apply::process::ProcessMark;
use crate::disk;
use crate::ledger::MarkShape;

/// What is known of an OSD.
const NOTE: &str = "osd.json";

/// Its own key alone, before its number is known.
const KEY: &str = "key";

/// The files of an OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OsdFiles(PathBuf);

/// What is known of an OSD, kept before anything follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OsdNote {
    /// Its number, and whether it was made.
    pub(super) noted: NotedOsd,
    /// Id of the store; `None` before its keys are there.
    pub(super) fsid: Option<String>,
    /// Its program; `None` if it does not run.
    pub(super) process: Option<ProcessMark>,
    /// The restart that it made last.
    pub(super) restarted: Option<Timestamp>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    #[serde(default)]
    was_made: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fsid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<MarkShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restarted_ms: Option<u64>,
}

impl OsdFiles {
    pub(super) const fn within(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// Where it runs.
    pub(super) fn data(&self) -> &Path {
        &self.0
    }

    /// Its own key.
    pub(super) fn keyring(&self) -> PathBuf {
        self.0.join("keyring")
    }

    /// The key that may register it.
    pub(super) fn bootstrap(&self) -> PathBuf {
        self.0.join("bootstrap.keyring")
    }

    /// The monitors that it is made with.
    pub(super) fn map(&self) -> PathBuf {
        self.0.join("monmap")
    }

    /// What is known of it.
    pub(super) fn note(&self) -> io::Result<OsdNote> {
        let Some(text) = disk::read(&self.0.join(NOTE))? else { return Ok(OsdNote::default()) };
        let NoteFile { number, was_made, fsid, process, restarted_ms } =
            serde_json::from_str(&text).map_err(io::Error::other)?;
        let process = process.map(ProcessMark::from);
        let restarted = restarted_ms.map(Timestamp::from_millis);
        Ok(OsdNote { noted: NotedOsd { number, was_made }, fsid, process, restarted })
    }

    /// Keeps what is known of it.
    pub(super) fn keep(&self, note: &OsdNote) -> io::Result<()> {
        let OsdNote { noted: NotedOsd { number, was_made }, fsid, process, restarted } = note.clone();
        let process = process.as_ref().map(MarkShape::from);
        let restarted_ms = restarted.map(Timestamp::as_millis);
        let file = NoteFile { number, was_made, fsid, process, restarted_ms };
        self.make()?;
        disk::replace(&self.0.join(NOTE), &serde_json::to_string(&file).map_err(io::Error::other)?)
    }

    fn make(&self) -> io::Result<()> {
        if let Some(above) = self.0.parent() {
            if let Some(all) = above.parent() {
                disk::private_dir(all)?;
            }
            disk::private_dir(above)?;
        }
        disk::private_dir(&self.0)
    }

    /// Keeps the key that may register it.
    pub(super) fn keep_bootstrap(&self, keys: &OsdKeys) -> io::Result<()> {
        self.make()?;
        disk::replace(&self.bootstrap(), &entry("client.bootstrap-osd", &keys.bootstrap))?;
        let secret = serde_json::json!({ "cephx_secret": keys.key }).to_string();
        disk::replace(&self.secrets(), &secret)?;
        disk::replace(&self.0.join(KEY), &keys.key)
    }

    /// What the store is told to register it with.
    pub(super) fn secrets(&self) -> PathBuf {
        self.0.join("secrets.json")
    }

    /// Its own key, as Ceph writes it.
    fn key(&self) -> io::Result<String> {
        disk::read(&self.0.join(KEY))?.ok_or_else(|| io::Error::other("its key is missing"))
    }

    /// Names its device and itself.
    pub(super) fn link(&self, number: u32, device: &Path) -> io::Result<()> {
        let (key, block) = (self.key()?, self.0.join("block"));
        disk::replace(&self.keyring(), &entry(&format!("osd.{number}"), &key))?;
        if fs::read_link(&block).is_ok_and(|to| to == device) {
            return Ok(());
        }
        disk::remove(&block)?;
        std::os::unix::fs::symlink(device, &block)
    }

    /// Removes all: an OSD that has left has nothing here but keys.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// An entry of a keyring.
fn entry(name: &str, key: &str) -> String {
    format!("[{name}]\n\tkey = {key}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_an_osd_is_read_as_it_was_kept() {
        let home = tempfile::tempdir().unwrap();
        let files = OsdFiles::within(home.path().join("disks.osds/disks-1-4"));
        assert_eq!(files.note().unwrap(), OsdNote::default());
        let noted = NotedOsd { number: Some(3), was_made: true };
        let process = Some(ProcessMark { pid: 7, started_ticks: 9, boot_id: "b".to_owned() });
        let restarted = Some(Timestamp::from_millis(8));
        let note = OsdNote { noted, fsid: Some("f".to_owned()), process, restarted };
        files.keep(&note).unwrap();
        assert_eq!(files.note().unwrap(), note);
        files
            .keep_bootstrap(&OsdKeys { fsid: "f".into(), bootstrap: "AQB=".into(), key: "AQA=".into() })
            .unwrap();
        for device in ["/dev/loop1", "/dev/loop2"] {
            files.link(3, Path::new(device)).unwrap();
            assert_eq!(fs::read_link(files.data().join("block")).unwrap(), Path::new(device));
        }
        assert_eq!(fs::read_to_string(files.keyring()).unwrap(), "[osd.3]\n\tkey = AQA=\n");
        files.remove().unwrap();
        files.remove().unwrap();
        assert_eq!(files.note().unwrap(), OsdNote::default());
    }
}
