//! Which version an entity is to be at, for comparing it with a document's.

use bellwether_core::records::entity::Entity;
use bellwether_core::words::version::Version;
use bellwether_core::world::fleet::Fleet;

/// The version that an entity is to be at: the one requested last, or last known good once that became known bad.
pub(super) fn requested(fleet: &Fleet, entity: &Entity) -> Option<Version> {
    let requested = entity.wanted.as_ref()?;
    let progress = fleet.progresses.get(&entity.name).map(|kept| &*kept.value);
    let good = progress.and_then(|progress| progress.last_known_good.as_ref());
    let aborted = entity.abort.as_ref().is_some_and(|abort| abort.request >= requested.request);
    if aborted && good != Some(&requested.version) {
        return None;
    }
    match progress {
        Some(progress)
            if requested.request <= progress.handled && progress.bad(&requested.version).is_some() =>
        {
            progress.last_known_good.clone()
        }
        Some(_) | None => Some(requested.version.clone()),
    }
}
