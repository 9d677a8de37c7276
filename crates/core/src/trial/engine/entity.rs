//! One entity of the engine: its board, the last reports of its targets, its history and events.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::decide::rollout::decide;
use crate::decide::rollout::verdict::RolloutVerdict;
use crate::records::entity::{Entity, TargetSource};
use crate::records::event::EventDraft;
use crate::records::external::{ExternalTarget, StalenessLimits, due};
use crate::records::hook_answers::HookAnswers;
use crate::records::policy::Policy;
use crate::records::progress::Progress;
use crate::records::rollout::Rollout;
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::rollout::external;
use crate::rollout::external::TargetReport;
use crate::rollout::hook_question::HookQuestion;
use crate::rollout::observation::Observation;
use crate::words::counter::RolloutNumber;
use crate::words::name::{EntityName, TargetName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// A record of an entity, besides the entity and its progress.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnsavedRecord {
    Rollout(RolloutNumber),
    Target(TargetName),
    External(TargetName),
    Answers,
}

#[derive(Debug, Clone)]
pub(super) struct EngineEntity {
    pub(super) board: Board,
    pub(super) history: BTreeMap<RolloutNumber, Rollout>,
    pub(super) externals: BTreeMap<TargetName, ExternalTarget>,
    pub(super) events: Vec<EventDraft>,
    pub(super) environment: RolloutEnvironment,
    pub(super) questions: Vec<HookQuestion>,
    pub(super) staleness: StalenessLimits,
    /// The targets by the time at which they become silent, or are removed.
    pub(super) overdue: BTreeSet<(Timestamp, TargetName)>,
    /// Records that changed since the last save, besides the entity and its progress.
    pub(super) unsaved: BTreeSet<UnsavedRecord>,
    /// The entity as saved.
    pub(super) saved_entity: Option<Entity>,
    /// The progress as saved.
    pub(super) saved_progress: Option<Progress>,
}

impl EngineEntity {
    pub(super) fn new(name: EntityName) -> Self {
        let staleness = StalenessLimits::default();
        let entity = Entity {
            source: TargetSource::External(staleness),
            ..Entity::new(name, Selector::all(), Policy::default())
        };
        let board = Board::new(Arc::new(entity), Arc::default(), None);
        Self {
            board,
            history: BTreeMap::new(),
            externals: BTreeMap::new(),
            events: Vec::new(),
            environment: RolloutEnvironment::default(),
            questions: Vec::new(),
            staleness,
            overdue: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            saved_entity: None,
            saved_progress: None,
        }
    }

    pub(super) fn report(&mut self, report: &TargetReport, now: Timestamp) {
        let before = self.board.target(&report.target).and_then(|target| target.observation);
        let labels = before.map(|before| before.labels.clone()).unwrap_or_default();
        let word = before.and_then(|before| before.word.clone());
        let expected = self.board.expected(&report.target);
        let known = self.externals.get(&report.target);
        let external = external::absorb(known, report, expected, self.staleness, now);
        self.plan_silence(&report.target, Some(&external));
        self.board.fold_observation(&report.target, Some(external::observation(&external, labels, word)));
        self.externals.insert(report.target.clone(), external);
    }

    /// Stores hook answers, and updates the observations of the targets they judge.
    pub(super) fn heard(&mut self, answers: HookAnswers) {
        for (target, word) in &answers.words {
            let observation = self.board.target(target).and_then(|target| target.observation);
            if let Some(observation) =
                observation.filter(|observation| observation.word.as_ref() != Some(word))
            {
                let observation = Observation { word: Some(word.clone()), ..observation.clone() };
                self.board.fold_observation(target, Some(observation));
            }
        }
        self.environment.answers = Arc::new(answers);
        self.unsaved.insert(UnsavedRecord::Answers);
    }

    pub(super) fn expect(&mut self, target: &TargetName) -> Option<Version> {
        let (version, assignment) = self.board.expected(target)?;
        let version = version.clone();
        if let Some(external) = self.externals.get_mut(target).filter(|known| known.assigned != assignment) {
            external.assigned = assignment;
            self.unsaved.insert(UnsavedRecord::External(target.clone()));
        }
        Some(version)
    }

    /// Records when a target becomes silent, or is removed, if nothing reports it.
    pub(super) fn plan_silence(&mut self, target: &TargetName, new: Option<&ExternalTarget>) {
        self.unsaved.insert(UnsavedRecord::External(target.clone()));
        if let Some(old) = self.externals.get(target) {
            self.overdue.remove(&(due(old, self.staleness), target.clone()));
        }
        if let Some(new) = new {
            self.overdue.insert((due(new, self.staleness), target.clone()));
        }
    }

    /// Marks the targets silent that nobody reported for too long, and removes those silent for too long. None is before it
    /// could have been reported since the watch began.
    pub(super) fn notice_silence(&mut self, now: Timestamp) {
        if now < self.silence_from() {
            return;
        }
        while let Some((_, target)) = self.overdue.first().filter(|(at, _)| *at <= now).cloned() {
            let silent = self.externals.get(&target).and_then(|known| known.turned_silent(now));
            self.plan_silence(&target, silent.as_ref());
            let before = self.board.target(&target).and_then(|target| target.observation).cloned();
            let seen = silent
                .as_ref()
                .zip(before)
                .map(|(silent, before)| external::observation(silent, before.labels, before.word));
            self.board.fold_observation(&target, seen);
            match silent {
                Some(silent) => drop(self.externals.insert(target, silent)),
                None => drop(self.externals.remove(&target)),
            }
        }
    }

    pub(super) fn forget(&mut self, target: &TargetName) {
        self.plan_silence(target, None);
        self.externals.remove(target);
        self.board.fold_observation(target, None);
    }

    pub(super) fn decide(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.notice_silence(now);
        let verdict = decide(&self.board, &self.environment, now);
        let RolloutVerdict { rollouts, progress, events, targets, questions, wake } = verdict;
        self.questions = questions;
        let mut told = events;
        let progress = progress.unwrap_or_else(|| self.board.progress().clone());
        for rollout in rollouts {
            self.unsaved.insert(UnsavedRecord::Rollout(rollout.number));
            self.history.insert(rollout.number, rollout);
        }
        let active = progress.active().and_then(|number| self.history.get(&number)).cloned();
        self.board.fold_progress(Arc::new(progress), active.map(Arc::new));
        for change in targets {
            told.extend(change.events);
            self.unsaved.insert(UnsavedRecord::Target(change.target.clone()));
            self.board.fold_state(&change.target, change.state);
        }
        told.sort_by_key(|ordered| ordered.position);
        self.events.extend(told.into_iter().map(|ordered| ordered.event));
        let silence = self.overdue.first().map(|(at, _)| self.silence_from().max(*at));
        [wake, silence].into_iter().flatten().min()
    }

    /// Time before which no target becomes silent.
    fn silence_from(&self) -> Timestamp {
        self.environment.watch.since.plus(self.staleness.unreachable_after)
    }
}
