//! The rollout engine as a library: entities, their targets and their history in memory, decided after every
//! call. Owns no clock: every call gets the time as an argument. An [`EngineStore`] keeps it over restarts.
//!
//! # Blue and green
//!
//! The caller asks the policy's hooks: the engine returns its questions, and the caller passes the answers
//! back. Here a controller starts green machines beside the blue ones, and removes the blue ones once the
//! version is good; if the version were bad, no blue machine would have been touched. A machine that joins on the
//! version of the rollout belongs to it: its failure counts.
//!
//! ```
//! use bellwether_core::records::policy::hook::{Hook, Hooks};
//! use bellwether_core::records::policy::{Policy, PolicyDraft};
//! use bellwether_core::rollout::hook_answer::{AnsweredQuestion, HookAnswer};
//! use bellwether_core::trial::engine::{RolloutEngine, TargetReport};
//! use bellwether_core::records::annotation::Annotation;
//! use bellwether_core::rollout::hook_question::HookQuestion;
//! use bellwether_core::words::time::{Span, Timestamp};
//!
//! let (mut engine, namespace, entity) = (RolloutEngine::new(), "production".parse()?, "shop".parse()?);
//! let minute = |n: u64| Timestamp::EPOCH.plus(Span::from_secs(60 * n));
//! let report = |name: &str, version: &str| TargetReport {
//!     target: name.parse().unwrap(),
//!     running: version.parse().ok(),
//!     error: None,
//!     assignment: None,
//! };
//! let hook = |path: &str| Some(Hook::at(format!("https://controller.example/{path}")));
//! let hooks = Hooks { selection: hook("next"), removal: hook("remove"), ..Hooks::NONE };
//! let (success, failures) = ("50%".parse().ok(), "0".parse().ok());
//! let draft = PolicyDraft { success, failures, hooks: Some(hooks), ..PolicyDraft::default() };
//! engine.set_policy(&namespace, &entity, &Policy::new(draft)?, minute(0))?;
//!
//! // Two blue machines run v1, which is good after the soak.
//! let intent = |n| Annotation::of("alice".parse().unwrap(), minute(n));
//! let blue = [report("blue-1", "v1"), report("blue-2", "v1")];
//! engine.set_target_version(&namespace, &entity, "v1".parse()?, intent(0))?;
//! engine.orchestrate(&namespace, &entity, &blue, minute(0));
//! engine.orchestrate(&namespace, &entity, &blue, minute(1));
//!
//! // v2: none of the two blue machines is chosen; two green ones start instead.
//! engine.set_target_version(&namespace, &entity, "v2".parse()?, intent(2))?;
//! let question = engine.questions(&namespace, &entity)[0].clone();
//! assert!(matches!(&question, HookQuestion::Selection { candidates, .. } if candidates.len() == 2));
//! let answered = AnsweredQuestion { question: &question, answer: HookAnswer::Selected(vec![]) };
//! engine.answer(&namespace, &entity, answered, minute(2));
//! let green = [report("green-1", "v2"), report("green-2", "v2")];
//! engine.orchestrate(&namespace, &entity, &green, minute(3));
//! engine.orchestrate(&namespace, &entity, &green, minute(4));
//! assert_eq!(engine.progress(&namespace, &entity).unwrap().last_known_good, "v2".parse().ok());
//!
//! // The version is good: now the blue machines can be removed.
//! let question = engine.questions(&namespace, &entity)[0].clone();
//! let HookQuestion::Removal { targets } = &question else { panic!("{question:?}") };
//! let answered = AnsweredQuestion { question: &question, answer: HookAnswer::Removed(targets.clone()) };
//! engine.answer(&namespace, &entity, answered, minute(5));
//! let rollout = engine.history(&namespace, &entity).last().unwrap();
//! assert_eq!(rollout.state.to_string(), "succeeded");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entity;
mod saved;

use self::entity::EngineEntity;
pub use self::saved::{EngineChange, EngineStore};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, TargetSource};
use crate::records::event::EventDraft;
use crate::records::external::{StalenessLimits, due};
use crate::records::key::LocatedRecord;
use crate::records::policy::{Policy, PolicyError};
use crate::records::progress::Progress;
use crate::records::rollout::Rollout;
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
pub use crate::rollout::external::TargetReport;
use crate::rollout::hook_answer::{AnsweredQuestion, HookAnswer, absorb};
use crate::rollout::hook_question::HookQuestion;
use crate::rollout::observation::Observation;
use crate::rollout::operations;
use crate::rollout::operations::OperationRefusal;
use crate::words::counter::Revision;
use crate::words::label::Labels;
use crate::words::name::{EntityName, Namespace, TargetName};
use crate::words::time::Timestamp;
use crate::words::version::Version;
use crate::world::World;

/// Entities by namespace and name, in memory.
#[derive(Debug, Clone, Default)]
pub struct RolloutEngine {
    entities: BTreeMap<(Namespace, EntityName), EngineEntity>,
}

impl RolloutEngine {
    /// An engine without entities.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an entity's policy; creates the entity if it does not exist.
    ///
    /// # Errors
    /// [`PolicyError`] naming the field that has no meaning for targets that a controller reports.
    pub fn set_policy(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<(), PolicyError> {
        let world = self.world(namespace, entity);
        let known = world.board.entity();
        let policy = known.kind.policy(&known.source, policy.to_draft())?;
        let entity = Entity { policy, ..known.clone() };
        world.board.fold_entity(Arc::new(entity));
        world.decide(now);
        Ok(())
    }

    /// Requests a version for an entity; creates the entity, with the default policy, if it does not exist.
    ///
    /// # Errors
    /// As [`operations::start`].
    pub fn set_target_version(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        version: Version,
        intent: Annotation,
    ) -> Result<(), OperationRefusal> {
        let (world, now) = (self.world(namespace, entity), intent.at);
        let entity = operations::start(world.board.entity(), world.board.progress(), version, intent)?;
        world.board.fold_entity(Arc::new(entity));
        world.decide(now);
        Ok(())
    }

    /// Changes an entity by an operation of [`operations`], such as a pause.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn operate(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        now: Timestamp,
        operation: impl FnOnce(&Entity, &Progress) -> Result<Entity, OperationRefusal>,
    ) -> Result<(), OperationRefusal> {
        let world = self.world(namespace, entity);
        let entity = operation(world.board.entity(), world.board.progress())?;
        world.board.fold_entity(Arc::new(entity));
        world.decide(now);
        Ok(())
    }

    /// Absorbs reports of some or all targets, and returns the version that each of them must run; `None`
    /// leaves a target as it is. A report answers the assignment that was last returned for the target.
    pub fn orchestrate(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        reports: &[TargetReport],
        now: Timestamp,
    ) -> Vec<(TargetName, Option<Version>)> {
        let world = self.world(namespace, entity);
        for report in reports {
            world.report(report, now);
        }
        world.decide(now);
        reports.iter().map(|report| (report.target.clone(), world.expect(&report.target))).collect()
    }

    /// The questions to the entity's hooks that its rollout needs answered; see [`RolloutEngine::answer`].
    #[must_use]
    pub fn questions(&self, namespace: &Namespace, entity: &EntityName) -> &[HookQuestion] {
        let world = self.entities.get(&(namespace.clone(), entity.clone()));
        world.map(|world| &*world.questions).unwrap_or_default()
    }

    /// Absorbs a hook's answer. Targets that the hook removed are removed here too.
    pub fn answer(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        answered: AnsweredQuestion<'_>,
        now: Timestamp,
    ) {
        let AnsweredQuestion { question, answer } = answered;
        let world = self.world(namespace, entity);
        let gone = match &answer {
            HookAnswer::Removed(gone) => gone.clone(),
            HookAnswer::Selected(_)
            | HookAnswer::Approved { .. }
            | HookAnswer::Judged(_)
            | HookAnswer::Watched { .. }
            | HookAnswer::Silent { .. } => Vec::new(),
        };
        let answers = absorb(&world.board, &world.environment.answers, question, answer, now);
        let removed = !answers.troubles.contains_key(&question.asked());
        world.heard(answers);
        for target in gone.iter().filter(|_| removed) {
            world.forget(target);
        }
        world.decide(now);
    }

    /// Sets the environment of an entity: freezes and the services it needs.
    pub fn surround(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        now: Timestamp,
        change: impl FnOnce(&mut RolloutEnvironment),
    ) {
        let world = self.world(namespace, entity);
        change(&mut world.environment);
        world.decide(now);
    }

    /// Sets the labels of a target, which selectors, domains and orders read; a target without them has none.
    pub fn set_labels(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        target: &TargetName,
        labels: Labels,
    ) {
        let board = &mut self.world(namespace, entity).board;
        if let Some(observation) = board.target(target).and_then(|target| target.observation) {
            let observation = Observation { labels, ..observation.clone() };
            board.fold_observation(target, Some(observation));
        }
    }

    /// Sets how old the last report about a target may be before it is unreachable, and before it is removed.
    pub fn set_staleness(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        staleness: StalenessLimits,
        now: Timestamp,
    ) {
        let world = self.world(namespace, entity);
        world.staleness = staleness;
        world.overdue =
            world.externals.iter().map(|(name, known)| (due(known, staleness), name.clone())).collect();
        let source = TargetSource::External(staleness);
        world.board.fold_entity(Arc::new(Entity { source, ..world.board.entity().clone() }));
        world.decide(now);
    }

    /// Removes a target.
    pub fn remove(
        &mut self,
        namespace: &Namespace,
        entity: &EntityName,
        target: &TargetName,
        now: Timestamp,
    ) {
        let world = self.world(namespace, entity);
        world.forget(target);
        world.decide(now);
    }

    /// Decides again for every entity at the time `now`; returns the time of the next call if nothing else
    /// happens.
    pub fn tick(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.entities.values_mut().filter_map(|world| world.decide(now)).min()
    }

    /// Progress of an entity: known good and bad versions, and what is rolling.
    #[must_use]
    pub fn progress(&self, namespace: &Namespace, entity: &EntityName) -> Option<&Progress> {
        self.board(namespace, entity).map(Board::progress)
    }

    /// The board of an entity, for counts and reasons.
    #[must_use]
    pub fn board(&self, namespace: &Namespace, entity: &EntityName) -> Option<&Board> {
        self.entities.get(&(namespace.clone(), entity.clone())).map(|world| &world.board)
    }

    /// An entity's rollouts, oldest first.
    pub fn history(&self, namespace: &Namespace, entity: &EntityName) -> impl Iterator<Item = &Rollout> {
        let world = self.entities.get(&(namespace.clone(), entity.clone()));
        world.into_iter().flat_map(|world| world.history.values())
    }

    /// Removes and returns the events since the last call.
    pub fn take_events(&mut self, namespace: &Namespace, entity: &EntityName) -> Vec<EventDraft> {
        core::mem::take(&mut self.world(namespace, entity).events)
    }

    /// An engine with what was saved. The time until `now`, in which nobody listened, counts towards no deadline, and no
    /// target becomes silent for it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn load<S: EngineStore>(store: &mut S, now: Timestamp) -> Result<Self, S::Error> {
        let located = |(namespace, record)| (LocatedRecord::Namespaced(namespace, record), Revision::new(1));
        let world = World::load(store.load()?.into_iter().map(located), Revision::new(1));
        let mut engine = Self::new();
        for (namespace, fleet) in &world.fleets {
            for name in fleet.entities.keys() {
                let loaded = EngineEntity::loaded(fleet, name, now);
                engine.entities.extend(loaded.map(|entity| ((namespace.clone(), name.clone()), entity)));
            }
        }
        Ok(engine)
    }

    /// Saves what changed since the last save; calls the store only if anything did. To be called before the versions that
    /// [`orchestrate`](Self::orchestrate) returned are passed on, so that no target runs one that is forgotten.
    ///
    /// # Errors
    /// Those of the store; nothing is saved then, and the next call saves it.
    pub fn save<S: EngineStore>(&mut self, store: &mut S) -> Result<(), S::Error> {
        let mut changes = Vec::new();
        for ((namespace, name), entity) in &self.entities {
            changes.extend(entity.changes(name).map(|change| (namespace.clone(), change)));
        }
        if !changes.is_empty() {
            store.save(&changes)?;
            self.entities.values_mut().for_each(EngineEntity::saved);
        }
        Ok(())
    }

    fn world(&mut self, namespace: &Namespace, entity: &EntityName) -> &mut EngineEntity {
        let key = (namespace.clone(), entity.clone());
        self.entities.entry(key).or_insert_with(|| EngineEntity::new(entity.clone()))
    }
}
