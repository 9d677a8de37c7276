//! Freezes: while one is in force, no target within its scope is updated. Written only by operations.

use alloc::format;
use alloc::string::String;

use super::annotation::Annotation;
use crate::words::label::Labels;
use crate::words::name::{EntityName, FreezeName, TargetName};
use crate::words::node_data::NodeData;
use crate::words::selector::Selector;
use crate::words::time::Timestamp;

/// Name of the stop that `stop-everything` sets.
pub const EMERGENCY_STOP: &str = "stop-everything";

/// The command that ends the freeze of this name; a global one is of all namespaces.
#[must_use]
pub fn lift_command(name: &FreezeName, is_global: bool) -> String {
    let flag = if is_global { " --all-namespaces" } else { "" };
    match name.as_str() {
        EMERGENCY_STOP => format!("bellwether {EMERGENCY_STOP} --off{flag}"),
        name => format!("bellwether freeze off {name}{flag}"),
    }
}

/// A freeze; while it is in force, no target within its scope is updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    /// Name of the freeze, unique in its namespace, or among the global ones.
    pub name: FreezeName,
    /// What it covers: within its namespace, or in every namespace for a global freeze.
    pub scope: FreezeScope,
    /// Whether rollbacks continue.
    pub kind: FreezeKind,
    /// Who set it, when and why.
    pub annotation: Annotation,
    /// Time it ends without an operation; `None` if it lasts until it is removed.
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
    /// Targets that match this selector, of every entity.
    Targets(Selector),
}

/// How strict a freeze is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeKind {
    /// No target starts updating; rollbacks continue, and targets in flight finish.
    Freeze,
    /// Nothing is dispatched, rollbacks included, and deadlines stand still.
    Stop,
}

impl Freeze {
    /// Whether it is in force at `now`: it has no end, or the end is later.
    #[must_use]
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// That it is in force, and why, in one line.
    #[must_use]
    pub fn line(&self) -> String {
        self.annotation.describe(&format!("{} is in force, set", self.name))
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

    /// Whether its selector matches a target.
    #[must_use]
    pub fn picks(&self, target: &TargetName, labels: &Labels, data: &NodeData) -> bool {
        match &self.scope {
            FreezeScope::Everything | FreezeScope::Entity(_) => false,
            FreezeScope::Targets(selector) => selector.picks(target.as_str(), labels, data),
        }
    }
}
