//! Remembering what a hook answered: absorbed by the core into the entity's record of answers, committed under the term.

use bellwether_core::records::event::EventDraft;
use bellwether_core::records::hook_answers::{HookAnswers, HookError, HookPurpose};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::rollout::hook_answer::{HookAnswer, absorb};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{EntityName, TargetName};
use bellwether_core::world::fleet::Fleet;

use super::{FinishedCall, HookCallKey, HookCaller};
use crate::reconcile::decider;
use crate::records::commit::CommitError;
use crate::transactor::CommitContext;

/// Most targets that leave in one commit: below the store's 128 operations, each with its event.
const PER_COMMIT: usize = 50;

/// How often it is looked again after the entity changed meanwhile.
const TRIES: u32 = 8;

impl HookCaller {
    /// Remembers an answer; says whether it was none, or nonsense. An answer about a rollout that is over is dropped.
    pub(super) async fn keep(&self, term: Term, done: &FinishedCall) -> Result<bool, CommitError> {
        let mut tries = 0;
        loop {
            let HookCallKey { namespace, entity, asked } = &done.asking.place;
            let world = self.transactor.world();
            let fleet = world.fleets.get(namespace);
            let board = fleet.and_then(|fleet| fleet.boards.get(entity));
            let about = |number| number == done.asking.rollout;
            let board = board.filter(|board| board.rollout().is_some_and(|rollout| about(rollout.number)));
            let (Some(fleet), Some(board)) = (fleet, board) else { return Ok(false) };
            let kept = fleet.answers.get(entity).map(|kept| &*kept.value).cloned().unwrap_or_default();
            let answers =
                absorb(board, &kept, &done.asking.question, done.answer.clone(), self.transactor.now());
            let answers = settled(&kept, answers);
            let failed = answers.troubles.contains_key(asked);
            let left = if failed { Vec::new() } else { left(fleet, entity, &done.answer) };
            if answers == kept && left.is_empty() {
                return Ok(failed);
            }
            let before = kept.troubles.get(asked).filter(|_| about(kept.rollout));
            let mut events = told(&done.asking.place, before, answers.troubles.get(asked));
            let mut writes = vec![Write::put(Record::HookAnswers(entity.clone(), answers))];
            for target in left {
                let subject = format!("target/{entity}/{target}");
                let cause = "the removal hook took it away".to_owned();
                events.push(EventDraft { kind: "target.gone", subject, before: None, after: None, cause });
                writes.push(Write::Delete(Key::ExternalTarget(entity.clone(), target)));
            }
            let by = CommitContext { seen: vec![Key::Entity(entity.clone())], ..decider(term) };
            tries += 1;
            match self.transactor.commit(&world, namespace, by, vec![Changeset { writes, events }]).await {
                Ok(_) => return Ok(failed),
                Err(CommitError::Conflict) if tries < TRIES => {
                    self.transactor.shown(world.revision.next()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// External targets that an answer says are gone, and that are still there, as many as fit one commit: about the others
/// it is asked again.
fn left(fleet: &Fleet, entity: &EntityName, answer: &HookAnswer) -> Vec<TargetName> {
    let HookAnswer::Removed(gone) = answer else { return Vec::new() };
    let there = |target: &&TargetName| fleet.externals.contains_key(&(entity.clone(), (*target).clone()));
    gone.iter().filter(there).take(PER_COMMIT).cloned().collect()
}

/// The same answer once more, to the same question, keeps its first time: nothing is written for it. The monitor's time
/// counts, since its silence does.
fn settled(kept: &HookAnswers, mut answers: HookAnswers) -> HookAnswers {
    if let (Some(old), Some(new)) = (&kept.selection, &mut answers.selection)
        && old.turned == new.turned
        && old.targets == new.targets
    {
        new.at = old.at;
    }
    if let (Some(old), Some(new)) = (&kept.approval, &mut answers.approval) {
        let same = (old.turned, old.approved) == (new.turned, new.approved) && old.reason == new.reason;
        if same && old.targets == new.targets {
            new.at = old.at;
        }
    }
    answers
}

/// What is told when trouble begins or ends.
fn told(place: &HookCallKey, before: Option<&HookError>, after: Option<&HookError>) -> Vec<EventDraft> {
    let HookCallKey { entity, asked, .. } = place;
    let draft = |kind, cause| EventDraft {
        kind,
        subject: format!("entity/{entity}"),
        before: None,
        after: None,
        cause,
    };
    match (before, after) {
        (None, Some(trouble)) => vec![draft("hook.trouble", cause(*asked, &trouble.reason))],
        (Some(trouble), None) => {
            let was = format!("it answers again; it was: {}", trouble.reason);
            vec![draft("hook.answered", cause(*asked, &was))]
        }
        (None, None) | (Some(_), Some(_)) => Vec::new(),
    }
}

fn cause(asked: HookPurpose, reason: &str) -> String {
    format!("{asked}: {reason}")
}
