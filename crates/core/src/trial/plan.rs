//! Plans: the course of a rollout, computed in advance by the real decider in virtual time from the present
//! world. Owns the inputs, and the fingerprint that detects when they have changed.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::sync::Arc;

use crate::records::entity::Entity;
use crate::records::rollout::WaivedPauses;
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::rollout::thresholds::{RolloutSize, Thresholds};
use crate::trial::simulation::behaviour::{
    AssignedVersion, SimulatedResponse, TargetBehaviour, UniformBehaviour,
};
use crate::trial::simulation::timeline::Timeline;
use crate::trial::simulation::{Simulation, SimulationSetup, TimelineDetail};
use crate::words::digest::Digest;
use crate::words::name::TargetName;
use crate::words::random::RandomStream;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// How far a plan looks ahead: a weekly window opens four times within it.
pub const HORIZON: Span = Span::from_secs(30 * 86_400);

/// The predicted course of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutPlan {
    /// Number of targets per version that they run now.
    pub running: BTreeMap<Option<Version>, u64>,
    /// The policy's limits as numbers of the present targets.
    pub thresholds: Thresholds,
    /// If every target succeeds: the earliest end.
    pub smooth: Timeline,
    /// If every target fails as early as it can: the least damage of a bad version.
    pub best: Timeline,
    /// If every target fails as late as it can: the most damage of a bad version.
    pub worst: Timeline,
    /// Fingerprint of the inputs: differs once anything differs that the decision depends on.
    pub fingerprint: u64,
}

/// The inputs of a plan.
#[derive(Debug, Clone)]
pub struct PlanInput {
    /// The present board.
    pub board: Board,
    /// The present environment.
    pub environment: RolloutEnvironment,
    /// The entity with the planned request.
    pub asked: Arc<Entity>,
    /// Planned start.
    pub now: Timestamp,
    /// Time a target takes to apply a version.
    pub apply: Span,
}

impl RolloutPlan {
    /// The plan for these inputs. Costs three simulations of the whole rollout.
    #[must_use]
    pub fn of(case: &PlanInput) -> Self {
        let mut running = BTreeMap::new();
        let seen = case.board.targets().filter_map(|target| target.observation);
        for observation in seen {
            *running.entry(observation.running.clone()).or_insert(0) += 1;
        }
        let (apply, policy) = (case.apply, &case.asked.policy);
        let targets = case.board.counts().targets;
        let size = RolloutSize { targets, enrolled: targets, failing_before: 0 };
        Self {
            running,
            thresholds: Thresholds::of(policy, size, WaivedPauses::default()),
            smooth: rehearse(case, UniformBehaviour::succeeds(apply)),
            best: rehearse(case, UniformBehaviour::fails_at_once(apply)),
            worst: rehearse(case, UniformBehaviour::fails_at_last(apply, policy)),
            fingerprint: fingerprint(case),
        }
    }
}

/// Uniform behaviour, with the domains of the board's targets.
struct Placed<'a> {
    everybody: UniformBehaviour,
    board: &'a Board,
}

impl TargetBehaviour for Placed<'_> {
    fn answer(&self, assigned: &AssignedVersion<'_>, chance: &mut RandomStream) -> SimulatedResponse {
        self.everybody.answer(assigned, chance)
    }

    fn domain(&self, target: &TargetName) -> Option<Arc<str>> {
        let domain = self.board.entity().policy.domain.as_ref()?;
        self.board.target(target)?.observation?.labels.shared(&domain.key)
    }
}

fn rehearse(case: &PlanInput, everybody: UniformBehaviour) -> Timeline {
    let mut board = case.board.clone();
    board.fold_entity(case.asked.clone());
    let behaviour = Placed { everybody, board: &board };
    let setup = SimulationSetup {
        environment: case.environment.clone(),
        start: case.now,
        horizon: HORIZON,
        keep: TimelineDetail { samples: 2, batches: 1_000 },
        ..SimulationSetup::of(board.clone())
    };
    Simulation::run(setup, &behaviour)
}

/// A number that differs once anything differs that the decision depends on: the policy and the requested
/// version, the entity's progress, freezes in force, and the targets: which ones, what they run, and whether
/// they can be assigned a version.
#[must_use]
pub fn fingerprint(case: &PlanInput) -> u64 {
    let mut digest = Digest::default();
    let wanted = case.asked.wanted.as_ref();
    digest.add(alloc::format!("{:?}", case.asked.policy).as_bytes());
    digest.add(
        alloc::format!("{:?}", wanted.map(|wanted| (&wanted.version, wanted.how, wanted.request))).as_bytes(),
    );
    digest.add(alloc::format!("{:?}", (case.board.progress(), case.asked.hold.is_some())).as_bytes());
    for freeze in case.environment.freezes.iter().filter(|freeze| freeze.is_in_force(case.now)) {
        digest.add(freeze.name.as_str().as_bytes());
    }
    for target in case.board.targets() {
        let Some(observation) = target.observation else { continue };
        digest.add(target.name.as_str().as_bytes());
        digest.add(observation.running.as_ref().map(ToString::to_string).unwrap_or_default().as_bytes());
        digest.add(observation.contact.as_str().as_bytes());
        digest.add(if observation.held.is_some() { b"held" } else { b"free" });
    }
    digest.finish()
}
