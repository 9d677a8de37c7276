//! The directory of a member: whose it is, whether it has data, and how it is made and set aside. Data are never removed.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use bellwether_core::local::member::{MemberData, MemberDirectory, MemberKey};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use serde::{Deserialize, Serialize};

use crate::disk;

/// The file that says whose a directory is.
const CLAIM: &str = "member.json";

/// The directory with the data of etcd.
const DATA: &str = "data";

/// Where etcd has the log of what it acknowledged, within its data: with it, it has data.
const WAL: &str = "member/wal";

/// Where etcd makes that log before it gives it its name. It removes what is there first, and with it the file that says that the member was
/// never started: nothing else has to be written at the moment in which it gets data.
const UNUSED: &str = "member/wal.tmp/unused";

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
    pub(super) fn look(&self) -> io::Result<MemberDirectory> {
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
        let data = self.data();
        let found = match (data.join(WAL).try_exists()?, data.join(UNUSED).try_exists()?) {
            (true, _) => MemberData::Present,
            (false, true) => MemberData::Unused,
            (false, false) => MemberData::Lost,
        };
        Ok(MemberDirectory::Claimed(key, found))
    }

    /// Makes it for a member. It gets its name once everything is in it.
    pub(super) fn make(&self, key: &MemberKey) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        if beside.try_exists()? {
            // Of a make that was broken off: it never had its name, and so no data.
            fs::remove_dir_all(&beside)?;
        }
        let unused = beside.join(DATA).join(UNUSED);
        let within = unused.parent().ok_or_else(|| io::Error::other("the path has no directory"))?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(within)?;
        disk::replace(&unused, "")?;
        let claim = Claim {
            ensemble: self.ensemble.to_string(),
            identity: key.identity.clone(),
            number: key.number.get(),
        };
        disk::replace(&beside.join(CLAIM), &serde_json::to_string(&claim).map_err(io::Error::other)?)?;
        for dir in within.ancestors().take_while(|dir| dir.starts_with(&beside)) {
            fs::File::open(dir)?.sync_all()?;
        }
        fs::rename(&beside, &self.path)?;
        self.sync_parent()
    }

    /// Gives it another name, beside it, which nobody has yet; answers that.
    pub(super) fn set_aside(&self) -> io::Result<PathBuf> {
        let named = |number: u32| self.path.with_extension(format!("set-aside-{number}"));
        for number in 1..=u32::MAX {
            let aside = named(number);
            if fs::symlink_metadata(&aside).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                fs::rename(&self.path, &aside)?;
                self.sync_parent()?;
                return Ok(aside);
            }
        }
        Err(io::Error::other("all names beside it are in use"))
    }

    fn sync_parent(&self) -> io::Result<()> {
        let parent = self.path.parent().ok_or_else(|| io::Error::other("the path has no directory"))?;
        fs::File::open(parent)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> MemberKey {
        MemberKey { identity: "store-1".to_owned(), number: MemberNumber::new(number) }
    }

    #[test]
    fn a_directory_says_whose_it_is_and_whether_it_has_data_or_had() {
        let home = tempfile::tempdir().unwrap();
        let own = OwnDirectory::new(home.path(), &"store".parse().unwrap());
        assert_eq!(own.look().unwrap(), MemberDirectory::Absent);
        own.make(&key(3)).unwrap();
        assert_eq!(own.look().unwrap(), MemberDirectory::Claimed(key(3), MemberData::Unused));
        // As etcd does before it has its log.
        fs::remove_dir_all(own.data().join("member/wal.tmp")).unwrap();
        assert_eq!(own.look().unwrap(), MemberDirectory::Claimed(key(3), MemberData::Lost));
        fs::create_dir(own.data().join(WAL)).unwrap();
        assert_eq!(own.look().unwrap(), MemberDirectory::Claimed(key(3), MemberData::Present));
        let first = own.set_aside().unwrap();
        assert_eq!(own.look().unwrap(), MemberDirectory::Absent);
        own.make(&key(4)).unwrap();
        let second = own.set_aside().unwrap();
        assert!(first != second && first.join("data").join(WAL).exists(), "{first:?} {second:?}");
        fs::create_dir(&own.path).unwrap();
        fs::write(own.path.join("precious"), "").unwrap();
        assert_eq!(own.look().unwrap(), MemberDirectory::Unclaimed);
    }
}
