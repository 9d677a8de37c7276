//! The files of a monitor of Ceph and its manager: their keys, which the control plane gives this node alone, and what the administrator needs
//! to use the store from here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::ensemble::keys::MemberKeys;

use crate::disk;

/// The files within the directory of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CephFiles(PathBuf);

impl CephFiles {
    pub(super) fn within(member: &Path) -> Self {
        Self(member.to_owned())
    }

    /// Where its data are, and where it runs.
    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// The store of the monitor.
    pub(super) fn store(&self) -> PathBuf {
        self.data().join("mon")
    }

    /// The directory of the manager.
    pub(super) fn manager(&self) -> PathBuf {
        self.data().join("mgr")
    }

    /// The key of the manager.
    pub(super) fn manager_keyring(&self) -> PathBuf {
        self.manager().join("keyring")
    }

    /// The monitors that a new one is to know.
    pub(super) fn map(&self) -> PathBuf {
        self.0.join("monmap")
    }

    /// The keys that the store of a monitor begins with.
    pub(super) fn keyring(&self) -> PathBuf {
        self.0.join("monitor.keyring")
    }

    /// The key of the administrator.
    pub(super) fn administrator(&self) -> PathBuf {
        self.0.join("ceph.client.admin.keyring")
    }

    /// What clients on this machine are configured with.
    fn configuration(&self) -> PathBuf {
        self.0.join("ceph.conf")
    }

    /// The id of the store; `None` before the keys are there.
    pub(super) fn fsid(&self) -> io::Result<Option<String>> {
        let text = disk::read(&self.configuration())?;
        let line = |text: String| {
            text.lines().find_map(|line| line.strip_prefix("fsid = ").map(|fsid| fsid.trim().to_owned()))
        };
        Ok(text.and_then(line))
    }

    /// Keeps the keys, and last what says that they are there.
    pub(super) fn keep(&self, keys: &MemberKeys, monitors: &[String]) -> io::Result<()> {
        let administrator = entry("client.admin", &keys.administrator, &["mds", "mgr", "mon", "osd"]);
        let own = entry("mon.", &keys.members, &["mon"]);
        let bootstrap = format!(
            "[client.bootstrap-osd]\n\tkey = {}\n\tcaps mon = \"profile bootstrap-osd\"\n",
            keys.bootstrap
        );
        disk::replace(&self.keyring(), &format!("{own}{administrator}{bootstrap}"))?;
        disk::replace(&self.administrator(), &administrator)?;
        self.configure(&keys.fsid, monitors)
    }

    /// Names the monitors that clients on this machine are to use, if they are others than before.
    pub(super) fn configure(&self, fsid: &str, monitors: &[String]) -> io::Result<()> {
        let keyring = self.administrator();
        // Monitors let nobody go on under an id that he cannot prove to be his own (CVE-2021-20288).
        let text = format!(
            "[global]\nfsid = {fsid}\nmon host = {}\nauth allow insecure global id reclaim = false\n\n[client.admin]\nkeyring = {}\n",
            monitors.join(","),
            keyring.display()
        );
        if disk::read(&self.configuration())?.as_ref() == Some(&text) {
            return Ok(());
        }
        disk::replace(&self.configuration(), &text)
    }

    /// Makes an empty directory for the store; what a first start that was broken off left there never was part of a store.
    pub(super) fn make_store(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.store()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        disk::private_dir(&self.store())
    }

    /// Keeps the key of the manager, as Ceph wrote it.
    pub(super) fn keep_manager(&self, keyring: &str) -> io::Result<()> {
        disk::private_dir(&self.manager())?;
        disk::replace(&self.manager_keyring(), keyring)
    }
}

/// An entry of a keyring, with all rights to these.
fn entry(name: &str, key: &str, rights: &[&str]) -> String {
    let rights: String = rights.iter().map(|of| format!("\tcaps {of} = \"allow *\"\n")).collect();
    format!("[{name}]\n\tkey = {key}\n{rights}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_before_what_says_that_they_are_there() {
        let home = tempfile::tempdir().unwrap();
        let files = CephFiles::within(home.path());
        assert_eq!(files.fsid().unwrap(), None);
        let keys = MemberKeys {
            fsid: "0000-1".to_owned(),
            members: "AQA=".to_owned(),
            administrator: "AQB=".to_owned(),
            bootstrap: "AQC=".to_owned(),
        };
        files.keep(&keys, &["v2:10.0.0.1:3300".to_owned()]).unwrap();
        assert_eq!(files.fsid().unwrap().as_deref(), Some("0000-1"));
        let own = fs::read_to_string(files.keyring()).unwrap();
        assert!(
            own.contains("[mon.]\n\tkey = AQA=\n\tcaps mon = \"allow *\"\n[client.admin]\n\tkey = AQB="),
            "{own}"
        );
        let administrator = fs::read_to_string(files.administrator()).unwrap();
        assert!(!administrator.contains("AQA="), "who uses the store has not the key of its monitors");
    }
}
