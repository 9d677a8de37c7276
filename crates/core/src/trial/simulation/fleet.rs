//! Simulated fleets: targets that all run a good version, with a request for a new one. Owns the board of
//! such a fleet; nothing of it is ever stored.

use alloc::sync::Arc;

use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, RequestKind, VersionRequest};
use crate::records::policy::Policy;
use crate::records::progress::Progress;
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::rollout::board::Board;
use crate::rollout::observation::{HealthProof, Observation, PresenceState};
use crate::words::counter::{AssignmentNumber, RequestNumber, RolloutNumber};
use crate::words::label::Labels;
use crate::words::name::{Actor, EntityName, TargetName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// A simulated fleet and the version requested for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedFleet {
    /// Name of the entity.
    pub entity: EntityName,
    /// Author of the request.
    pub by: Actor,
    /// The version that every target runs; last known good.
    pub good: Version,
    /// The requested version.
    pub wanted: Version,
    /// Time of the request.
    pub at: Timestamp,
}

impl SimulatedFleet {
    /// The board of these targets, which must come in name order, each once, with its presence and labels.
    #[must_use]
    pub fn board(
        &self,
        policy: &Policy,
        targets: impl Iterator<Item = (TargetName, PresenceState, Labels)>,
    ) -> Board {
        let observation = Observation {
            running: Some(self.good.clone()),
            answering: AssignmentNumber::new(1),
            activity: TargetActivity::Nothing,
            health: TargetHealth::Healthy,
            healthy_since: Some(Timestamp::EPOCH),
            soak_failure: None,
            agent_restarted: false,
            proof: HealthProof::Contact,
            answered_at: Timestamp::EPOCH,
            reported_at: self.at,
            contact: PresenceState::Up,
            contact_since: Timestamp::EPOCH,
            held: None,
            refuses: None,
            drained: false,
            labels: Labels::default(),
            data: Default::default(),
            word: None,
        };
        let state = TargetState {
            soak: policy.soak,
            failing_before: None,
            version: self.good.clone(),
            rollout: RolloutNumber::new(1),
            purpose: AssignmentPurpose::Update,
            assignment: AssignmentNumber::new(1),
            assigned_at: Timestamp::EPOCH,
            clock: DeadlineClock::Running { from: Timestamp::EPOCH, set_at: Timestamp::EPOCH },
            outcome: AssignmentOutcome::Succeeded { at: Timestamp::EPOCH, failed_later: None },
        };
        let member = |(name, contact, labels)| {
            (name, Some(Observation { contact, labels, ..observation.clone() }), Some(state.clone()))
        };
        Board::build(Arc::new(self.entity(policy)), Arc::new(self.progress()), None, targets.map(member))
    }

    fn entity(&self, policy: &Policy) -> Entity {
        let wanted = VersionRequest {
            request: RequestNumber::new(2),
            version: self.wanted.clone(),
            how: RequestKind::Start,
            annotation: Annotation::of(self.by.clone(), self.at),
            policy: None,
        };
        let entity = Entity::new(self.entity.clone(), Selector::all(), policy.clone());
        Entity { wanted: Some(wanted), ..entity }
    }

    fn progress(&self) -> Progress {
        Progress {
            target: Some(self.good.clone()),
            last_known_good: Some(self.good.clone()),
            last: RolloutNumber::new(1),
            handled: RequestNumber::new(1),
            ..Progress::default()
        }
    }
}
