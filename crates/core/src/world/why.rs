//! Why a target or a rollout is in its present state, with the freeze that keeps it and the command that ends the freeze.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::World;
use super::fleet::Fleet;
use crate::records::annotation::attribution_in_brackets;
use crate::records::event::Event;
use crate::records::freeze::{Freeze, FreezeKind, lift_command};
use crate::records::node::PresenceState;
use crate::records::report::RunningStep;
use crate::records::rollout::RolloutState;
use crate::records::run::UndoState;
use crate::records::target::AssignmentOutcome;
use crate::rollout::board::Board;
use crate::rollout::board::phase::{ASSIGNABLE, MOVED};
use crate::rollout::why::{WhyTime, why, why_rollout};
use crate::words::counter::RolloutNumber;
use crate::words::name::{EntityName, FreezeName, NodeName, TargetName};
use crate::words::time::Timestamp;

/// The kind of the event that a target failed after it had succeeded.
const LATE_FAILURE: &str = "target.late_failure";

impl World {
    /// Why a target of a board of this fleet is in its present state, in one line; for one that a freeze keeps,
    /// with the command that ends the freeze.
    #[must_use]
    pub fn why_target(&self, fleet: &Fleet, board: &Board, target: &TargetName, time: WhyTime) -> String {
        let WhyTime { now, .. } = time;
        let own = fleet.freezes.values().map(|kept| (&*kept.value, false));
        let global = self.freezes.values().map(|kept| (&*kept.value, true));
        match own.chain(global).find(|(freeze, _)| keeps(freeze, board, target, now)) {
            Some((Freeze { name, annotation, .. }, is_global)) => {
                let who = attribution_in_brackets(&annotation.by, &annotation.reason);
                let lift = lift_command(name, is_global);
                format!("{target}: frozen by {name} {who}; end it: {lift}")
            }
            None => {
                let step = fleet.running_step(board, target).map(|step| match fleet.silent_since(target) {
                    Some(since) => format!("; when last heard: {}", step.line(since.min(now))),
                    None => format!("; {}", step.line(now)),
                });
                let job = fleet.present_job(board, target).unwrap_or_default();
                let run = &board.entity().name;
                let node = NodeName::parse(target.as_str()).ok().filter(|_| fleet.runs.contains_key(run));
                match node.and_then(|node| fleet.left_without(run, &node)) {
                    Some(how) => format!("{target}: run {run} {how}{job}"),
                    None => {
                        let next = fleet.after_failure(board, target).map(|next| format!("; {next}"));
                        let (step, next) = (step.unwrap_or_default(), next.unwrap_or_default());
                        format!("{}{step}{job}{next}", why(board, target, time))
                    }
                }
            }
        }
    }
}

impl Fleet {
    /// The step that a target runs for its present assignment, as of its node's last report.
    fn running_step(&self, board: &Board, target: &TargetName) -> Option<&RunningStep> {
        let report = self.reports.get(&NodeName::parse(target.as_str()).ok()?)?;
        let state = board.member(target)?.state.as_ref()?;
        let entity = report.value.entities.get(&board.entity().name)?;
        entity.step.as_ref().filter(|_| entity.answering == state.assignment)
    }

    /// Since when the node of a target is not in contact; `None` while it is.
    fn silent_since(&self, target: &TargetName) -> Option<Timestamp> {
        let presence = self.presences.get(&NodeName::parse(target.as_str()).ok()?)?;
        match presence.value.contact {
            PresenceState::Suspect | PresenceState::Unreachable => Some(presence.value.since),
            PresenceState::Never | PresenceState::Up => None,
        }
    }

    /// What a person can do about a run that failed on a target: why it never goes on there, with the command that does the rest, or
    /// how the task that failed begins again.
    fn after_failure(&self, board: &Board, target: &TargetName) -> Option<String> {
        match board.member(target)?.state.as_ref()?.outcome {
            AssignmentOutcome::Failed { .. } => {}
            AssignmentOutcome::InFlight
            | AssignmentOutcome::Succeeded { .. }
            | AssignmentOutcome::Unreachable { .. } => return None,
        }
        let (run, node) = (&board.entity().name, NodeName::parse(target.as_str()).ok()?);
        self.runs.get(run)?;
        let again = || format!("begin the task again: bellwether job retry {run}/{node}");
        Some(self.why_lost(run, &node).unwrap_or_else(again))
    }

    /// The last job of a run on a target, with its state.
    fn present_job(&self, board: &Board, target: &TargetName) -> Option<String> {
        let run = &board.entity().name;
        let node = NodeName::parse(target.as_str()).ok()?;
        let job = self.jobs.get(&(run.clone(), node.clone()))?.value.present()?;
        Some(format!("; job {run}/{node}/{} is {}", job.index, job.state.as_str()))
    }

    /// Why the entity's rollout is in its present state, in one line; for one that waits for a freeze to end, with
    /// the command that ends the freeze.
    #[must_use]
    pub fn why_rollout(&self, board: &Board) -> String {
        let text = why_rollout(board, self.last_rollout(&board.entity().name));
        let text = match self.why_undone(&board.entity().name) {
            Some(undone) => format!("{text}; {undone}"),
            None => text,
        };
        let Some(rollout) = board.rollout() else { return text };
        match (rollout.state.freeze(), rollout.state.continued_by(&board.entity().name)) {
            (Some(freeze), _) => format!("{text}; end the freeze: {}", self.lift_command(freeze)),
            (None, Some(command)) => format!("{text}; continue it with: {command}"),
            (None, None) => text,
        }
    }

    /// What undoes a run, and how far it is, or what it undoes; `None` for every other entity.
    fn why_undone(&self, name: &EntityName) -> Option<String> {
        let run = &self.runs.get(name)?.value;
        let rollout = |run: &EntityName| self.rollouts.get(&(run.clone(), RolloutNumber::new(1)));
        match &run.undo {
            Some(UndoState::By(by)) if !self.runs.contains_key(by) => {
                Some(format!("run {by} undid it, and was deleted"))
            }
            Some(UndoState::By(by)) => Some(match rollout(by).map(|kept| &kept.value.state) {
                Some(RolloutState::Succeeded) => format!("undone by run {by}"),
                Some(state) => format!("run {by} undoes it, and is {state}; see: bellwether why run/{by}"),
                None => format!("run {by} undoes it"),
            }),
            Some(UndoState::Nothing) => Some("nothing to undo: no node began a task of it".into()),
            Some(UndoState::Closed) => Some("what undoes it is not started yet".into()),
            None => run.undoes.as_ref().map(|undoes| format!("it undoes run {undoes}")),
        }
    }

    /// Number of failures since then of an entity's targets that had succeeded, among the newest events. A target that
    /// fails again and again is healthy in between, so that its state alone does not show it.
    #[must_use]
    pub fn late_failures(&self, entity: &EntityName, since: Timestamp) -> u64 {
        let prefix = format!("target/{entity}/");
        let of_entity = |event: &&Arc<Event>| {
            event.kind == LATE_FAILURE && event.time >= since && event.subject.starts_with(&prefix)
        };
        u64::try_from(self.events.values().filter(of_entity).count()).unwrap_or(u64::MAX)
    }

    /// The command that ends a freeze: one of this namespace if it has one of that name, else of all namespaces.
    #[must_use]
    pub fn lift_command(&self, freeze: &FreezeName) -> String {
        lift_command(freeze, !self.freezes.contains_key(freeze))
    }
}

/// Whether the freeze keeps the target from its next version. A person's pause of the entity comes first.
fn keeps(freeze: &Freeze, board: &Board, target: &TargetName, now: Timestamp) -> bool {
    let Some(member) = board.member(target).filter(|_| board.entity().hold.is_none()) else { return false };
    let Some(observation) = &member.observation else { return false };
    let phase = member.place.phase;
    let waits = ASSIGNABLE.has(phase) || (freeze.kind == FreezeKind::Stop && MOVED.has(phase));
    // A rollout in progress says itself which freeze it waits for.
    let covers = || board.rollout().is_none() && freeze.covers(&board.entity().name);
    waits
        && freeze.is_in_force(now)
        && (freeze.picks(target, &observation.labels, &observation.data) || covers())
}
