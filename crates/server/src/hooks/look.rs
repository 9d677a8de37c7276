//! What there is to ask in a world. Owns the way from policies and boards to questions; when they are asked is the
//! ledger's.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_core::decide::rollout;
use bellwether_core::records::answers::{Answers, Asked};
use bellwether_core::records::policy::Policy;
use bellwether_core::records::policy::hook::{Hook, Source};
use bellwether_core::rollout::board::Board;
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;

use super::{About, Asking, Place};

/// What there is to ask.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The questions, each with what is remembered of earlier answers.
    pub(super) questions: Vec<(Asking, Arc<Answers>)>,
    /// Entities with hooks whose rollout is under way.
    pub(super) live: BTreeSet<(Namespace, EntityName)>,
    /// When there may be other questions though nothing changes.
    pub(super) wake: Option<Timestamp>,
}

/// Looks at every entity that has hooks and a rollout under way.
pub(super) fn look(world: &World, now: Timestamp) -> Look {
    let mut look = Look::default();
    for (namespace, fleet) in &world.fleets {
        let hooked = fleet.boards.iter().filter(|(_, board)| has_hooks(&board.entity().policy));
        for (entity, board) in hooked {
            look.add(world, (namespace, entity), board, now);
        }
    }
    look
}

impl Look {
    fn add(
        &mut self,
        world: &World,
        (namespace, entity): (&Namespace, &EntityName),
        board: &Board,
        now: Timestamp,
    ) {
        let Some(rollout) = board.rollout().filter(|rollout| !rollout.is_over()) else { return };
        self.live.insert((namespace.clone(), entity.clone()));
        let around = world.around(namespace, entity);
        let verdict = rollout::decide(board, &around, now);
        self.wake = [self.wake, verdict.wake].into_iter().flatten().min();
        // A rollout that this verdict begins is asked about once it is written.
        if verdict.progress.is_some_and(|progress| progress.active() != Some(rollout.number)) {
            return;
        }
        for question in verdict.questions {
            let asked = question.asked();
            let Some((hook, source)) = hook_of(&board.entity().policy, asked) else { continue };
            let place = Place { namespace: namespace.clone(), entity: entity.clone(), asked };
            let about = About { version: rollout.version.clone(), from: rollout.from.clone() };
            let (hook, number) = (hook.clone(), rollout.number);
            let asking = Asking { place, rollout: number, about, hook, source, question };
            self.questions.push((asking, around.answers.clone()));
        }
    }
}

fn has_hooks(policy: &Policy) -> bool {
    let hooks = &policy.hooks;
    policy.monitor.is_some()
        || hooks.selection.is_some()
        || hooks.approval.is_some()
        || hooks.monitoring.is_some()
        || hooks.removal.is_some()
}

fn hook_of(policy: &Policy, asked: Asked) -> Option<(&Hook, Source)> {
    let hooks = &policy.hooks;
    let own = |hook| Some((hook, Source::Hook));
    match asked {
        Asked::Selection => hooks.selection.as_ref().and_then(own),
        Asked::Approval => hooks.approval.as_ref().and_then(own),
        Asked::Monitoring => hooks.monitoring.as_ref().and_then(own),
        Asked::Removal => hooks.removal.as_ref().and_then(own),
        Asked::Monitor => policy.monitor.as_ref().map(|monitor| (&monitor.hook, monitor.source.clone())),
    }
}
