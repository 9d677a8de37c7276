//! Known services without instances: records since when, and forgets a service that has had none for long.

use alloc::format;
use alloc::string::String;
use alloc::vec;

use crate::records::event::{EventDraft, FORGOTTEN};
use crate::records::key::{Key, Record};
use crate::records::registrations::KnownService;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::ServiceName;
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Default time for which a service without instances stays known.
pub const SERVICES_KEPT: Span = Span::from_secs(7 * 86_400);

/// A service that was known for less than this when its last instance went stays known only for as long: names that are tried out, or
/// made up by a node, are not kept for days.
const SHORT_LIVED: Span = Span::from_secs(3_600);

/// Most changes in one verdict; the rest follows in the next pass.
const AT_ONCE: usize = 512;

/// Records since when a service has no instances, and forgets it after `kept`.
///
/// Woken by: service registrations, its own wake. An instance that is registered while its service is being
/// forgotten makes the service known again in the next pass.
#[must_use]
pub fn decide(fleet: &Fleet, kept: Span, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for (name, service) in fleet.catalogue.services() {
        if verdict.changesets.len() >= AT_ONCE {
            break;
        }
        let known = fleet.services.get(name).map(|known| &*known.value);
        let idle_since = known.and_then(|known| known.idle_since);
        let is_idle = service.addressable() == 0;
        let kept = known.map_or(kept, |known| kept_for(known, kept));
        if let Some(ends) = idle_since.filter(|_| is_idle).map(|since| since.plus(kept)) {
            if ends <= now {
                verdict.changesets.push(forget(name, format!("it had no instance for {kept}")));
            } else {
                verdict.wake = Some(verdict.wake.map_or(ends, |wake| wake.min(ends)));
            }
        } else if known.is_none() || is_idle != idle_since.is_some() {
            let first_at = known.map_or(now, |known| known.first_at);
            let idle_since = is_idle.then_some(now);
            let known = KnownService { name: name.clone(), first_at, idle_since };
            let writes = vec![Write::put(Record::Service(known))];
            verdict.changesets.push(Changeset { writes, events: vec![] });
        }
    }
    verdict
}

/// For how long a service without instances stays known.
fn kept_for(known: &KnownService, kept: Span) -> Span {
    let is_short = known.idle_since.is_some_and(|since| since.since(known.first_at) < SHORT_LIVED);
    if is_short { kept.min(SHORT_LIVED) } else { kept }
}

/// Makes a service unknown.
#[must_use]
pub fn forget(name: &ServiceName, cause: String) -> Changeset {
    let subject = format!("service/{name}");
    let event = EventDraft { kind: FORGOTTEN, subject, before: None, after: None, cause };
    Changeset { writes: vec![Write::delete(Key::Service(name.clone()))], events: vec![event] }
}

#[cfg(test)]
mod tests;
