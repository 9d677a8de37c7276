//! Records the answers of hooks: core absorbs an answer into the entity's record, which is committed in the term.

use bellwether_core::records::event::EventDraft;
use bellwether_core::records::hook_answers::{HookAnswers, HookError, HookPurpose};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::rollout::hook_answer::{HookAnswer, absorb};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{EntityName, TargetName};
use bellwether_core::world::fleet::Fleet;

use super::call_spec::{FinishedCall, HookCallKey};
use crate::reconcile::as_decider;
use crate::records::commit::CommitError;
use crate::transactor::{CommitContext, Transactor};

/// Most targets removed per commit: below the store's limit of 128 operations, each with its event.
const PER_COMMIT: usize = 50;

/// Attempts while the entity changes concurrently.
const TRIES: u32 = 8;

/// Records an answer. Returns whether the call failed. An answer about a rollout that is over is dropped.
pub(super) async fn remember(
    transactor: &Transactor,
    term: Term,
    done: &FinishedCall,
) -> Result<bool, CommitError> {
    let mut tries = 0;
    loop {
        let HookCallKey { namespace, entity, asked } = &done.spec.key;
        let world = transactor.world();
        let fleet = world.fleets.get(namespace);
        let board = fleet.and_then(|fleet| fleet.boards.get(entity));
        let is_current = |number| number == done.spec.rollout;
        let board = board.filter(|board| board.rollout().is_some_and(|rollout| is_current(rollout.number)));
        let (Some(fleet), Some(board)) = (fleet, board) else { return Ok(false) };
        let kept = fleet.answers.get(entity).map(|kept| &*kept.value).cloned().unwrap_or_default();
        let answers = absorb(board, &kept, &done.spec.question, done.answer.clone(), transactor.now());
        let answers = keep_earlier_times(&kept, answers);
        let failed = answers.troubles.contains_key(asked);
        let removed_targets = if failed { Vec::new() } else { removed_targets(fleet, entity, &done.answer) };
        if answers == kept && removed_targets.is_empty() {
            return Ok(failed);
        }
        let before = kept.troubles.get(asked).filter(|_| is_current(kept.rollout));
        let mut events = failure_events(&done.spec.key, before, answers.troubles.get(asked));
        let mut writes = vec![Write::put(Record::HookAnswers(entity.clone(), answers))];
        for target in removed_targets {
            let subject = format!("target/{entity}/{target}");
            let cause = "removed by the removal hook".to_owned();
            events.push(EventDraft { kind: "target.gone", subject, before: None, after: None, cause });
            writes.push(Write::delete(Key::ExternalTarget(entity.clone(), target)));
        }
        let by = CommitContext { seen: vec![Key::Entity(entity.clone()).into()], ..as_decider(term) };
        tries += 1;
        match transactor.commit(&world, namespace, by, vec![Changeset { writes, events }]).await {
            Ok(_) => return Ok(failed),
            Err(CommitError::Conflict { at }) if tries < TRIES => {
                transactor.after_conflict(&world, at).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The removed external targets that still exist, as many as fit one commit. The hook is called again about the
/// others.
fn removed_targets(fleet: &Fleet, entity: &EntityName, answer: &HookAnswer) -> Vec<TargetName> {
    let HookAnswer::Removed(gone) = answer else { return Vec::new() };
    let there = |target: &&TargetName| fleet.externals.contains_key(&(entity.clone(), (*target).clone()));
    gone.iter().filter(there).take(PER_COMMIT).cloned().collect()
}

/// Keeps the earlier time of an unchanged answer, so that nothing is written for it. The monitor's time is kept current,
/// since its silence is measured.
fn keep_earlier_times(kept: &HookAnswers, mut answers: HookAnswers) -> HookAnswers {
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

/// The event for a hook that starts or stops failing.
fn failure_events(
    key: &HookCallKey,
    before: Option<&HookError>,
    after: Option<&HookError>,
) -> Vec<EventDraft> {
    let HookCallKey { entity, asked, .. } = key;
    let draft = |kind, cause| EventDraft {
        kind,
        subject: format!("entity/{entity}"),
        before: None,
        after: None,
        cause,
    };
    match (before, after) {
        (None, Some(trouble)) => vec![draft("hook.failed", cause(*asked, &trouble.reason))],
        (Some(trouble), None) => {
            let was = format!("recovered; the error was: {}", trouble.reason);
            vec![draft("hook.recovered", cause(*asked, &was))]
        }
        (None, None) | (Some(_), Some(_)) => Vec::new(),
    }
}

fn cause(asked: HookPurpose, reason: &str) -> String {
    format!("{asked}: {reason}")
}
