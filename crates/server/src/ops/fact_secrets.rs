//! Secrets that a machine gets because of what it says of itself: a warning, since that may be meant.

use bellwether_core::records::entity::{Entity, EntityKind, TargetSource};
use bellwether_core::world::fleet::Fleet;

/// The warning about an entity whose selector tests facts and whose profile has secrets.
pub(crate) fn warning(fleet: &Fleet, entity: &Entity) -> Option<String> {
    let profile = match &entity.kind {
        EntityKind::Profile(profile) => profile,
        EntityKind::Version | EntityKind::Action(_) | EntityKind::Workflow(_) => return None,
    };
    let selector = match &entity.source {
        TargetSource::Nodes(selector) => selector,
        TargetSource::Listed(_) | TargetSource::External(_) => return None,
    };
    let newest = fleet.profiles.get(profile)?.value.newest;
    let revision = fleet.profile_revisions.get(&(profile.clone(), newest))?;
    (selector.tests_facts() && !revision.value.secrets.is_empty()).then(|| {
        format!(
            "warning: the selector tests facts, which a machine reports of itself, and profile {profile} has secrets: any node can \
             get them; select by labels"
        )
    })
}
