//! The inputs of a decision besides the entity's own board: freezes, needed services, and the answers of its
//! hooks. Values only; callers collect them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::records::freeze::{Freeze, FreezeKind};
use crate::records::hook_answers::HookAnswers;
use crate::words::label::Labels;
use crate::words::name::{EntityName, TargetName};
use crate::words::time::Timestamp;

/// The inputs of a decision besides the board.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutEnvironment {
    /// Freezes that may cover the entity or some of its targets, by name; those that have ended are ignored.
    pub freezes: Vec<Arc<Freeze>>,
    /// Number of functional instances, by service. Services that nothing registered are absent.
    pub services: BTreeMap<EntityName, u64>,
    /// The answers of the entity's hooks.
    pub answers: Arc<HookAnswers>,
}

impl RolloutEnvironment {
    /// The first freeze in force that covers all of an entity; stops come before other freezes.
    #[must_use]
    pub fn freeze(&self, entity: &EntityName, now: Timestamp) -> Option<&Freeze> {
        self.stop(entity, now).or_else(|| self.covering(entity, now).next())
    }

    /// The first stop in force that covers all of an entity.
    #[must_use]
    pub fn stop(&self, entity: &EntityName, now: Timestamp) -> Option<&Freeze> {
        self.covering(entity, now).find(|freeze| freeze.kind == FreezeKind::Stop)
    }

    fn covering(&self, entity: &EntityName, now: Timestamp) -> impl Iterator<Item = &Freeze> {
        let entity = entity.clone();
        let all = self.freezes.iter().map(|freeze| &**freeze);
        all.filter(move |freeze| freeze.is_in_force(now) && freeze.covers(&entity))
    }

    /// The first freeze in force whose selector matches a target.
    #[must_use]
    pub fn freeze_of(&self, target: &TargetName, labels: &Labels, now: Timestamp) -> Option<&Freeze> {
        let mut all = self.freezes.iter().map(|freeze| &**freeze);
        all.find(|freeze| freeze.is_in_force(now) && freeze.picks(target, labels))
    }
}
