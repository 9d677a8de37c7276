//! The questions that a world has for hooks, derived from policies and boards. When they are asked is decided by the call
//! table.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_core::decide::rollout;
use bellwether_core::records::hook_answers::{HookAnswers, HookPurpose};
use bellwether_core::records::policy::Policy;
use bellwether_core::records::policy::hook::{Hook, MonitorSource};
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;

use super::call_spec::{HookCallKey, HookCallSpec, RolloutSubject};

/// The pending questions.
#[derive(Debug, Default)]
pub(super) struct PendingQuestions {
    /// The questions, each with the recorded answers.
    pub(super) questions: Vec<(HookCallSpec, Arc<HookAnswers>)>,
    /// Entities with hooks and an active rollout.
    pub(super) live: BTreeSet<(Namespace, EntityName)>,
    /// When there may be other questions without any change.
    pub(super) wake: Option<Timestamp>,
}

/// Collects the questions of every entity with hooks and an active rollout.
pub(super) fn look(world: &World, now: Timestamp) -> PendingQuestions {
    let mut look = PendingQuestions::default();
    for (namespace, fleet) in &world.fleets {
        for entity in fleet.hooked.iter() {
            look.add(world, namespace, entity, now);
        }
    }
    look
}

impl PendingQuestions {
    fn add(&mut self, world: &World, namespace: &Namespace, entity: &EntityName, now: Timestamp) {
        let board = world.fleets.get(namespace).and_then(|fleet| fleet.boards.get(entity));
        let Some(board) = board else { return };
        let Some(rollout) = board.rollout().filter(|rollout| !rollout.is_over()) else { return };
        self.live.insert((namespace.clone(), entity.clone()));
        let environment = world.environment(namespace, entity);
        let verdict = rollout::decide(board, &environment, now);
        self.wake = [self.wake, verdict.wake].into_iter().flatten().min();
        // Questions about a rollout that this verdict starts follow once it is written.
        if verdict.progress.is_some_and(|progress| progress.active() != Some(rollout.number)) {
            return;
        }
        for question in verdict.questions {
            let asked = question.asked();
            let Some((hook, source)) = hook_of(&board.entity().policy, asked) else { continue };
            let key = HookCallKey { namespace: namespace.clone(), entity: entity.clone(), asked };
            let versions = RolloutSubject { version: rollout.version.clone(), from: rollout.from.clone() };
            let (hook, number) = (hook.clone(), rollout.number);
            let spec = HookCallSpec { key, rollout: number, versions, hook, source, question };
            self.questions.push((spec, environment.answers.clone()));
        }
    }
}

fn hook_of(policy: &Policy, asked: HookPurpose) -> Option<(&Hook, MonitorSource)> {
    let hooks = &policy.hooks;
    let own = |hook| Some((hook, MonitorSource::Hook));
    match asked {
        HookPurpose::Selection => hooks.selection.as_ref().and_then(own),
        HookPurpose::Approval => hooks.approval.as_ref().and_then(own),
        HookPurpose::Monitoring => hooks.monitoring.as_ref().and_then(own),
        HookPurpose::Removal => hooks.removal.as_ref().and_then(own),
        HookPurpose::Monitor => {
            policy.monitor.as_ref().map(|monitor| (&monitor.hook, monitor.source.clone()))
        }
    }
}
