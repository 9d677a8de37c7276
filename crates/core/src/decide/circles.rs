//! Who waits for whom in a circle: told once when it closes and once when it opens. They are found where those that wait
//! are kept, in `crates/core/src/world/waits.rs`.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::circle::{Circle, Circles, Waiter};
use crate::records::event::Draft;
use crate::records::key::Record;
use crate::verdict::{Atom, Verdict, Write};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Tells of circular waits that came and went. Costs the circles there are, not those that wait.
///
/// Woken by: reports, what nodes offer.
#[must_use]
pub fn decide(fleet: &Fleet, now: Timestamp) -> Verdict {
    let none = Circles::default();
    let known = &fleet.circles.as_ref().map_or(&none, |kept| &*kept.value).0;
    let there = fleet.waits.circles();
    let found: Vec<Circle> = there
        .iter()
        .map(|members| {
            let Some(old) = known.iter().find(|old| old.is_same(members)) else {
                return Circle { members: members.clone(), since: now };
            };
            let named = old.members.iter().zip(members);
            let named = named.map(|(old, new)| if fleet.waits.has(old) { old } else { new });
            Circle { members: named.cloned().collect(), since: old.since }
        })
        .collect();
    let is_in = |all: &[Circle], circle: &Circle| all.iter().any(|one| one.is_same(&circle.members));
    let new = found.iter().filter(|circle| !is_in(known, circle));
    let over = known.iter().filter(|circle| !is_in(&found, circle));
    let mut events: Vec<Draft> = new.map(|circle| told("wait.circular", circle, circle.hint())).collect();
    events.extend(
        over.map(|circle| told("wait.circle_ended", circle, "it waits no longer in a circle".to_string())),
    );
    if found == *known {
        return Verdict::default();
    }
    let write = Write::put(Record::Circles(Circles(found)));
    Verdict { atoms: vec![Atom { writes: vec![write], events }], wake: None }
}

fn told(kind: &'static str, circle: &Circle, cause: String) -> Draft {
    let subject = circle.members.first().map(|member| Waiter::subject(&member.who)).unwrap_or_default();
    Draft { kind, subject, before: None, after: Some(circle.to_string()), cause }
}

#[cfg(test)]
mod tests;
