//! A profile: a named bag of params whose every change is a revision of its own. Written only by people's operations, by
//! comparing and setting; a revision, here an *edition*, never changes.

use alloc::string::String;

use crate::words::counter::ProfileRevisionNumber;
use crate::words::label::Labels;
use crate::words::name::{Actor, ProfileName};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// Longest params of a profile, as canonical JSON, in bytes: a node keeps several, and each change writes them whole.
pub const MAX_PARAMS_BYTES: usize = 64 << 10;

/// A profile, by its newest revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: ProfileName,
    /// Its newest revision; a deletion is none.
    pub newest: ProfileRevisionNumber,
    /// Whether people deleted it. It is remembered, so that one of the same name goes on counting: a node may still keep
    /// files of a revision by its number.
    pub deleted: bool,
    /// Who changed it last.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// Why, in their words; may be empty.
    pub why: String,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
}

/// One revision of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRevision {
    /// Whose.
    pub profile: ProfileName,
    /// Its place, from 1.
    pub number: ProfileRevisionNumber,
    /// The params: a JSON object as text, keys in order, without spaces. At most [`MAX_PARAMS_BYTES`].
    pub params: String,
    /// Who wrote it.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// Why, in their words; may be empty.
    pub why: String,
}

impl Profile {
    /// The version of an entity of this profile at its newest revision.
    #[must_use]
    pub fn version(&self) -> Version {
        ProfileRevision::version_of(&self.name, self.newest)
    }
}

impl ProfileRevision {
    /// The version of an entity of this profile at this revision.
    #[must_use]
    pub fn version_of(profile: &ProfileName, number: ProfileRevisionNumber) -> Version {
        Version::numbered(profile.as_str(), number.get()).expect("a label with a number is a version")
    }

    /// The number in a version of an entity of this profile; none in any other version.
    #[must_use]
    pub fn number_in(profile: &ProfileName, version: &Version) -> Option<ProfileRevisionNumber> {
        let (name, number) = version.as_numbered()?;
        (name == profile.as_str()).then_some(ProfileRevisionNumber::new(number))
    }
}
