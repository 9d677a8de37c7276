//! Updates the indexes after a change: boards, order contents, held nodes. Each update costs time in
//! proportion to what the change affects.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::super::fleet::Fleet;
use super::super::version_uses::VersionUser;
use super::observations::of_entity;
use crate::records::hook_answers::HookAnswers;
use crate::records::node::{Node, Presence, PresenceState};
use crate::records::order::{ApplyMethod, Assignment, LedgerBinding, OrderContent};
use crate::records::pause::NodePause;
use crate::records::report::ReportedLedger;
use crate::records::target::{AssignmentOutcome, TargetState};
use crate::records::versioned::Versioned;
use crate::words::counter::Revision;
use crate::words::feature::{Feature, Features};
use crate::words::map::Set;
use crate::words::name::{EntityName, NodeName, PauseName, ServerName, TargetName};

impl Fleet {
    /// A node was added, removed, or changed its labels or pause.
    pub(super) fn node_changed(&mut self, name: &NodeName, revision: Revision) {
        if self.loading {
            return;
        }
        let presence = self.presences.get(name).cloned();
        self.presence_changed(name, presence.as_ref());
        self.cluster_membership_changed(name, revision);
        self.membership_changed(name, revision);
        self.offers_changed(name, None, revision);
        self.refresh_node(name);
    }

    /// What selectors read of a node besides its labels changed.
    pub(super) fn recorded_changed(&mut self, name: &NodeName, revision: Revision) {
        if self.loading {
            return;
        }
        self.cluster_membership_changed(name, revision);
        self.membership_changed(name, revision);
        self.refresh_node(name);
    }

    /// A node's presence changed; `before` is the former one.
    pub(super) fn presence_changed(&mut self, name: &NodeName, before: Option<&Versioned<Presence>>) {
        if self.loading {
            return;
        }
        if let Some(before) = before {
            self.release_node(&before.value.server, name);
        }
        let Some(kept) = self.presences.get(name).cloned() else { return };
        let present = match kept.value.contact {
            PresenceState::Up | PresenceState::Suspect => true,
            PresenceState::Never | PresenceState::Unreachable => false,
        };
        if present && self.active_node(name).is_some() {
            let server = &kept.value.server;
            if !self.held.contains_key(server) {
                self.held.insert_mut(server.clone(), Set::default());
            }
            if let Some(held) = self.held.get_mut(server) {
                held.insert_mut(name.clone());
            }
        }
    }

    /// A server no longer holds a node.
    fn release_node(&mut self, server: &Option<ServerName>, name: &NodeName) {
        let Some(held) = self.held.get_mut(server) else { return };
        held.remove_mut(name);
        if held.is_empty() {
            self.held.remove_mut(server);
        }
    }

    /// The observation of a node may have changed, but not which entities have it as a target. Costs time in proportion to
    /// these entities.
    pub(super) fn observations_changed(&mut self, name: &NodeName, revision: Revision) {
        if self.loading {
            return;
        }
        let entities: Vec<EntityName> = self.entities_of_node.get(name).cloned().collect();
        self.observe_node(name, entities, revision);
    }

    /// An entity was added, removed, or changed.
    pub(super) fn entity_changed(&mut self, name: &EntityName, revision: Revision) {
        if self.loading {
            return;
        }
        self.touch(name, revision);
        self.index_entity(name);
        let Some(entity) = self.entities.get(name).map(|kept| kept.value.in_force()) else {
            self.forget_targets(name);
            self.boards.remove_mut(name);
            self.touched.forget(name);
            self.refresh_progress_indexes(name, revision);
            self.note_orphans(name);
            return self.forget_entity_in_orders(name);
        };
        self.orphans.remove_mut(name);
        self.refresh_dues(name);
        let before = self.boards.get(name).map(|board| board.entity().policy.store.clone());
        let has_other_store = before.is_some_and(|before| before != entity.policy.store);
        match self.boards.get_mut(name) {
            Some(board) if board.entity().source == entity.source => board.fold_entity(entity),
            Some(_) | None => self.build_board(name),
        }
        if has_other_store {
            self.store_changed(name);
        }
        self.refresh_progress_indexes(name, revision);
    }

    /// An entity's progress, or one of its rollouts, changed.
    pub(super) fn progress_changed(&mut self, name: &EntityName, revision: Revision) {
        if self.loading {
            return;
        }
        let progress = self.progresses.get(name).map(|kept| kept.value.clone()).unwrap_or_default();
        let rollout = progress.active().and_then(|number| self.rollouts.get(&(name.clone(), number)));
        let rollout = rollout.map(|kept| kept.value.clone());
        if let Some(board) = self.boards.get_mut(name) {
            board.fold_progress(progress, rollout);
            self.touch(name, revision);
            self.refresh_progress_indexes(name, revision);
        }
        self.note_orphans(name);
    }

    /// The answers of an entity's hooks changed: those about single targets are part of their observations.
    pub(super) fn answers_changed(
        &mut self,
        name: &EntityName,
        before: Option<&Versioned<HookAnswers>>,
        revision: Revision,
    ) {
        if self.loading {
            return;
        }
        if self.boards.contains_key(name) {
            self.touch(name, revision);
        }
        self.note_orphans(name);
        let old = before.into_iter().flat_map(|kept| kept.value.words.keys());
        let new = self.answers.get(name).into_iter().flat_map(|kept| kept.value.words.keys());
        let targets: BTreeSet<TargetName> = old.chain(new).cloned().collect();
        for target in targets {
            let observation = self.observation(name, &target);
            if let Some(board) = self.boards.get_mut(name) {
                board.fold_observation(&target, observation);
            }
        }
    }

    /// The assignment of a target changed.
    pub(super) fn target_changed(
        &mut self,
        entity: &EntityName,
        target: &TargetName,
        state: Option<TargetState>,
        revision: Revision,
    ) {
        if self.loading {
            return;
        }
        let user = VersionUser::Target(entity.clone(), target.clone());
        self.version_uses.set(user, state.iter().map(|state| &state.version));
        self.tell_target(entity, target, state.as_ref());
        if let Some(node) = NodeName::parse(target.as_str()).ok().filter(|_| self.runs.contains_key(entity)) {
            self.queue_changed(entity, &node, revision);
        }
        if let Some(board) = self.boards.get_mut(entity) {
            board.fold_state(target, state);
            self.touch(entity, revision);
        }
        self.note_orphans(entity);
    }

    /// The features of a node's agent: those of the first builds before it has reported.
    pub(crate) fn features(&self, name: &NodeName) -> Features {
        self.reports.get(name).map(|kept| kept.value.features.clone()).unwrap_or_default()
    }

    /// The ledger that a node reports.
    pub(crate) fn ledger(&self, name: &NodeName) -> Option<ReportedLedger<'_>> {
        let report = &self.reports.get(name)?.value;
        Some(ReportedLedger { id: report.ledger.as_ref()?, since: report.ledger_since })
    }

    /// Builds every index, once all records are present.
    pub(in super::super) fn build_indexes(&mut self, states: Vec<(EntityName, TargetName, TargetState)>) {
        let runs: Vec<EntityName> = self.runs.keys().cloned().collect();
        for name in &runs {
            self.index_run(name, Revision::ZERO);
        }
        let entities: Vec<EntityName> = self.entities.keys().cloned().collect();
        for name in &entities {
            self.refresh_dues(name);
            self.index_entity(name);
            self.build_board(name);
            let revision = self.entities.get(name).map_or(Revision::ZERO, |kept| kept.revision);
            self.refresh_progress_indexes(name, revision);
            self.touch(name, revision);
        }
        for (entity, target, state) in states {
            let revision = self.targets.get(&(entity.clone(), target.clone())).copied().unwrap_or_default();
            self.target_changed(&entity, &target, Some(state), revision);
        }
        self.build_clusters();
        let nodes: Vec<NodeName> = self.nodes.keys().cloned().collect();
        for name in &nodes {
            self.presence_changed(name, None);
            self.refresh_node(name);
        }
        self.tally = self.count_nodes();
        self.build_catalogue();
        self.build_waits();
        let remembered: Vec<EntityName> = self
            .progresses
            .keys()
            .chain(self.answers.keys())
            .chain(self.controllers.keys())
            .chain(self.jobs.keys().map(|(run, _)| run))
            .cloned()
            .collect();
        for name in &remembered {
            self.note_orphans(name);
        }
    }

    /// Puts a target's assignment into its node's order, if the target is a node.
    fn tell_target(&mut self, entity: &EntityName, target: &TargetName, state: Option<&TargetState>) {
        self.note_undone(entity, target, state);
        let known = self.entities.get(entity).map(|kept| &*kept.value);
        // A controller may use the name of a node for a target of its own: that must not reach the node's
        // order.
        if known.is_some_and(|entity| !entity.source.is_nodes()) {
            return;
        }
        let Ok(node) = NodeName::parse(target.as_str()) else { return };
        // What is left of a removed entity is assigned to nobody, and nobody is assigned what its agent does not know. One that
        // allows no tasks at the moment keeps the runs that it has: taken away, they would count as given up.
        let features = self.features(&node);
        let known = known.filter(|entity| {
            features.has(entity.kind.feature()) || entity.kind.is_run() && features.has(Feature::Jobs)
        });
        let told = known.zip(state).map(|(entity, state)| Assignment {
            version: state.version.clone(),
            number: state.assignment,
            method: ApplyMethod::of(&entity.kind, state),
            soak: features.has(Feature::Soak).then_some(state.soak),
            binding: LedgerBinding::default(),
            retry: entity
                .retries
                .get(target)
                .copied()
                .filter(|failed| *failed < state.assignment && features.has(Feature::Jobs)),
            store: entity.policy_in_force().store.clone(),
        });
        let has_failed = state.is_some_and(|state| match state.outcome {
            // One that was given up may fail later: what follows from that is decided already.
            AssignmentOutcome::Failed { .. } | AssignmentOutcome::Unreachable { .. } => true,
            AssignmentOutcome::InFlight | AssignmentOutcome::Succeeded { .. } => false,
        });
        let is_run = told.as_ref().is_some_and(|told| told.method == ApplyMethod::Workflow);
        self.tell(&node, entity, (told, has_failed && is_run));
    }

    /// The policy of an entity names another data store: the orders of its targets say so.
    fn store_changed(&mut self, entity: &EntityName) {
        let targets = self.boards.get(entity).into_iter().flat_map(|board| board.targets());
        let states: Vec<(TargetName, TargetState)> =
            targets.filter_map(|target| Some((target.name.clone(), target.state.cloned()?))).collect();
        for (target, state) in &states {
            self.tell_target(entity, target, Some(state));
        }
    }

    /// The features of a node's agent changed: assigns what it knows now, and nothing else.
    pub(super) fn features_changed(&mut self, node: &NodeName) {
        if self.loading {
            return;
        }
        let target = TargetName::from(node);
        let entities: Vec<EntityName> = self.entities_of_node.get(node).cloned().collect();
        self.hosting_changed(node);
        self.refresh_node(node);
        for entity in entities {
            let state = self.boards.get(&entity).and_then(|board| board.target(&target)?.state.cloned());
            self.tell_target(&entity, &target, state.as_ref());
        }
    }

    /// Puts an assignment into a node's order, with whether it is a run that failed, or removes it.
    fn tell(
        &mut self,
        node: &NodeName,
        entity: &EntityName,
        (told, is_failed_run): (Option<Assignment>, bool),
    ) {
        let mut content = self.contents.get(node).cloned().unwrap_or_default();
        match told {
            Some(told) => content.entities.insert(entity.clone(), told),
            None => content.entities.remove(entity),
        };
        match is_failed_run {
            true => content.failed_runs.insert(entity.clone()),
            false => content.failed_runs.remove(entity),
        };
        self.set_content(node, content);
    }

    /// A pause of several nodes was added, removed, or changed: updates each node that it matched or matches.
    pub(super) fn pause_changed(
        &mut self,
        name: PauseName,
        pause: Option<Versioned<NodePause>>,
        revision: Revision,
    ) {
        let before = self.pauses.get(&name).cloned();
        match &pause {
            Some(kept) => self.pauses.insert_mut(name, kept.clone()),
            None => {
                self.pauses.remove_mut(&name);
            }
        }
        if self.loading {
            return;
        }
        self.tally = self.count_nodes();
        let held = |node: &Node| {
            before.iter().chain(&pause).any(|kept| kept.value.holds(node, self.data_of(&node.name)))
        };
        let held = self.nodes.values().filter(|node| held(&node.value));
        let nodes: Vec<NodeName> = held.map(|node| node.value.name.clone()).collect();
        for node in &nodes {
            self.refresh_node(node);
            self.observations_changed(node, revision);
            self.candidate_changed(node, revision);
        }
    }

    /// Puts what is wanted of a node itself into its order: its pause, the last rescan if its agent reports facts, and which
    /// services it may register if not all; and why it begins no run.
    pub(super) fn refresh_node(&mut self, name: &NodeName) {
        let node = self.nodes.get(name).map(|kept| &kept.value);
        // Params may be recorded of a node that has not joined.
        if node.is_none() && !self.contents.contains_key(name) {
            return;
        }
        let paused = node.and_then(|node| self.paused(node));
        let rescan = node.filter(|_| self.features(name).has(Feature::Facts)).map(|node| node.rescan);
        let mut content = self.contents.get(name).cloned().unwrap_or_default();
        content.paused = paused;
        content.rescan = rescan.unwrap_or_default();
        content.hosts = self.hostings(name);
        let mark = self.not_runnable.get(name).filter(|_| self.features(name).has(Feature::Jobs));
        let undone = mark.filter(|_| self.features(name).has(Feature::Undo));
        content.undo = undone.and_then(|kept| self.undo_of(kept.value.run.as_ref()?)).cloned();
        content.not_runnable = mark.map(|kept| kept.value.line());
        content.services = node.and_then(|node| node.services_if_limited());
        self.set_content(name, content);
    }

    fn forget_entity_in_orders(&mut self, entity: &EntityName) {
        let assigned =
            of_entity(&self.targets, entity).filter_map(|(target, _)| NodeName::parse(target.as_str()).ok());
        let told = |node: &NodeName| {
            self.contents.get(node).is_some_and(|content| content.entities.contains_key(entity))
        };
        let nodes: Vec<NodeName> = assigned.filter(told).collect();
        for node in nodes {
            self.tell(&node, entity, (None, false));
        }
    }

    pub(super) fn set_content(&mut self, node: &NodeName, content: OrderContent) {
        self.contents.insert_mut(node.clone(), content);
        self.order_changed(node);
    }

    /// Notes an entity that was removed while records of it are left.
    pub(super) fn note_orphans(&mut self, name: &EntityName) {
        let gone = !self.entities.contains_key(name);
        let left = gone && self.leftovers(name).next().is_some();
        if left {
            self.orphans.insert_mut(name.clone());
        } else {
            self.orphans.remove_mut(name);
        }
    }
}
