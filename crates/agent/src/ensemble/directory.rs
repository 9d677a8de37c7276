//! The directory of a member: whose it is, whether it has data, and how it is made and set aside. Data are never removed.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use bellwether_core::local::member::{MemberData, MemberDirectory, MemberKey};
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use serde::{Deserialize, Serialize};

use crate::disk;

/// The file that says whose a directory is.
const CLAIM: &str = "member.json";

/// The directory with the data of etcd.
const DATA: &str = "data";

/// The file that says that a member never had data, where it is removed by its agent.
const UNUSED: &str = "unused";

/// Where data are made from a snapshot.
const RESTORED: &str = "restored";

/// The parts of the data of etcd.
const MEMBER: &str = "member";
const SNAP: &str = "snap";
const WAL: &str = "wal";

/// Where a store has what says whether it ever had data.
#[derive(Debug, Clone, Copy)]
struct DataFiles {
    /// What is there once it has data.
    present: &'static str,
    /// What is there until it has.
    unused: &'static str,
    /// Whether data are made before the first start, and are none until they are whole and the file is removed that says so.
    is_made_first: bool,
}

/// With its log of what it acknowledged, etcd has data. It makes that elsewhere before it gives it its name, and removes what is there
/// first, and with it the file that says that the member was never started: nothing else has to be written at the moment in which it
/// gets data.
const ETCD: DataFiles =
    DataFiles { present: "member/wal", unused: "member/wal.tmp/unused", is_made_first: false };

/// With the list of the files of its log of writes, Redis has data.
const REDIS: DataFiles =
    DataFiles { present: "appendonlydir/appendonly.aof.manifest", unused: UNUSED, is_made_first: false };

/// With the current list of the files of its store, a monitor of Ceph has data.
const CEPH: DataFiles = DataFiles { present: "mon/store.db/CURRENT", unused: UNUSED, is_made_first: true };

/// An independent member has as data what it has written itself, if anything.
const INDEPENDENT: DataFiles = DataFiles { present: ".", unused: "../unused", is_made_first: false };

impl DataFiles {
    const fn of(service: &EnsembleService) -> Self {
        match service {
            EnsembleService::Etcd(_) => ETCD,
            EnsembleService::Redis(_) => REDIS,
            EnsembleService::Independent(_) => INDEPENDENT,
            EnsembleService::Ceph(_) => CEPH,
        }
    }
}

/// Says whose a directory is.
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    ensemble: String,
    identity: String,
    number: u64,
}

/// The directory of the member of an ensemble.
#[derive(Debug, Clone)]
pub(super) struct OwnDirectory {
    pub(super) path: PathBuf,
    ensemble: EnsembleName,
}

impl OwnDirectory {
    pub(super) fn new(all: &Path, ensemble: &EnsembleName) -> Self {
        Self { path: all.join(ensemble.as_str()), ensemble: ensemble.clone() }
    }

    /// Where the data of the member are.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// What is there.
    pub(super) fn look(&self, service: &EnsembleService) -> io::Result<MemberDirectory> {
        match fs::symlink_metadata(&self.path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(MemberDirectory::Absent),
            Err(error) => return Err(error),
        }
        let Some(text) = disk::read(&self.path.join(CLAIM))? else { return Ok(MemberDirectory::Unclaimed) };
        let claim = serde_json::from_str::<Claim>(&text).ok();
        let claim = claim.filter(|claim| claim.ensemble == self.ensemble.as_str());
        let Some(claim) = claim else { return Ok(MemberDirectory::Unclaimed) };
        let key = MemberKey { identity: claim.identity, number: MemberNumber::new(claim.number) };
        let (data, files) = (self.data(), DataFiles::of(service));
        let found = match (data.join(files.present).try_exists()?, data.join(files.unused).try_exists()?) {
            (true, true) if files.is_made_first => MemberData::Unused,
            (true, _) => MemberData::Present,
            (false, true) => MemberData::Unused,
            (false, false) => MemberData::Lost,
        };
        Ok(MemberDirectory::Claimed(key, found))
    }

    /// Makes it for a member. It gets its name once everything is in it; nothing is left of it otherwise.
    pub(super) fn make(&self, key: &MemberKey, service: &EnsembleService) -> io::Result<()> {
        self.make_whole(key, Some(service))
    }

    /// Makes it again, as one whose data are gone: it was removed while its member runs.
    pub(super) fn make_again(&self, key: &MemberKey) -> io::Result<()> {
        self.make_whole(key, None)
    }

    fn make_whole(&self, key: &MemberKey, of: Option<&EnsembleService>) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        if beside.try_exists()? {
            // Of a make that was broken off: it never had its name, and so no data.
            fs::remove_dir_all(&beside)?;
        }
        let made = self.make_beside(&beside, key, of);
        if made.is_err() {
            // What is told is why it was not made.
            let _gone = fs::remove_dir_all(&beside);
        }
        made
    }

    /// Makes it for a member that never had data of this service, or has lost them.
    fn make_beside(&self, beside: &Path, key: &MemberKey, of: Option<&EnsembleService>) -> io::Result<()> {
        let unused = of.map(|service| beside.join(DATA).join(DataFiles::of(service).unused));
        let data = beside.join(DATA);
        let within = unused.as_deref().and_then(Path::parent).unwrap_or(&data);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(within)?;
        if let Some(unused) = &unused {
            disk::replace(unused, "")?;
        }
        let claim = Claim {
            ensemble: self.ensemble.to_string(),
            identity: key.identity.clone(),
            number: key.number.get(),
        };
        disk::replace(&beside.join(CLAIM), &serde_json::to_string(&claim).map_err(io::Error::other)?)?;
        for dir in within.ancestors().take_while(|dir| dir.starts_with(beside)) {
            fs::File::open(dir)?.sync_all()?;
        }
        fs::rename(beside, &self.path)?;
        self.sync_parent()
    }

    /// Removes the file that says that a member never had data, which Redis and Ceph themselves leave where it is.
    pub(super) fn note_used(&self) -> io::Result<()> {
        match fs::remove_file(self.data().join(UNUSED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => fs::File::open(self.data())?.sync_all(),
        }
    }

    /// Where data are made from a snapshot before they are moved to their place.
    pub(super) fn restored(&self) -> PathBuf {
        self.path.join(RESTORED)
    }

    /// Removes what is left of a restore that was broken off. Data that a member may have run with are not that.
    pub(super) fn clear_restored(&self) -> io::Result<()> {
        self.refuse_used()?;
        for left in [self.restored(), self.data().join(MEMBER).join(SNAP)] {
            match fs::remove_dir_all(&left) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Moves restored data to their place: the log last, since with that the member has data.
    pub(super) fn take_restored(&self) -> io::Result<()> {
        self.refuse_used()?;
        let (from, to) = (self.restored().join(MEMBER), self.data().join(MEMBER));
        sync_all(&from)?;
        fs::rename(from.join(SNAP), to.join(SNAP))?;
        fs::File::open(&to)?.sync_all()?;
        fs::rename(from.join(WAL), to.join(WAL))?;
        fs::File::open(&to)?.sync_all()?;
        // Nothing but names that nobody reads any more.
        drop(fs::remove_dir_all(self.restored()));
        Ok(())
    }

    fn refuse_used(&self) -> io::Result<()> {
        let data = self.data();
        match data.join(ETCD.unused).try_exists()? && !data.join(ETCD.present).try_exists()? {
            true => Ok(()),
            false => Err(io::Error::other(format!("{} has, or had, data", data.display()))),
        }
    }

    /// Removes it if no data were ever in it; else gives it another name, beside it, which nobody has yet, and answers that.
    pub(super) fn set_aside(&self) -> io::Result<Option<PathBuf>> {
        if self.is_empty()? {
            fs::remove_dir_all(&self.path)?;
            self.sync_parent()?;
            return Ok(None);
        }
        let named = |number: u32| self.path.with_extension(format!("set-aside-{number}"));
        for number in 1..=u32::MAX {
            let aside = named(number);
            if fs::symlink_metadata(&aside).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                fs::rename(&self.path, &aside)?;
                self.sync_parent()?;
                return Ok(Some(aside));
            }
        }
        Err(io::Error::other("all names beside it are in use"))
    }

    /// Whether it is of a member, and has an empty directory for data.
    fn is_empty(&self) -> io::Result<bool> {
        if disk::read(&self.path.join(CLAIM))?.is_none() {
            return Ok(false);
        }
        match fs::read_dir(self.data()) {
            Ok(mut entries) => Ok(entries.next().is_none()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_parent(&self) -> io::Result<()> {
        let parent = self.path.parent().ok_or_else(|| io::Error::other("the path has no directory"))?;
        fs::File::open(parent)?.sync_all()
    }
}

/// Writes a directory with all that is in it to the disk.
fn sync_all(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all(&entry.path())?;
        } else {
            fs::File::open(entry.path())?.sync_all()?;
        }
    }
    fs::File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::ensemble::{EtcdSettings, RedisSettings};

    use super::*;

    const ETCD_SERVICE: EnsembleService =
        EnsembleService::Etcd(EtcdSettings { client_port: 1, peer_port: 2, tls: true });

    fn key(number: u64) -> MemberKey {
        MemberKey { identity: "store-1".to_owned(), number: MemberNumber::new(number) }
    }

    #[test]
    fn a_directory_says_whose_it_is_and_whether_it_has_data_or_had() {
        let home = tempfile::tempdir().unwrap();
        let own = OwnDirectory::new(home.path(), &"store".parse().unwrap());
        assert_eq!(own.look(&ETCD_SERVICE).unwrap(), MemberDirectory::Absent);
        own.make(&key(3), &ETCD_SERVICE).unwrap();
        assert_eq!(own.look(&ETCD_SERVICE).unwrap(), MemberDirectory::Claimed(key(3), MemberData::Unused));
        // As etcd does before it has its log.
        fs::remove_dir_all(own.data().join("member/wal.tmp")).unwrap();
        assert_eq!(own.look(&ETCD_SERVICE).unwrap(), MemberDirectory::Claimed(key(3), MemberData::Lost));
        fs::create_dir(own.data().join(ETCD.present)).unwrap();
        assert_eq!(own.look(&ETCD_SERVICE).unwrap(), MemberDirectory::Claimed(key(3), MemberData::Present));
        let first = own.set_aside().unwrap().unwrap();
        assert_eq!(own.look(&ETCD_SERVICE).unwrap(), MemberDirectory::Absent);
        own.make(&key(4), &ETCD_SERVICE).unwrap();
        let second = own.set_aside().unwrap().unwrap();
        assert!(first != second && first.join("data").join(ETCD.present).exists(), "{first:?} {second:?}");
        fs::create_dir(&own.path).unwrap();
        fs::write(own.path.join("precious"), "").unwrap();
        assert_eq!(own.look(&ETCD_SERVICE).unwrap(), MemberDirectory::Unclaimed);
        // It cannot have its name: nothing is left beside what has it.
        own.make(&key(5), &ETCD_SERVICE).unwrap_err();
        assert!(!own.path.with_extension("new").exists() && own.path.join("precious").exists());
    }

    #[test]
    fn restored_data_are_there_once_their_log_is_and_what_was_broken_off_before_that_is_made_anew() {
        let home = tempfile::tempdir().unwrap();
        let own = OwnDirectory::new(home.path(), &"store".parse().unwrap());
        own.make(&key(1), &ETCD_SERVICE).unwrap();
        let unused = MemberDirectory::Claimed(key(1), MemberData::Unused);
        for _ in 0..2 {
            // Killed before the data were whole, and after the first half of them was in its place.
            fs::create_dir_all(own.restored().join("member/snap")).unwrap();
            fs::create_dir_all(own.data().join("member/snap")).unwrap();
            fs::write(own.data().join("member/snap/db"), "half").unwrap();
            assert_eq!(own.look(&ETCD_SERVICE).unwrap(), unused);
            own.clear_restored().unwrap();
            assert!(!own.restored().exists() && !own.data().join("member/snap").exists());
            own.take_restored().unwrap_err();
            assert_eq!(own.look(&ETCD_SERVICE).unwrap(), unused);
        }
        for (file, text) in [("snap/db", "all"), ("wal/0.wal", "log")] {
            let path = own.restored().join("member").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        own.take_restored().unwrap();
        assert_eq!(own.look(&ETCD_SERVICE).unwrap(), MemberDirectory::Claimed(key(1), MemberData::Present));
        assert_eq!(fs::read_to_string(own.data().join("member/snap/db")).unwrap(), "all");
        // From now on nothing of it is removed.
        for refused in [own.clear_restored(), own.take_restored()] {
            assert!(refused.unwrap_err().to_string().contains("has, or had, data"));
        }
        assert!(own.data().join("member/wal/0.wal").exists());
    }

    #[test]
    fn a_redis_that_has_served_and_has_no_log_of_writes_has_lost_its_data() {
        let home = tempfile::tempdir().unwrap();
        let own = OwnDirectory::new(home.path(), &"cache".parse().unwrap());
        let redis = EnsembleService::Redis(RedisSettings {
            port: 1,
            min_replicas: 1,
            tls: false,
            password_secrets: Vec::new(),
        });
        own.make(&key(1), &redis).unwrap();
        assert_eq!(own.look(&redis).unwrap(), MemberDirectory::Claimed(key(1), MemberData::Unused));
        fs::create_dir(own.data().join("appendonlydir")).unwrap();
        fs::write(own.data().join(REDIS.present), "").unwrap();
        own.note_used().unwrap();
        own.note_used().unwrap();
        assert_eq!(own.look(&redis).unwrap(), MemberDirectory::Claimed(key(1), MemberData::Present));
        fs::remove_file(own.data().join(REDIS.present)).unwrap();
        assert_eq!(own.look(&redis).unwrap(), MemberDirectory::Claimed(key(1), MemberData::Lost));
    }
}
