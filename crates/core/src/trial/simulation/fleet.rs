//! A made-up fleet: targets that all run a good version and are asked for a new one. Owns what such a board looks like;
//! nothing of it is ever stored.

use alloc::string::String;
use alloc::sync::Arc;

use crate::records::entity::{Entity, RequestKind, VersionRequest};
use crate::records::policy::Policy;
use crate::records::progress::Progress;
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::rollout::board::Board;
use crate::rollout::observation::{Observation, PresenceState};
use crate::words::counter::{AssignmentNumber, RequestNumber, RolloutNumber};
use crate::words::label::Labels;
use crate::words::name::{Actor, EntityName, TargetName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// What a made-up fleet is, and is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedFleet {
    /// The entity's name.
    pub entity: EntityName,
    /// Who asks.
    pub by: Actor,
    /// What everybody runs; last known good.
    pub good: Version,
    /// What is asked for.
    pub wanted: Version,
    /// When it is asked for.
    pub at: Timestamp,
}

impl SimulatedFleet {
    /// The board of these targets, which come in name order, each once, with what is heard of them and their labels.
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
            reported_at: self.at,
            contact: PresenceState::Up,
            held: None,
            labels: Labels::default(),
            word: None,
        };
        let state = TargetState {
            version: self.good.clone(),
            rollout: RolloutNumber::new(1),
            purpose: AssignmentPurpose::Update,
            assignment: AssignmentNumber::new(1),
            assigned_at: Timestamp::EPOCH,
            clock: DeadlineClock::Running { from: Timestamp::EPOCH },
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
            by: self.by.clone(),
            why: String::new(),
            at: self.at,
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
