//! The shelf: which revisions of a profile there are, which version a person means by what they ask for, and which
//! revisions may be forgotten. Decides nothing about rollouts.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::entity::{Entity, EntityKind};
use crate::records::profile::ProfileRevision;
use crate::records::progress::Progress;
use crate::words::counter::ProfileRevisionNumber;
use crate::words::name::{ActionName, EntityName, ProfileName};
use crate::words::version::Version;
use crate::world::fleet::Fleet;

/// Newest revisions of a profile that are kept whether or not anything runs them: a few months of changes to look back on.
pub const EDITIONS_KEPT: usize = 64;

/// Most revisions of a profile at all, those in use included: the rest fits one transaction when it is deleted.
pub const MAX_EDITIONS: usize = 100;

/// Why what a person asked for is no version of their entity. Fits after "could not ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnresolvedVersion {
    /// Nothing was said.
    #[error("start {entity} without a version")]
    Unsaid {
        /// The entity.
        entity: EntityName,
    },
    /// Its profile is gone.
    #[error("start {entity}: there is no profile {profile}")]
    NoProfile {
        /// The entity.
        entity: EntityName,
        /// Its profile.
        profile: ProfileName,
    },
    /// The entity is of a profile, and this names no revision of it.
    #[error("start {asked}: entity {entity} is of profile {profile}, and that is none of its revisions")]
    OtherProfile {
        /// What was asked for.
        asked: String,
        /// The entity.
        entity: EntityName,
        /// Its profile.
        profile: ProfileName,
    },
    /// The profile has no such revision, or no longer.
    #[error("start {asked}: profile {profile} has revisions {oldest} to {newest}, and not that one")]
    NoRevision {
        /// What was asked for.
        asked: String,
        /// The profile.
        profile: ProfileName,
        /// The oldest that is kept.
        oldest: ProfileRevisionNumber,
        /// The newest.
        newest: ProfileRevisionNumber,
    },
    /// The entity runs an action, and the number of a run is not a person's to give.
    #[error("start {asked}: entity {entity} runs action {action}, and each run gets a number of its own")]
    OwnNumber {
        /// What was asked for.
        asked: String,
        /// The entity.
        entity: EntityName,
        /// Its action.
        action: ActionName,
    },
}

impl UnresolvedVersion {
    /// The next thing to try.
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
            Self::OwnNumber { entity, .. } => alloc::format!("bellwether rollout start {entity}"),
        }
    }
}

/// The version that a person means who asks `entity` for `asked`, or for nothing in particular.
///
/// # Errors
/// [`UnresolvedVersion`] with what there is instead.
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
        fleet.editions_of(profile).next().map_or(head.newest, |profile_revision| profile_revision.number);
    let (asked, profile) = (asked.to_string(), profile.clone());
    Err(UnresolvedVersion::NoRevision { asked, profile, oldest, newest: head.newest })
}

/// A run's number is beyond every event so far, and its request is one more: it only grows, also past the deletion of an
/// entity, whose runs a node still remembers when another one of that name comes.
fn next_run(fleet: &Fleet, action: &ActionName) -> Version {
    let number = fleet.last_event().next().get();
    Version::numbered(action.as_str(), number).expect("a label with a number is a version")
}

impl Fleet {
    /// A profile that is not deleted.
    #[must_use]
    pub fn profile(&self, name: &ProfileName) -> Option<&crate::records::profile::Profile> {
        self.profiles.get(name).map(|kept| &*kept.value).filter(|profile| !profile.deleted)
    }

    /// The kept revisions of a profile, oldest first.
    pub fn editions_of<'a>(&'a self, name: &'a ProfileName) -> impl Iterator<Item = &'a ProfileRevision> {
        let from = self.profile_revisions.range((name.clone(), ProfileRevisionNumber::ZERO)..);
        from.take_while(move |((of, _), _)| of == name).map(|(_, kept)| &*kept.value)
    }

    /// The entities of a profile.
    pub fn entities_of<'a>(&'a self, name: &'a ProfileName) -> impl Iterator<Item = &'a Entity> {
        let all = self.entities.values().map(|kept| &*kept.value);
        all.filter(move |entity| matches!(&entity.kind, EntityKind::Profile(profile) if profile == name))
    }

    /// The revisions of a profile that may be forgotten when one more is written: older than the newest [`EDITIONS_KEPT`],
    /// that one among them, run by nobody, asked of nobody, and not what anybody would be taken back to. Linear in the
    /// fleet, if there are any so old.
    #[must_use]
    pub fn forgettable(&self, name: &ProfileName) -> Vec<ProfileRevisionNumber> {
        let mut old: Vec<ProfileRevisionNumber> =
            self.editions_of(name).map(|profile_revision| profile_revision.number).collect();
        old.truncate((old.len() + 1).saturating_sub(EDITIONS_KEPT));
        if !old.is_empty() {
            let used = self.used(name);
            old.retain(|number| !used.contains(number));
        }
        old
    }

    fn used(&self, name: &ProfileName) -> BTreeSet<ProfileRevisionNumber> {
        let number = |version: &Version| ProfileRevision::number_in(name, version);
        let mut used: BTreeSet<ProfileRevisionNumber> = BTreeSet::new();
        for entity in self.entities_of(name) {
            used.extend(entity.wanted.iter().filter_map(|wanted| number(&wanted.version)));
            let progress = self.progresses.get(&entity.name).map(|kept| &*kept.value);
            used.extend(progress.into_iter().flat_map(Progress::moving).filter_map(number));
            let board = self.boards.get(&entity.name);
            let rollout = board.and_then(|board| board.rollout());
            used.extend(rollout.iter().filter_map(|rollout| number(&rollout.version)));
            let targets = board.into_iter().flat_map(|board| board.targets());
            used.extend(targets.filter_map(|target| number(&target.state?.version)));
        }
        let told = self.contents.values().flat_map(|content| content.entities.values());
        used.extend(told.filter_map(|told| number(&told.version)));
        let said = self.reports.values().flat_map(|kept| kept.value.entities.values());
        used.extend(said.filter_map(|said| number(said.running.as_ref()?)));
        used
    }
}

impl Progress {
    /// The versions that targets are at, are brought to, or may be taken back to.
    pub fn moving(&self) -> impl Iterator<Item = &Version> {
        [&self.target, &self.rolling, &self.last_known_good].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests;
