//! The snapshot from which an ensemble is founded, and the names of snapshots. Part of the record of an ensemble, and of that of its members.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use crate::records::ensemble_snapshots::SnapshotId;
use crate::words::counter::SnapshotNumber;
use crate::words::name::{EnsembleName, NodeName};
use crate::words::time::Timestamp;

/// Where the data of a new ensemble come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreSource {
    /// The node on which the snapshot is. The first member is on it.
    pub node: NodeName,
    /// The snapshot.
    pub snapshot: SnapshotName,
}

/// The name of a snapshot among those of all ensembles, also of those that were deleted: `IDENTITY-NUMBER-TIME`, as its file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotName {
    /// Name of the ensemble of which it was taken.
    pub ensemble: EnsembleName,
    /// Identity of that ensemble.
    pub identity: String,
    /// Which of its snapshots it is.
    pub id: SnapshotId,
}

/// Why a text is no name of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not the name of a snapshot, such as store-19ab0c3d4e5-3-19ab0c3f000; list them: bellwether ensemble snapshots ENSEMBLE"
)]
pub struct SnapshotNameError {
    /// The text, cut to a readable length.
    pub text: String,
}

impl RestoreSource {
    /// Both, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("snapshot {} on node {}", self.snapshot, self.node)
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.identity, self.id)
    }
}

impl FromStr for SnapshotName {
    type Err = SnapshotNameError;
    fn from_str(text: &str) -> Result<Self, SnapshotNameError> {
        // Its file has the same name.
        let name = text.strip_suffix(".db").unwrap_or(text);
        let read = || {
            let (rest, at) = name.rsplit_once('-')?;
            let (identity, number) = rest.rsplit_once('-')?;
            let (ensemble, created) = identity.rsplit_once('-')?;
            u64::from_str_radix(created, 16).ok()?;
            let id = SnapshotId {
                number: SnapshotNumber::new(number.parse().ok()?),
                at: Timestamp::from_millis(u64::from_str_radix(at, 16).ok()?),
            };
            Some(Self { ensemble: ensemble.parse().ok()?, identity: identity.to_string(), id })
        };
        // As one writes it, and in no other way.
        let read = read().filter(|read| read.to_string() == name);
        read.ok_or_else(|| SnapshotNameError { text: text.chars().take(80).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_of_which_ensemble_a_snapshot_is() {
        let name: SnapshotName = "my-store-1f-12-19ab.db".parse().unwrap();
        assert_eq!((name.ensemble.as_str(), name.identity.as_str()), ("my-store", "my-store-1f"));
        assert_eq!((name.id.number.get(), name.id.at.as_millis()), (12, 0x19ab));
        assert_eq!(name.to_string(), "my-store-1f-12-19ab");
        assert_eq!("my-store-1f-12-19ab".parse(), Ok(name));
    }

    #[test]
    fn what_is_no_name_of_a_snapshot_is_refused() {
        for text in [
            "",
            "store",
            "store-1f-1",
            "store-1f-1-",
            "store-xy-1-2",
            "../../etc-1-1-1",
            "store-1f-01-2",
            "store-1f-1-0x2",
            "Store-1f-1-2",
            "store-1f-1-2.json",
        ] {
            let refused = text.parse::<SnapshotName>().unwrap_err();
            assert!(refused.to_string().contains("is not the name of a snapshot"), "{text}");
        }
    }
}
