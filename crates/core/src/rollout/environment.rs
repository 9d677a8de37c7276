//! The inputs of a decision besides the entity's own board: freezes, needed services, and the answers of its
//! hooks. Values only; callers collect them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::records::freeze::{Freeze, FreezeKind};
use crate::records::hook_answers::HookAnswers;
use crate::rollout::observation::Observation;
use crate::rollout::stores::StoreEnvironment;
use crate::words::counter::Epoch;
use crate::words::label::Labels;
use crate::words::name::{EntityName, TargetName};
use crate::words::node_data::NodeData;
use crate::words::time::{Span, Timestamp};

/// The inputs of a decision besides the board.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutEnvironment {
    /// Freezes that may cover the entity or some of its targets, by name; those that have ended are ignored.
    pub freezes: Vec<Arc<Freeze>>,
    /// Number of functional instances, by service. Services that nothing registered are absent.
    pub services: BTreeMap<EntityName, u64>,
    /// The data stores under the probe that the policy names; `None` if it names none.
    pub stores: Option<Arc<StoreEnvironment>>,
    /// The answers of the entity's hooks.
    pub answers: Arc<HookAnswers>,
    /// Since when targets are watched.
    pub watch: Watch,
    /// Epoch of the installation: assignments have greater numbers.
    pub epoch: Epoch,
}

/// Since when the control plane could hear every target. The absence of a report is evidence only while somebody
/// listened and the target could have reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    /// Start of the watch, by the server's clock: this leader began, or a server came or went.
    pub since: Timestamp,
    /// How long a node that has lost its server may count as in contact. Until it has passed, contact proves
    /// nothing.
    pub grace: Span,
    /// The longest time for which a node can be out of contact, or stand still, before that is noticed. A deadline is judged
    /// only after as long again, so that the whole deadline was observed, whatever was not noticed in it.
    pub detection: Span,
}

impl Watch {
    /// Time from which contact is evidence.
    #[must_use]
    pub const fn settled(&self) -> Timestamp {
        self.since.plus(self.grace)
    }

    /// Whether time alone may decide about a target at `now`: everyone had the time to report, or it did, during the watch
    /// or so shortly before that its contact counts all the same.
    #[must_use]
    pub fn covers(&self, observation: &Observation, now: Timestamp) -> bool {
        now >= self.settled() || observation.reported_at.plus(self.grace) >= self.since
    }
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
    pub fn freeze_of(
        &self,
        target: &TargetName,
        labels: &Labels,
        data: &NodeData,
        now: Timestamp,
    ) -> Option<&Freeze> {
        let mut all = self.freezes.iter().map(|freeze| &**freeze);
        all.find(|freeze| freeze.is_in_force(now) && freeze.picks(target, labels, data))
    }
}
