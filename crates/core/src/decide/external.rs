//! External targets that no controller reports any more: they become silent first, and are removed later.

use alloc::{format, vec};

use crate::records::entity::TargetSource;
use crate::records::event::EventDraft;
use crate::records::external::{ExternalTarget, StalenessLimits};
use crate::records::key::{Key, Record};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{EntityName, TargetName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Most targets of one entity in one verdict; the rest follows in the next pass.
const AT_ONCE: usize = 512;

/// Marks targets silent, and removes them, once their limits are exceeded. Costs time in proportion to the
/// entities with external targets and the due targets. Before `listening` no controller could report: no
/// target becomes silent until its limit has passed since then, and only one that was silent is removed.
///
/// Woken by: reports of external targets, entities, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, listening: Timestamp, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for (entity, dues) in &fleet.overdue {
        let Some(staleness) = fleet.staleness(entity) else { continue };
        let from = listening.plus(staleness.unreachable_after);
        let due = dues.iter().take_while(|(at, _)| from <= now && *at <= now).take(AT_ONCE);
        for (_, target) in due {
            if let Some(known) = fleet.externals.get(&(entity.clone(), target.clone())) {
                verdict.changesets.push(turn(entity, target, &known.value, staleness, now));
            }
        }
        let next = dues.first().map(|(at, _)| from.max(*at));
        verdict.wake = [verdict.wake, next].into_iter().flatten().min();
    }
    verdict
}

fn turn(
    entity: &EntityName,
    target: &TargetName,
    known: &ExternalTarget,
    staleness: StalenessLimits,
    now: Timestamp,
) -> Changeset {
    let quiet_for = Span::from_secs(now.since(known.reported_at).as_millis() / 1_000);
    let event_draft = |kind, cause| EventDraft {
        kind,
        subject: format!("target/{entity}/{target}"),
        before: None,
        after: None,
        cause,
    };
    let Some(silent) = known.turned_silent(now) else {
        let key = Key::ExternalTarget(entity.clone(), target.clone());
        let cause = format!("not reported for {quiet_for}; no longer a target");
        return Changeset {
            writes: vec![Write::delete(key)],
            events: vec![event_draft("target.released", cause)],
        };
    };
    let write = Write::put(Record::ExternalTarget(entity.clone(), target.clone(), silent));
    let cause = format!("not reported for {quiet_for}; released after {}", staleness.remove_after);
    Changeset { writes: vec![write], events: vec![event_draft("target.silent", cause)] }
}

impl Fleet {
    /// How old reports of an entity's external targets may be; `None` for an entity of nodes.
    #[must_use]
    pub fn staleness(&self, entity: &EntityName) -> Option<StalenessLimits> {
        match self.entities.get(entity)?.value.source {
            TargetSource::External(staleness) => Some(staleness),
            TargetSource::Nodes(_) | TargetSource::Listed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
