//! Version resolution: the revisions of a profile, the version that a request means, and which revisions may
//! be removed. Decides nothing about rollouts.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::entity::{Entity, EntityKind};
use crate::records::profile::ProfileRevision;
use crate::records::progress::Progress;
use crate::words::counter::ProfileRevisionNumber;
use crate::words::name::{ActionName, EntityName, ProfileName, WorkflowName};
use crate::words::version::Version;
use crate::world::fleet::Fleet;

/// Newest revisions of a profile that are kept whether or not a target runs them: a few months of changes.
pub const REVISIONS_KEPT: usize = 64;

/// Newest revisions of a live profile that are kept: enough to see what changed last.
pub const LIVE_REVISIONS_KEPT: usize = 8;

/// Most revisions of a profile, including those in use: removing all of them fits in one transaction.
pub const MAX_EDITIONS: usize = 100;

/// Why a request names no valid version of its entity. The text follows "cannot ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnresolvedVersion {
    /// No version was named.
    #[error("start {entity} without a version")]
    Unsaid {
        /// Name of the entity.
        entity: EntityName,
    },
    /// Its profile does not exist.
    #[error("start {entity}: profile {profile} does not exist")]
    NoProfile {
        /// Name of the entity.
        entity: EntityName,
        /// Name of its profile.
        profile: ProfileName,
    },
    /// The entity is of a profile, and the request names no revision of it.
    #[error("start {asked}: entity {entity} uses profile {profile}, which has no such revision")]
    OtherProfile {
        /// The requested version.
        asked: String,
        /// Name of the entity.
        entity: EntityName,
        /// Name of its profile.
        profile: ProfileName,
    },
    /// The profile has no such revision, or not any more.
    #[error("start {asked}: profile {profile} has revisions {oldest} to {newest}")]
    NoRevision {
        /// The requested version.
        asked: String,
        /// Name of the profile.
        profile: ProfileName,
        /// The oldest stored revision.
        oldest: ProfileRevisionNumber,
        /// The newest revision.
        newest: ProfileRevisionNumber,
    },
    /// The entity is a run of a workflow, which is started once.
    #[error("start {entity} again: it is a run of workflow {workflow}, and a run is started once")]
    OneRun {
        /// Name of the entity.
        entity: EntityName,
        /// Name of its workflow.
        workflow: WorkflowName,
    },
    /// The entity runs an action, whose run numbers people cannot choose.
    #[error("start {asked}: entity {entity} runs action {action}, whose runs are numbered automatically")]
    OwnNumber {
        /// The requested version.
        asked: String,
        /// Name of the entity.
        entity: EntityName,
        /// Name of its action.
        action: ActionName,
    },
}

impl UnresolvedVersion {
    /// The hint shown with the error: what to try next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unsaid { entity } => alloc::format!("bellwether rollout start {entity} VERSION"),
            Self::NoProfile { profile, .. } => alloc::format!("bellwether profile set {profile} KEY=VALUE"),
            Self::OtherProfile { entity, profile, .. } => {
                alloc::format!(
                    "bellwether rollout start {entity} {profile}   (its newest revision; or {profile}@N)"
                )
            }
            Self::NoRevision { profile, .. } => alloc::format!("bellwether profile history {profile}"),
            Self::OneRun { workflow, .. } => alloc::format!("bellwether workflow run {workflow} -l FILTER"),
            Self::OwnNumber { entity, .. } => alloc::format!("bellwether rollout start {entity}"),
        }
    }
}

/// The version that a request for `asked` means for `entity`. Without `asked` it is the newest revision of the
/// profile, or the next run of the action.
///
/// # Errors
/// [`UnresolvedVersion`] with the valid alternatives.
pub fn resolve(
    fleet: &Fleet,
    entity: &Entity,
    asked: Option<&Version>,
) -> Result<Version, UnresolvedVersion> {
    let name = || entity.name.clone();
    match (&entity.kind, asked) {
        (EntityKind::Version, Some(version)) => Ok(version.clone()),
        (EntityKind::Version, None) => Err(UnresolvedVersion::Unsaid { entity: name() }),
        (EntityKind::Profile(profile), asked) => resolve_edition(fleet, &entity.name, profile, asked),
        (EntityKind::Action(action), Some(asked)) if asked.as_str() != action.as_str() => {
            Err(UnresolvedVersion::OwnNumber {
                asked: asked.to_string(),
                entity: name(),
                action: action.clone(),
            })
        }
        (EntityKind::Action(action), _) => Ok(next_run(fleet, action)),
        (EntityKind::Workflow(workflow), _) => {
            Err(UnresolvedVersion::OneRun { entity: name(), workflow: workflow.clone() })
        }
    }
}

fn resolve_edition(
    fleet: &Fleet,
    entity: &EntityName,
    profile: &ProfileName,
    asked: Option<&Version>,
) -> Result<Version, UnresolvedVersion> {
    let kept = fleet.profile(profile);
    let gone = || UnresolvedVersion::NoProfile { entity: entity.clone(), profile: profile.clone() };
    let head = kept.ok_or_else(gone)?;
    let Some(asked) = asked.filter(|asked| asked.as_str() != profile.as_str()) else {
        return Ok(head.version());
    };
    let Some(number) = ProfileRevision::number_in(profile, asked) else {
        let (entity, profile) = (entity.clone(), profile.clone());
        return Err(UnresolvedVersion::OtherProfile { asked: asked.to_string(), entity, profile });
    };
    if fleet.profile_revisions.contains_key(&(profile.clone(), number)) {
        return Ok(asked.clone());
    }
    let oldest =
        fleet.revisions_of(profile).next().map_or(head.newest, |profile_revision| profile_revision.number);
    let (asked, profile) = (asked.to_string(), profile.clone());
    Err(UnresolvedVersion::NoRevision { asked, profile, oldest, newest: head.newest })
}

/// The next run of an action.
fn next_run(fleet: &Fleet, action: &ActionName) -> Version {
    let number = fleet.next_run().get();
    Version::numbered(action.as_str(), number).expect("a label with a number is a version")
}

impl Fleet {
    /// A profile by name, unless it is deleted.
    #[must_use]
    pub fn profile(&self, name: &ProfileName) -> Option<&crate::records::profile::Profile> {
        self.profiles.get(name).map(|kept| &*kept.value).filter(|profile| !profile.deleted)
    }

    /// The stored revisions of a profile, oldest first.
    pub fn revisions_of<'a>(&'a self, name: &'a ProfileName) -> impl Iterator<Item = &'a ProfileRevision> {
        let from = self.profile_revisions.range((name.clone(), ProfileRevisionNumber::ZERO)..);
        from.take_while(move |((of, _), _)| of == name).map(|(_, kept)| &*kept.value)
    }

    /// The entities that use a profile.
    pub fn entities_of<'a>(&'a self, name: &'a ProfileName) -> impl Iterator<Item = &'a Entity> {
        self.entities_of_profile
            .get(name)
            .filter_map(|entity| self.entities.get(entity))
            .map(|kept| &*kept.value)
    }

    /// The revisions of a profile that can be removed when one more is written: older than the newest
    /// [`REVISIONS_KEPT`] or, of a live one, [`LIVE_REVISIONS_KEPT`], counting that one, and neither run,
    /// assigned, requested nor a version to roll back to. Costs time in proportion to the revisions.
    #[must_use]
    pub fn forgettable(&self, name: &ProfileName) -> Vec<ProfileRevisionNumber> {
        let mut old: Vec<ProfileRevisionNumber> =
            self.revisions_of(name).map(|profile_revision| profile_revision.number).collect();
        let is_live = self.profile(name).is_some_and(|head| head.live);
        let most = if is_live { LIVE_REVISIONS_KEPT } else { REVISIONS_KEPT };
        old.truncate((old.len() + 1).saturating_sub(most));
        old.retain(|number| !self.version_uses.has(&ProfileRevision::version_of(name, *number)));
        old
    }
}

impl Progress {
    /// The versions that targets run, are assigned, or may be rolled back to.
    pub fn moving(&self) -> impl Iterator<Item = &Version> {
        [&self.target, &self.rolling, &self.last_known_good].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests;
