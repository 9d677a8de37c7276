//! A small world around the decider: records as a store would keep them, targets as they would report.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::decide::rollout::decide;
use bellwether_core::decide::rollout::verdict::RolloutVerdict;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::Entity;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::hook_answers::HookPurpose;
use bellwether_core::records::policy::Policy;
use bellwether_core::records::progress::Progress;
use bellwether_core::records::report::{TargetActivity, TargetHealth};
use bellwether_core::records::rollout::Rollout;
use bellwether_core::records::target::TargetState;
use bellwether_core::rollout::board::Board;
use bellwether_core::rollout::environment::RolloutEnvironment;
use bellwether_core::rollout::hook_answer::{HookAnswer, absorb};
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::rollout::observation::{HealthProof, Observation, PresenceState};
use bellwether_core::rollout::operations::OperationRefusal;
use bellwether_core::rollout::why::WhyTime;
use bellwether_core::words::counter::{AssignmentNumber, RolloutNumber};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

/// Records, sightings, and the board that is kept up to date from them.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) entity: Entity,
    pub(crate) progress: Progress,
    pub(crate) rollouts: BTreeMap<RolloutNumber, Rollout>,
    pub(crate) states: BTreeMap<TargetName, TargetState>,
    pub(crate) observations: BTreeMap<TargetName, Observation>,
    pub(crate) board: Board,
    pub(crate) events: Vec<EventDraft>,
    pub(crate) environment: RolloutEnvironment,
    pub(crate) questions: Vec<HookQuestion>,
}

impl World {
    pub(crate) fn new() -> Self {
        let entity = Entity::new("web".parse().unwrap(), Selector::all(), Policy::default());
        let board = Board::new(Arc::new(entity.clone()), Arc::default(), None);
        Self {
            now: Timestamp::from_millis(1_000_000),
            entity,
            progress: Progress::default(),
            rollouts: BTreeMap::new(),
            states: BTreeMap::new(),
            observations: BTreeMap::new(),
            board,
            events: Vec::new(),
            environment: RolloutEnvironment::default(),
            questions: Vec::new(),
        }
    }

    pub(crate) fn intent(&self, reason: &str) -> Annotation {
        Annotation { by: "alice".parse().unwrap(), reason: reason.into(), at: self.now }
    }

    pub(crate) const fn why_time(&self) -> WhyTime {
        WhyTime { now: self.now, watch: self.environment.watch }
    }

    pub(crate) fn pass_time(&mut self, span: Span) {
        self.now = self.now.plus(span);
    }

    pub(crate) fn operate(&mut self, result: Result<Entity, OperationRefusal>) -> Option<OperationRefusal> {
        match result {
            Ok(entity) => {
                self.entity = entity;
                self.board.fold_entity(Arc::new(self.entity.clone()));
                None
            }
            Err(refusal) => Some(refusal),
        }
    }

    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.entity.policy = policy;
        self.board.fold_entity(Arc::new(self.entity.clone()));
    }

    pub(crate) fn see(&mut self, name: &TargetName, observation: Option<Observation>) {
        match &observation {
            Some(observation) => drop(self.observations.insert(name.clone(), observation.clone())),
            None => drop(self.observations.remove(name)),
        }
        self.board.fold_observation(name, observation);
    }

    /// Changes what is seen of a target.
    pub(crate) fn change(&mut self, name: &TargetName, change: impl FnOnce(&mut Observation)) {
        let mut observation =
            self.observations.get(name).cloned().unwrap_or_else(|| panic!("no target {name}"));
        let (contact, answering) = (observation.contact, observation.answering);
        change(&mut observation);
        if observation.contact != contact {
            observation.contact_since = self.now;
        }
        if observation.answering != answering {
            observation.answered_at = self.now;
        }
        let measures = matches!(observation.proof, HealthProof::Confirmed(_));
        if measures && (observation.answering != answering || observation.healthy_since.is_none()) {
            observation.proof = HealthProof::Confirmed(Span::ZERO);
        }
        self.see(name, Some(observation));
    }

    /// A target reports this activity on its last assignment.
    pub(crate) fn answers(&mut self, name: &TargetName, activity: TargetActivity) {
        let answering = self.assignment(name);
        self.change(name, |observation| {
            (observation.answering, observation.activity) = (answering, activity)
        });
    }

    /// A target reports why it does not accept its orders, or that it does.
    pub(crate) fn refuses(&mut self, name: &TargetName, reason: Option<&str>) {
        let now = self.now;
        self.change(name, |observation| {
            observation.refuses = reason.map(Into::into);
            observation.reported_at = now;
        });
    }

    /// The number of the last assignment of a target.
    pub(crate) fn assignment(&self, name: &TargetName) -> AssignmentNumber {
        self.states.get(name).map(|state| state.assignment).unwrap_or_default()
    }

    /// A target reports that it runs a version well, answering its last assignment.
    pub(crate) fn runs(&mut self, name: &TargetName, version: &Version) {
        let (now, answering) = (self.now, self.assignment(name));
        self.change(name, |observation| {
            let same = observation.running.as_ref() == Some(version);
            observation.healthy_since = observation.healthy_since.filter(|_| same).or(Some(now));
            observation.running = Some(version.clone());
            observation.answering = answering;
            observation.activity = TargetActivity::Nothing;
            observation.health = TargetHealth::Healthy;
            observation.reported_at = now;
        });
    }

    /// A target reports an error of its last assignment.
    pub(crate) fn fails(&mut self, name: &TargetName, attempts: u32, summary: &str) {
        let (answering, evidence) = (self.assignment(name), evidence(summary));
        self.change(name, |observation| {
            observation.answering = answering;
            observation.activity = TargetActivity::Failed { attempts, evidence };
            observation.healthy_since = None;
        });
    }

    pub(crate) fn apply(&mut self, verdict: RolloutVerdict) {
        let changesets = verdict.clone().into_verdict(&self.board.entity().name).changesets;
        self.events.extend(changesets.into_iter().flat_map(|changeset| changeset.events));
        self.apply_first(verdict, usize::MAX);
    }

    /// Writes the first so many operations of a verdict; the rest is lost.
    pub(crate) fn apply_first(&mut self, verdict: RolloutVerdict, writes: usize) {
        let mut left = writes;
        let mut write = || {
            let room = left > 0;
            left = left.saturating_sub(1);
            room
        };
        let RolloutVerdict { rollouts, progress, targets, .. } = verdict;
        for rollout in rollouts.into_iter().filter(|_| write()) {
            if let Some(old) = self.rollouts.get(&rollout.number)
                && old.is_over()
            {
                assert_eq!(old.state, rollout.state, "a final state changed");
            }
            self.rollouts.insert(rollout.number, rollout);
        }
        for progress in progress.into_iter().filter(|_| write()) {
            self.progress = progress;
        }
        self.board.fold_progress(Arc::new(self.progress.clone()), self.active().map(Arc::new));
        for change in targets.into_iter().filter(|_| write()) {
            match &change.state {
                Some(state) => drop(self.states.insert(change.target.clone(), state.clone())),
                None => drop(self.states.remove(&change.target)),
            }
            self.board.fold_state(&change.target, change.state);
        }
    }

    pub(crate) fn active(&self) -> Option<Rollout> {
        self.rollouts.get(&self.progress.active()?).cloned()
    }

    /// The newest rollout, under way or over.
    pub(crate) fn newest(&self) -> Option<&Rollout> {
        self.rollouts.values().next_back()
    }

    /// One pass. Deciding again must write nothing.
    pub(crate) fn decide(&mut self) -> RolloutVerdict {
        let verdict = decide(&self.board, &self.environment, self.now);
        self.apply(verdict.clone());
        let again = decide(&self.board, &self.environment, self.now);
        assert!(again.is_empty(), "deciding again writes {again:#?}\nafter {verdict:#?}");
        assert_eq!(again.wake, verdict.wake, "deciding again wakes at another time");
        assert_eq!(again.questions, verdict.questions, "deciding again asks something else");
        self.questions.clone_from(&verdict.questions);
        verdict
    }

    /// A controller answers the question it was asked last.
    pub(crate) fn answer(&mut self, asked: HookPurpose, answer: HookAnswer) -> Option<()> {
        let question = self.questions.iter().find(|question| question.asked() == asked)?.clone();
        let gone = if let HookAnswer::Removed(gone) = &answer { gone.clone() } else { Vec::new() };
        let answers = absorb(&self.board, &self.environment.answers, &question, answer, self.now);
        for (name, word) in &answers.words {
            self.change(name, |observation| observation.word = Some(word.clone()));
        }
        let trouble = answers.troubles.contains_key(&asked);
        gone.iter().filter(|_| !trouble).for_each(|name| self.see(name, None));
        self.environment.answers = Arc::new(answers);
        Some(())
    }

    /// The board as a server that has just started would build it.
    pub(crate) fn rebuilt(&self) -> Board {
        let names: std::collections::BTreeSet<_> =
            self.observations.keys().chain(self.states.keys()).collect();
        let targets = names
            .into_iter()
            .map(|name| (name.clone(), self.observations.get(name).cloned(), self.states.get(name).cloned()));
        let (entity, progress) = (self.entity.clone(), self.progress.clone());
        Board::build(Arc::new(entity), Arc::new(progress), self.active().map(Arc::new), targets)
    }
}

pub(crate) fn evidence(summary: &str) -> Arc<Evidence> {
    Arc::new(Evidence { summary: summary.into(), ..Evidence::default() })
}

/// A target as it is when it first reports, healthy for an hour.
pub(crate) fn newcomer(version: Option<&Version>, now: Timestamp) -> Observation {
    Observation {
        soak_failure: None,
        agent_restarted: false,
        answered_at: Timestamp::EPOCH,
        proof: HealthProof::Contact,
        running: version.cloned(),
        answering: AssignmentNumber::ZERO,
        activity: TargetActivity::Nothing,
        health: TargetHealth::Healthy,
        healthy_since: version
            .map(|_| now.minus(Span::from_secs(3_600).min(Span::from_millis(now.as_millis())))),
        reported_at: now,
        contact: PresenceState::Up,
        contact_since: Timestamp::EPOCH,
        held: None,
        refuses: None,
        drained: false,
        labels: Labels::default(),
        data: Default::default(),
        word: None,
    }
}
