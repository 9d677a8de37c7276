//! Freezes: while one is in force, nothing new is handed out within its scope. Written only by people's operations.

use alloc::string::String;

use crate::words::label::Labels;
use crate::words::name::{Actor, EntityName, FreezeName, TargetName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;

/// While it is in force, nothing new is handed out within its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    /// Its name.
    pub name: FreezeName,
    /// What it covers, within its namespace, or within all of them when it has none.
    pub scope: FreezeScope,
    /// How strictly.
    pub strength: FreezeKind,
    /// Whose it is.
    pub by: Actor,
    /// Why, in their words.
    pub why: String,
    /// Since when.
    pub at: Timestamp,
    /// When it ends by itself; `None` when only a person ends it.
    pub until: Option<Timestamp>,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
}

/// What a freeze covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreezeScope {
    /// Every entity.
    Everything,
    /// This entity.
    Entity(EntityName),
    /// Targets that this picks, of every entity.
    Targets(Selector),
}

/// How strict a freeze is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeKind {
    /// No target takes its turn; a rollback goes on, and what is in flight comes to its end.
    Freeze,
    /// Nothing at all is handed out, rollbacks included, and deadlines stand still.
    Stop,
}

impl Freeze {
    /// Whether it is in force at `now`.
    #[must_use]
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Whether it covers all of an entity.
    #[must_use]
    pub fn covers(&self, entity: &EntityName) -> bool {
        match &self.scope {
            FreezeScope::Everything => true,
            FreezeScope::Entity(name) => name == entity,
            FreezeScope::Targets(_) => false,
        }
    }

    /// Whether it covers a target by its selector.
    #[must_use]
    pub fn picks(&self, target: &TargetName, labels: &Labels) -> bool {
        match &self.scope {
            FreezeScope::Everything | FreezeScope::Entity(_) => false,
            FreezeScope::Targets(selector) => selector.picks(target.as_str(), labels),
        }
    }
}
