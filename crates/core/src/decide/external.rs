//! External targets that nobody reports any more: first they are silent, then they are let go.

use alloc::format;
use alloc::vec;

use crate::records::entity::Source;
use crate::records::event::Draft;
use crate::records::external::{External, Patience};
use crate::records::key::{Key, Record};
use crate::verdict::{Atom, Verdict, Write};
use crate::words::name::{EntityName, TargetName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Most targets of one entity in one verdict: the rest follows in the next pass.
const AT_ONCE: usize = 512;

/// Turns targets silent, and lets them go, once it is time. Costs the entities with external targets, and what is due.
/// Before `listening` nobody could report: for as long afterwards as a target may be silent, none is taken to be.
///
/// Woken by: reports of external targets, entities, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, listening: Timestamp, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for (entity, dues) in &fleet.overdue {
        let Some(patience) = fleet.patience(entity) else { continue };
        let from = listening.plus(patience.silent_after);
        let due = dues.iter().take_while(|(at, _)| from <= now && *at <= now).take(AT_ONCE);
        for (_, target) in due {
            if let Some(known) = fleet.externals.get(&(entity.clone(), target.clone())) {
                let quiet = now.since(known.value.reported_at);
                verdict.atoms.push(turn((entity, target), &known.value, patience, quiet));
            }
        }
        let next = dues.first().map(|(at, _)| from.max(*at));
        verdict.wake = [verdict.wake, next].into_iter().flatten().min();
    }
    verdict
}

/// When something is next to be done about a target.
pub(crate) fn due(external: &External, patience: Patience) -> Timestamp {
    external.reported_at.plus(if external.silent { patience.let_go_after } else { patience.silent_after })
}

fn turn(
    (entity, target): (&EntityName, &TargetName),
    known: &External,
    patience: Patience,
    quiet: Span,
) -> Atom {
    let quiet_for = Span::from_secs(quiet.as_millis() / 1_000);
    let told = |kind, cause| Draft {
        kind,
        subject: format!("target/{entity}/{target}"),
        before: None,
        after: None,
        cause,
    };
    if quiet >= patience.let_go_after {
        let key = Key::External(entity.clone(), target.clone());
        let cause = format!("not reported for {quiet_for}; it is no target any more");
        return Atom { writes: vec![Write::Delete(key)], events: vec![told("target.let_go", cause)] };
    }
    let silent = External { silent: true, well_since: None, ..known.clone() };
    let write = Write::put(Record::External(entity.clone(), target.clone(), silent));
    let cause = format!("not reported for {quiet_for}; let go after {}", patience.let_go_after);
    Atom { writes: vec![write], events: vec![told("target.silent", cause)] }
}

impl Fleet {
    /// How long an entity's external targets may go unreported; none for an entity of nodes.
    #[must_use]
    pub fn patience(&self, entity: &EntityName) -> Option<Patience> {
        match self.entities.get(entity)?.value.source {
            Source::External(patience) => Some(patience),
            Source::Nodes(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
