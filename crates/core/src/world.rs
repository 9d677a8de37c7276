//! One immutable picture of everything remembered, at one revision, with the indexes deciders need.
//!
//! Cheap to clone: its maps share what did not change. It grows only by folding changes, one record at a time.

pub mod fleet;
mod fold;

use alloc::string::String;
use alloc::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::records::key::Key;
use crate::records::token::{JoinToken, Token};
use crate::words::counter::Revision;
use crate::words::name::Namespace;
use fleet::Fleet;

/// An ordered map that shares what did not change between its copies.
pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

/// A record, and the revision of its last write: what a change of it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<T> {
    /// The record.
    pub value: Arc<T>,
    /// The store revision of its last write.
    pub revision: Revision,
}

/// Everything remembered, at one revision.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Which revision of the store this is.
    pub revision: Revision,
    /// By namespace.
    pub fleets: Map<Namespace, Fleet>,
    /// By the secret's hash.
    pub tokens: Map<String, Kept<Token>>,
    /// By the secret's hash.
    pub join_tokens: Map<String, Kept<JoinToken>>,
}

/// The revision of an optional record: zero when there is none.
#[must_use]
fn revision_of<T>(kept: Option<&Kept<T>>) -> Revision {
    kept.map_or(Revision::ZERO, |kept| kept.revision)
}

impl World {
    /// The revision of a record's last write; zero when there is none.
    #[must_use]
    pub fn revision(&self, namespace: &Namespace, key: &Key) -> Revision {
        match (key, self.fleets.get(namespace)) {
            (Key::Token(hash), _) => revision_of(self.tokens.get(hash)),
            (Key::JoinToken(hash), _) => revision_of(self.join_tokens.get(hash)),
            (_, Some(fleet)) => fleet.revision(key),
            (_, None) => Revision::ZERO,
        }
    }
}

impl Fleet {
    fn revision(&self, key: &Key) -> Revision {
        match key {
            Key::Node(name) => revision_of(self.nodes.get(name)),
            Key::Presence(name) => revision_of(self.presences.get(name)),
            Key::Report(name) => revision_of(self.reports.get(name)),
            Key::Order(name) => revision_of(self.orders.get(name)),
            Key::Entity(name) => revision_of(self.entities.get(name)),
            Key::Progress(name) => revision_of(self.progresses.get(name)),
            Key::Rollout(name, number) => revision_of(self.rollouts.get(&(name.clone(), *number))),
            Key::Target(entity, target) => {
                self.targets.get(&(entity.clone(), target.clone())).copied().unwrap_or_default()
            }
            Key::Profile(name) => revision_of(self.profiles.get(name)),
            Key::Edition(name, number) => revision_of(self.editions.get(&(name.clone(), *number))),
            Key::Event(_) | Key::Token(_) | Key::JoinToken(_) => Revision::ZERO,
        }
    }
}
