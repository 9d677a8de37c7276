//! A made-up fleet: targets that all run a good version and are asked for a new one. Owns what such a board looks like;
//! nothing of it is ever stored.

use alloc::string::String;
use alloc::sync::Arc;

use crate::records::entity::{Entity, How, Wanted};
use crate::records::policy::Policy;
use crate::records::progress::Progress;
use crate::records::target::{DeadlineClock, Outcome, Purpose, TargetState};
use crate::rollout::board::Board;
use crate::rollout::sighting::{Contact, Doing, Health, Sighting};
use crate::words::counter::{AssignmentNumber, RequestNumber, RolloutNumber};
use crate::words::label::Labels;
use crate::words::name::{Actor, EntityName, TargetName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// What a made-up fleet is, and is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
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

impl Fleet {
    /// The board of these targets, which come in name order, each once, with what is heard of them and their labels.
    #[must_use]
    pub fn board(
        &self,
        policy: &Policy,
        targets: impl Iterator<Item = (TargetName, Contact, Labels)>,
    ) -> Board {
        let sighting = Sighting {
            running: Some(self.good.clone()),
            answering: AssignmentNumber::new(1),
            doing: Doing::Nothing,
            health: Health::Healthy,
            healthy_since: Some(Timestamp::EPOCH),
            reported_at: self.at,
            contact: Contact::Up,
            held: None,
            labels: Labels::default(),
            word: None,
        };
        let state = TargetState {
            version: self.good.clone(),
            rollout: RolloutNumber::new(1),
            purpose: Purpose::Turn,
            assignment: AssignmentNumber::new(1),
            assigned_at: Timestamp::EPOCH,
            clock: DeadlineClock::Running { from: Timestamp::EPOCH },
            outcome: Outcome::Succeeded { at: Timestamp::EPOCH, failed_later: None },
        };
        let member = |(name, contact, labels)| {
            (name, Some(Sighting { contact, labels, ..sighting.clone() }), Some(state.clone()))
        };
        Board::build(Arc::new(self.entity(policy)), Arc::new(self.progress()), None, targets.map(member))
    }

    fn entity(&self, policy: &Policy) -> Entity {
        let wanted = Wanted {
            request: RequestNumber::new(2),
            version: self.wanted.clone(),
            how: How::Start,
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
