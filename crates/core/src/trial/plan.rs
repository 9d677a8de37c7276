//! A plan: what a rollout would bring, told beforehand by the real decider in virtual time on the world as it is. Owns
//! what is looked at, and how a plan is known again once the world has moved.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::sync::Arc;

use crate::records::entity::Entity;
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::trial::simulation::behaviour::{
    AssignedVersion, SimulatedResponse, TargetBehaviour, UniformBehaviour,
};
use crate::trial::simulation::random::RandomStream;
use crate::trial::simulation::timeline::Timeline;
use crate::trial::simulation::{Simulation, SimulationSetup, TimelineDetail};
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// How far ahead a plan looks: a window that opens once a week opens four times.
pub const HORIZON: Span = Span::from_secs(30 * 86_400);

/// What a rollout would bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutPlan {
    /// By version that targets run now: how many.
    pub running: BTreeMap<Option<Version>, u64>,
    /// If every target succeeds: the earliest end.
    pub smooth: Timeline,
    /// If every target fails as soon as it can: the least that a bad version does.
    pub best: Timeline,
    /// If every target fails as late as it can: the most that it does.
    pub worst: Timeline,
    /// What the plan is known by: differs once anything differs that the decision depends on.
    pub fingerprint: u64,
}

/// What is planned.
#[derive(Debug, Clone)]
pub struct PlanInput {
    /// The board as it is.
    pub board: Board,
    /// What is around it.
    pub environment: RolloutEnvironment,
    /// The entity as it would be, with what would be asked.
    pub asked: Arc<Entity>,
    /// When it would begin.
    pub now: Timestamp,
    /// How long a target takes to apply a version.
    pub apply: Span,
}

impl RolloutPlan {
    /// The plan of a case. Costs three rehearsals of the whole rollout.
    #[must_use]
    pub fn of(case: &PlanInput) -> Self {
        let mut running = BTreeMap::new();
        let seen = case.board.targets().filter_map(|target| target.observation);
        for observation in seen {
            *running.entry(observation.running.clone()).or_insert(0) += 1;
        }
        let (apply, policy) = (case.apply, &case.asked.policy);
        Self {
            running,
            smooth: rehearse(case, UniformBehaviour::succeeds(apply)),
            best: rehearse(case, UniformBehaviour::fails_at_once(apply)),
            worst: rehearse(case, UniformBehaviour::fails_at_last(apply, policy)),
            fingerprint: fingerprint(case),
        }
    }
}

/// Everybody, with the domains that the board knows.
struct Placed<'a> {
    everybody: UniformBehaviour,
    board: &'a Board,
}

impl TargetBehaviour for Placed<'_> {
    fn answer(&self, told: &AssignedVersion<'_>, chance: &mut RandomStream) -> SimulatedResponse {
        self.everybody.answer(told, chance)
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

/// A number that differs once anything differs that the decision depends on: the policy and the version asked for, where
/// the entity stands, freezes in force, and which targets there are, what they run, and whether they can be told.
#[must_use]
pub fn fingerprint(case: &PlanInput) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    let wanted = case.asked.wanted.as_ref();
    hash.text(&alloc::format!("{:?}", case.asked.policy));
    hash.text(&alloc::format!("{:?}", wanted.map(|wanted| (&wanted.version, wanted.how, wanted.request))));
    hash.text(&alloc::format!("{:?}", (case.board.progress(), case.asked.hold.is_some())));
    for freeze in case.environment.freezes.iter().filter(|freeze| freeze.is_in_force(case.now)) {
        hash.text(freeze.name.as_str());
    }
    for target in case.board.targets() {
        let Some(observation) = target.observation else { continue };
        hash.text(target.name.as_str());
        hash.text(&observation.running.as_ref().map(ToString::to_string).unwrap_or_default());
        hash.text(observation.contact.as_str());
        hash.text(if observation.held.is_some() { "held" } else { "free" });
    }
    hash.0
}

/// FNV-1a: the same in every version of the program.
struct Hash(u64);

impl Hash {
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
