//! The file of a snapshot that an ensemble is founded from: whether it is there, of etcd, and whole. Never changes it.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bellwether_core::records::ensemble_restore::SnapshotName;
use bellwether_core::words::name::EnsembleName;
use sha2::{Digest, Sha256};

use super::snapshots::described;

/// Length of the checksum at the end.
const CHECKSUM: u64 = 32;

/// Length of what is read at once.
const PIECE: usize = 1024 * 1024;

/// Where the database of etcd says what it is, and what it says.
const MAGIC: (std::ops::Range<usize>, [u8; 4]) = (16..20, [0xed, 0xda, 0x0c, 0xed]);

/// A file as it was looked at last: it is read again only once it is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LookedAt {
    stamp: (u64, u64, i64, i64),
    flaw: Option<String>,
}

/// Where the file of a snapshot is.
pub(super) fn path(dir: &Path, name: &SnapshotName) -> PathBuf {
    dir.join(format!("{}.snapshots", name.ensemble)).join(format!("{name}.db"))
}

/// What is missing before an ensemble can be founded from this file, in words that fit after "waits for "; `None` if nothing is. Not for the
/// runtime's threads.
pub(super) fn lack(path: &Path, ensemble: &EnsembleName, last: &mut Option<LookedAt>) -> Option<String> {
    let flaw = flaw(path, last)?;
    Some(format!(
        "a whole snapshot of etcd at {}, which {flaw}: put one there, or delete ensemble {ensemble} and create it from another snapshot",
        path.display()
    ))
}

/// Why it cannot be used, in words that fit after "which "; `None` if it can.
fn flaw(path: &Path, last: &mut Option<LookedAt>) -> Option<String> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            *last = None;
            return Some(match error.kind() == io::ErrorKind::NotFound {
                true => "is not there".to_owned(),
                false => format!("cannot be read: {error}"),
            });
        }
    };
    let stamp = (metadata.len(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
    if let Some(last) = last.as_ref().filter(|last| last.stamp == stamp) {
        return last.flaw.clone();
    }
    match damage(path, file, &metadata) {
        Ok(flaw) => {
            *last = Some(LookedAt { stamp, flaw: flaw.clone() });
            flaw
        }
        Err(error) => Some(format!("cannot be read: {error}")),
    }
}

/// What is wrong with the content.
fn damage(path: &Path, mut file: File, metadata: &Metadata) -> io::Result<Option<String>> {
    if !metadata.is_file() {
        return Ok(Some("is no file".to_owned()));
    }
    let bytes = metadata.len();
    let (mut left, mut digest, mut buffer) = (bytes.saturating_sub(CHECKSUM), Sha256::new(), vec![0; PIECE]);
    let mut is_of_etcd = false;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let piece = buffer.get_mut(..most).unwrap_or_default();
        file.read_exact(piece)?;
        let (place, magic) = MAGIC;
        is_of_etcd = is_of_etcd || piece.get(place).is_some_and(|found| found == magic);
        if !is_of_etcd {
            break;
        }
        digest.update(&*piece);
        left = left.saturating_sub(most as u64);
    }
    if !is_of_etcd {
        return Ok(Some("is no snapshot of etcd".to_owned()));
    }
    let mut sum = Vec::new();
    file.read_to_end(&mut sum)?;
    let digest = digest.finalize();
    if digest.as_slice() != sum {
        return Ok(Some(format!("is damaged: its {bytes} bytes do not have the checksum at its end")));
    }
    let sha256: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    // One that was copied here by hand may have no description.
    Ok(match described(&path.with_extension("json"))? {
        Some(of) if of.sha256 != sha256 => {
            Some("is not the one that was taken: its checksum is another".to_owned())
        }
        Some(_) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Vec<u8> {
        let mut data = vec![7; 3 * PIECE + 5];
        data[MAGIC.0].copy_from_slice(&MAGIC.1);
        let sum = Sha256::digest(&data);
        [data, sum.to_vec()].concat()
    }

    #[test]
    fn only_a_whole_snapshot_of_etcd_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let name: SnapshotName = "store-1f-1-2a".parse().unwrap();
        let file = path(dir.path(), &name);
        assert_eq!(file, dir.path().join("store.snapshots/store-1f-1-2a.db"));
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        let mut last = None;
        let mut said = || lack(&file, &"new".parse().unwrap(), &mut last).unwrap_or_default();
        assert!(said().contains("which is not there: put one there, or delete ensemble new"));
        std::fs::write(&file, content()).unwrap();
        assert_eq!(said(), "");
        assert_eq!(said(), "", "it is not read again");
        let mut changed = content();
        changed[PIECE] = 8;
        std::fs::write(&file, changed).unwrap();
        assert!(said().contains("is damaged: its 3145765 bytes"), "{}", said());
        std::fs::write(&file, &content()[..2 * PIECE]).unwrap();
        assert!(said().contains("is damaged"));
        for other in [&b""[..], b"REDIS0010", &[0; 4096]] {
            std::fs::write(&file, other).unwrap();
            assert!(said().contains("is no snapshot of etcd"), "{}", said());
        }
        std::fs::write(&file, content()).unwrap();
        let description = format!(r#"{{"bytes": 1, "revision": 2, "sha256": "{}"}}"#, "ab".repeat(32));
        std::fs::write(file.with_extension("json"), description).unwrap();
        assert!(said().contains("is not the one that was taken"), "{}", said());
    }
}
