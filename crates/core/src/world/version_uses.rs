//! Which numbered versions, such as revisions of profiles, are in use: how many entities, targets and reports name each.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;

use crate::words::map::Map;
use crate::words::name::{EntityName, NodeName, TargetName};
use crate::words::version::Version;

/// What names versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum VersionUser {
    /// An entity: the versions requested, updated to, or to roll back to.
    Entity(EntityName),
    /// A target of an entity: the version assigned to it.
    Target(EntityName, TargetName),
    /// The report of a node: the versions that run on it.
    Report(NodeName),
}

/// Numbered versions, each with the number of its users.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionUses {
    of: Map<VersionUser, Arc<BTreeSet<Version>>>,
    users: Map<Version, u64>,
}

impl VersionUses {
    /// Whether anything names a numbered version.
    #[must_use]
    pub fn has(&self, version: &Version) -> bool {
        self.users.contains_key(version)
    }

    /// Replaces the versions that a user names; those without a number are left out.
    pub(super) fn set<'a>(&mut self, user: VersionUser, versions: impl Iterator<Item = &'a Version>) {
        let numbered = versions.filter(|version| version.as_numbered().is_some());
        let now: BTreeSet<Version> = numbered.cloned().collect();
        let before = self.of.get(&user).cloned().unwrap_or_default();
        if *before == now {
            return;
        }
        for version in before.difference(&now) {
            match self.users.get(version).copied() {
                Some(users) if users > 1 => self.users.insert_mut(version.clone(), users - 1),
                Some(_) | None => drop(self.users.remove_mut(version)),
            }
        }
        for version in now.difference(&before) {
            let users = self.users.get(version).copied().unwrap_or_default();
            self.users.insert_mut(version.clone(), users + 1);
        }
        if now.is_empty() {
            self.of.remove_mut(&user);
        } else {
            self.of.insert_mut(user, Arc::new(now));
        }
    }
}
