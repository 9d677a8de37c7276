//! Observations of targets: of nodes from their reports and presences, of external targets from their
//! controllers' reports.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::fleet::Fleet;
use crate::records::entity::TargetSource;
use crate::records::external::ExternalTarget;
use crate::records::external::due;
use crate::records::hook_answers::MonitorReport;
use crate::records::node::{Cordon, Node, Presence, PresenceState};
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::versioned::Versioned;
use crate::rollout::board::Board;
use crate::rollout::external;
use crate::rollout::observation::{HealthProof, Observation};
use crate::words::counter::{AssignmentNumber, Revision};
use crate::words::feature::Feature;
use crate::words::label::Labels;
use crate::words::map::Map;
use crate::words::name::{EntityName, NodeName, TargetName};
use crate::words::time::{Span, Timestamp};

impl Fleet {
    /// The last report about an external target changed.
    pub(super) fn external_changed(
        &mut self,
        entity: &EntityName,
        target: &TargetName,
        before: Option<&Versioned<ExternalTarget>>,
        revision: Revision,
    ) {
        if self.loading {
            return;
        }
        if let Some((staleness, dues)) = self.staleness(entity).zip(self.overdue.get_mut(entity)) {
            if let Some(before) = before {
                dues.remove_mut(&(due(&before.value, staleness), target.clone()));
            }
            if let Some(now) = self.externals.get(&(entity.clone(), target.clone())) {
                dues.insert_mut((due(&now.value, staleness), target.clone()));
            }
        }
        let observation = self.observation(entity, target);
        if let Some(board) = self.boards.get_mut(entity) {
            board.fold_observation(target, observation);
            self.touch(entity, revision);
        }
        self.note_orphans(entity);
    }

    /// An entity was added, removed, or changed its staleness limits.
    pub(super) fn refresh_dues(&mut self, entity: &EntityName) {
        let Some(staleness) = self.staleness(entity) else {
            self.overdue.remove_mut(entity);
            return;
        };
        let reported = self.externals_of(entity);
        let dues =
            reported.map(|(target, external)| (due(&external.value, staleness), target.clone())).collect();
        self.overdue.insert_mut(entity.clone(), dues);
    }

    /// The last reports about an entity's external targets.
    pub fn externals_of<'a>(
        &'a self,
        entity: &'a EntityName,
    ) -> impl Iterator<Item = (&'a TargetName, &'a Versioned<ExternalTarget>)> {
        of_entity(&self.externals, entity)
    }

    pub(super) fn build_board(&mut self, name: &EntityName) {
        let Some(entity) = self.entities.get(name).map(|kept| kept.value.in_force()) else { return };
        let progress = self.progresses.get(name).map(|kept| kept.value.clone()).unwrap_or_default();
        let rollout = progress.active().and_then(|number| self.rollouts.get(&(name.clone(), number)));
        let mut board = Board::new(entity.clone(), progress.clone(), rollout.map(|kept| kept.value.clone()));
        match &entity.source {
            TargetSource::Nodes(selector) => {
                let mut fold = |node: &Node| {
                    if node.decommissioned.is_none()
                        && node.logical.is_none()
                        && selector.picks(node.name.as_str(), &node.labels, self.data_of(&node.name))
                    {
                        let target = TargetName::from(&node.name);
                        board.fold_observation(&target, Some(self.see_node(name, &node.name)));
                    }
                };
                match selector.names() {
                    // A selector that names its nodes costs what it matches.
                    Some(names) => {
                        let names = names.into_iter().filter_map(|name| NodeName::parse(name).ok());
                        names.filter_map(|name| self.nodes.get(&name)).for_each(|kept| fold(&kept.value));
                    }
                    None => self.nodes.values().for_each(|kept| fold(&kept.value)),
                }
            }
            TargetSource::Listed(nodes) => {
                let known = nodes.iter().filter_map(|node| self.nodes.get(node));
                for node in known.map(|kept| &kept.value).filter(|node| node.decommissioned.is_none()) {
                    let target = TargetName::from(&node.name);
                    board.fold_observation(&target, Some(self.see_node(name, &node.name)));
                }
            }
            TargetSource::External(_) => {
                for (target, external) in self.externals_of(name) {
                    board.fold_observation(target, Some(self.see_external(name, target, &external.value)));
                }
            }
        }
        if let Some(old) = self.boards.get(name) {
            let kept = old.targets().filter_map(|target| Some((target.name.clone(), target.state?.clone())));
            for (target, state) in kept.collect::<Vec<_>>() {
                board.fold_state(&target, Some(state));
            }
        }
        self.forget_targets(name);
        if entity.source.is_nodes() {
            let members = board.targets().filter(|target| target.observation.is_some());
            for node in members.filter_map(|target| NodeName::parse(target.name.as_str()).ok()) {
                self.entities_of_node.insert(node, name);
            }
        }
        self.boards.insert_mut(name.clone(), board);
    }

    /// The observation of a target; `None` if it is not a target.
    pub(super) fn observation(&self, entity: &EntityName, target: &TargetName) -> Option<Observation> {
        match &self.entities.get(entity)?.value.source {
            TargetSource::Nodes(_) | TargetSource::Listed(_) => {
                self.observation_of_node(entity, &NodeName::parse(target.as_str()).ok()?)
            }
            TargetSource::External(_) => {
                let external = self.externals.get(&(entity.clone(), target.clone()))?;
                Some(self.see_external(entity, target, &external.value))
            }
        }
    }

    /// The observation of a node as a target; `None` if the entity's selector does not match it.
    pub(super) fn observation_of_node(&self, entity: &EntityName, name: &NodeName) -> Option<Observation> {
        let node = self.active_node(name)?;
        let source = &self.entities.get(entity)?.value.source;
        // A logical node is a target only where it is named: what is rolled out to machines is nothing for it.
        if node.value.logical.is_some() && !matches!(source, TargetSource::Listed(_)) {
            return None;
        }
        source.picks(name, &node.value.labels, self.data_of(name)).then(|| self.see_node(entity, name))
    }

    fn see_external(
        &self,
        entity: &EntityName,
        target: &TargetName,
        external: &ExternalTarget,
    ) -> Observation {
        external::observation(external, Labels::default(), self.word(entity, target))
    }

    /// The last answer of the monitoring hook about a target.
    fn word(&self, entity: &EntityName, target: &TargetName) -> Option<MonitorReport> {
        self.answers.get(entity)?.value.words.get(target).cloned()
    }

    /// Why the agent of a node cannot be a target of the entity; `None` if it can.
    fn unsupported(&self, entity: &EntityName, name: &NodeName) -> Option<String> {
        let report = &self.reports.get(name)?.value;
        let kind = self.entities.get(entity)?.value.kind.feature();
        let of_tasks = self.runs.get(entity).into_iter().flat_map(|run| run.value.features.iter().copied());
        let version = &report.agent_version;
        let lacks = core::iter::once(kind).chain(of_tasks).find(|feature| !report.features.has(*feature));
        lacks.map(|feature| match feature {
            Feature::Workflows if report.features.has(Feature::Soak) => {
                "not able to run it: its agent does not allow tasks; set tasks = \"allow\" in [agent] of its agent.toml"
                    .into()
            }
            Feature::Versions
            | Feature::Files
            | Feature::Actions
            | Feature::Facts
            | Feature::Soak
            | Feature::Workflows
            | Feature::LogicalNodes
            | Feature::Jobs
            | Feature::JobLogs
            | Feature::TaskLists
            | Feature::Outputs
            | Feature::Conditions
            | Feature::Undo
            | Feature::Ensembles
            | Feature::IndependentMembers
            | Feature::Restores
            | Feature::Adoptions => format!("not able to apply it: its agent {version} does not know {feature}; upgrade the agent"),
        })
    }

    /// Why a run that has not begun on a node does not begin there; `None` if it may, and for every other entity.
    fn not_runnable(&self, entity: &EntityName, name: &NodeName) -> Option<String> {
        let mark = &self.not_runnable.get(name)?.value;
        let is_run = self.entities.get(entity)?.value.kind.is_run();
        let has_begun = self.targets.contains_key(&(entity.clone(), TargetName::from(name)));
        let undoes = self.runs.get(entity).and_then(|run| run.value.undoes.as_ref());
        if mark.run.is_some() && mark.run.as_ref() == undoes {
            return None;
        }
        (is_run && !has_begun).then(|| mark.line())
    }

    /// Why a node that is in contact does not accept its orders; `None` if it does, or is out of contact.
    #[must_use]
    pub fn order_refusal(&self, name: &NodeName) -> Option<&str> {
        let is_up = self.presences.get(name).is_some_and(|kept| kept.value.contact == PresenceState::Up);
        self.reports.get(name).filter(|_| is_up)?.value.order_refusal()
    }

    fn see_node(&self, entity: &EntityName, name: &NodeName) -> Observation {
        let presence = self.presences.get(name).map(|kept| &*kept.value);
        let contact = presence.map_or(PresenceState::Never, |Presence { contact, .. }| *contact);
        let contact_since = presence.map_or(Timestamp::EPOCH, |presence| presence.since);
        let node = self.nodes.get(name).map(|kept| &kept.value);
        let paused = node.and_then(|node| self.paused(node));
        let held =
            paused.or_else(|| Some(node?.cordon.as_ref()?.line())).or_else(|| self.unsupported(entity, name));
        let held = held.or_else(|| self.not_runnable(entity, name)).or_else(|| self.behind(entity, name));
        let held = held.map(|reason| Arc::from(reason.as_str()));
        let drained = node.and_then(|node| node.cordon.as_ref()).is_some_and(Cordon::is_drained);
        let labels = self.nodes.get(name).map(|node| node.value.labels.clone()).unwrap_or_default();
        let word = self.word(entity, &TargetName::from(name));
        let report = self.reports.get(name).map(|kept| &kept.value);
        let refusal = self.order_refusal(name);
        let said = report.and_then(|report| report.entities.get(entity));
        Observation {
            running: said.and_then(|said| said.running.clone()),
            answering: said.map_or(AssignmentNumber::ZERO, |said| said.answering),
            activity: said.map_or(TargetActivity::Nothing, |said| said.activity.clone()),
            health: said.map_or(TargetHealth::NoChecks, |said| said.health.clone()),
            healthy_since: said.and_then(|said| said.healthy_since),
            soak_failure: said.and_then(|said| said.soak_failure.clone()),
            agent_restarted: said.is_some_and(|said| said.agent_restarted),
            proof: match report.is_some_and(|report| report.features.has(Feature::Soak)) {
                true => HealthProof::Confirmed(said.and_then(|said| said.soaked).unwrap_or(Span::ZERO)),
                false => HealthProof::Contact,
            },
            answered_at: said.map_or(Timestamp::EPOCH, |said| said.answered_at),
            reported_at: report.map_or(Timestamp::EPOCH, |report| report.received_at),
            contact,
            contact_since,
            held,
            refuses: refusal.map(Arc::from),
            drained,
            labels,
            data: self.data_of(name).clone(),
            word,
        }
    }
}

/// The part of a map that belongs to one entity.
pub(crate) fn of_entity<'a, T>(
    all: &'a Map<(EntityName, TargetName), T>,
    entity: &'a EntityName,
) -> impl Iterator<Item = (&'a TargetName, &'a T)> {
    let from = all.range((entity.clone(), TargetName::first())..);
    from.take_while(move |((of, _), _)| of == entity).map(|((_, target), value)| (target, value))
}
