//! The health of a store, as it knows it itself. Never decides what follows from it.

use std::path::PathBuf;

use tokio::time::Instant;

/// The health of a store. etcd is polled; the embedded store knows what its last write met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The back end: `memory`, `embedded` or `etcd`.
    pub engine: &'static str,
    /// Version of the back end, if it is another program.
    pub version: Option<String>,
    /// Its address, if it is remote.
    pub endpoints: Vec<String>,
    /// Size on disk in bytes, history included.
    pub size_bytes: Option<u64>,
    /// Largest size in bytes, if known.
    pub quota_bytes: Option<u64>,
    /// Its own warnings, in its words.
    pub alarms: Vec<String>,
    /// Whether it can be used.
    pub condition: Condition,
    /// What was left out at the end of its journal when it was opened, or earlier.
    pub cut: Option<CutTail>,
}

/// A group of changes at the end of a journal that was not whole and was left out at a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutTail {
    /// A copy of the journal, which a person removes who has seen to it; none if it could not be kept.
    pub copy: Option<PathBuf>,
    /// Where it was, if it was left out at this start.
    pub now: Option<JournalCut>,
}

/// Where a group was in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalCut {
    /// Its first byte.
    pub at: u64,
    /// Its length, as it claims.
    pub bytes: u64,
}

impl CutTail {
    /// What a person should know and do.
    #[must_use]
    pub fn warning(&self) -> String {
        let done =
            self.copy.as_ref().map_or(String::new(), |copy| format!("; then remove {}", copy.display()));
        format!(
            "a start left out the last group of changes in the journal, which was not whole: after a power cut nobody was told of them; if \
             the disk damaged it, they were acknowledged, and fencing numbers may be issued again; if that may be, compare with a backup, \
             and stop the server and begin a new epoch: bellwether server restore --in-place{done}"
        )
    }
}

/// Whether a store can be used. The reasons say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It takes writes.
    Writable,
    /// It answers reads and keeps leases alive, and refuses writes and new leases.
    ReadOnly {
        /// Why, and what to do.
        reason: String,
        /// Since when.
        since: Instant,
    },
    /// It does not answer.
    Unreachable {
        /// Why, and what to do.
        reason: String,
        /// Since when.
        since: Instant,
    },
    /// Its disk failed, or something in it is damaged: it takes no change until it is opened again, and what it still answers
    /// may not be durable.
    Failed {
        /// Why, and what to do.
        reason: String,
        /// Since when.
        since: Instant,
    },
}

impl Health {
    /// A healthy store.
    pub(crate) fn writable(engine: &'static str) -> Self {
        Self {
            engine,
            version: None,
            endpoints: Vec::new(),
            size_bytes: None,
            quota_bytes: None,
            alarms: Vec::new(),
            condition: Condition::Writable,
            cut: None,
        }
    }
}

/// Share of its quota, in percent, from which a store is reported to fill up: leaves some hours of a busy fleet.
const FILLING: u64 = 80;

impl Health {
    /// What is wrong with this release of the store, with what to do about it.
    #[must_use]
    pub fn defects(&self) -> Option<String> {
        let version = self.version.as_deref().filter(|_| self.engine == "etcd")?;
        let fixed = if is_before(version, FIXED_3_4) {
            "3.4.20"
        } else if is_before(version, FIXED_3_5) && !is_before(version, [3, 5, 0]) {
            "3.5.7"
        } else {
            return None;
        };
        Some(format!(
            "etcd {version} has known defects by which members may come to differ or lose what they acknowledged, and \
             while it has no space it refuses even what makes room: upgrade it to {fixed} or later"
        ))
    }

    /// What was left out of the journal, with what to do about it.
    #[must_use]
    pub fn cut_warning(&self) -> Option<String> {
        self.cut.as_ref().map(CutTail::warning)
    }

    /// What will be wrong soon, with what to do about it; empty for a healthy store.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let is_3_4 = |version: &str| is_before(version, [3, 5, 0]);
        let is_old = self.engine == "etcd" && self.version.as_deref().is_some_and(is_3_4);
        let old = is_old.then(|| {
            "etcd 3.4 may lose or repeat what it tells of changes, and may renew leases that ended; all of that is lived \
             with, at the price of more reading: use 3.5.8 or later when you can"
                .to_owned()
        });
        let used = self
            .size_bytes
            .zip(self.quota_bytes)
            .map(|(size, quota)| size.saturating_mul(100).checked_div(quota).unwrap_or_default());
        let full = used.filter(|used| *used > FILLING).map(|used| {
            format!(
                "{used}% of its quota are used; past it no change is taken: defragment it, or raise --quota-backend-bytes"
            )
        });
        self.cut_warning().into_iter().chain(self.defects()).chain(old).chain(full).collect()
    }
}

/// The releases in which the known defects of a series that lose data are fixed.
const FIXED_3_4: [u32; 3] = [3, 4, 20];
const FIXED_3_5: [u32; 3] = [3, 5, 7];

/// Whether a version such as `3.4.23` is before another. One that does not read as a version is not.
fn is_before(version: &str, other: [u32; 3]) -> bool {
    let digits =
        |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>();
    let numbers: Result<Vec<u32>, _> = version.splitn(3, '.').map(digits).collect();
    numbers.is_ok_and(|numbers| numbers.len() == 3 && numbers.as_slice() < other.as_slice())
}

impl Condition {
    /// Read-only from now on, unless it was before.
    pub(crate) fn read_only(&self, reason: String) -> Self {
        Self::ReadOnly { reason, since: Instant::now() }.since_before(self)
    }

    /// Unreachable from now on, unless it was before.
    pub(crate) fn unreachable(&self, reason: String) -> Self {
        Self::Unreachable { reason, since: Instant::now() }.since_before(self)
    }

    /// Failed from now on, unless it was before; the first reason stays.
    pub(crate) fn failed(&self, reason: String) -> Self {
        match self {
            Self::Failed { .. } => self.clone(),
            Self::Writable | Self::ReadOnly { .. } | Self::Unreachable { .. } => {
                Self::Failed { reason, since: Instant::now() }
            }
        }
    }

    /// This condition, with the start of the previous one if that was of the same kind.
    pub(crate) fn since_before(self, before: &Self) -> Self {
        match (self, before) {
            (Self::ReadOnly { reason, .. }, Self::ReadOnly { since, .. }) => {
                Self::ReadOnly { reason, since: *since }
            }
            (Self::Unreachable { reason, .. }, Self::Unreachable { since, .. }) => {
                Self::Unreachable { reason, since: *since }
            }
            (
                new,
                Self::Writable | Self::ReadOnly { .. } | Self::Unreachable { .. } | Self::Failed { .. },
            ) => new,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(version: &str, size: u64, quota: Option<u64>) -> Health {
        let of_etcd = Health::writable("etcd");
        Health { version: Some(version.to_owned()), size_bytes: Some(size), quota_bytes: quota, ..of_etcd }
    }

    #[test]
    fn an_old_etcd_and_one_that_fills_up_are_warned_of_and_no_other() {
        let warned = |health: Health| health.warnings().len();
        assert_eq!(warned(Health::writable("embedded")), 0);
        assert_eq!(warned(health("3.6.1", 80, Some(100))), 0);
        assert_eq!(warned(health("3.40.0", 99, None)), 0, "what the quota is it did not say");
        assert!(health("3.4.23", 1, Some(100)).warnings()[0].contains("use 3.5.8 or later"));
        assert!(health("3.6.1", 81, Some(100)).warnings()[0].starts_with("81% of its quota"));
        assert_eq!(warned(health("3.4.23", 99, Some(100))), 2);
    }

    #[test]
    fn a_release_with_defects_that_lose_data_is_told_with_the_one_that_has_none() {
        let told = |version: &str| health(version, 1, None).defects();
        for (version, fixed) in
            [("3.4.19", "3.4.20"), ("3.4.0", "3.4.20"), ("3.5.0", "3.5.7"), ("3.5.6", "3.5.7")]
        {
            let told = told(version).unwrap();
            assert!(told.starts_with(&format!("etcd {version} has")), "{told}");
            assert!(told.ends_with(&format!("upgrade it to {fixed} or later")), "{told}");
            assert!(health(version, 1, None).warnings().contains(&told), "once, among the warnings");
        }
        assert!(told("3.5.0-rc.1").is_some(), "a release candidate is no better");
        for version in ["3.4.20", "3.4.23", "3.5.7", "3.5.16", "3.6.0", "4.0.0", "main"] {
            assert_eq!(told(version), None, "{version}");
        }
    }
}
