//! A profile: a named set of parameters, versioned by revision. Written only by operations, with
//! compare-and-set; a revision never changes, but for the key that its secrets are encrypted with.

use alloc::string::String;

use crate::records::annotation::Annotation;
use crate::records::secret::SecretValues;
use crate::words::counter::ProfileRevisionNumber;
use crate::words::label::Labels;
use crate::words::name::ProfileName;
use crate::words::version::Version;

/// Longest parameters of a profile, as canonical JSON, in bytes: a node keeps several revisions, and each
/// change writes the whole text.
pub const MAX_PARAMS_BYTES: usize = 64 << 10;

/// A profile; its parameters are in its revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name of the profile, unique in its namespace.
    pub name: ProfileName,
    /// Number of its newest revision; a deletion makes no revision.
    pub newest: ProfileRevisionNumber,
    /// Whether it was deleted. The record stays so that a profile of the same name continues the numbers: a
    /// node may still keep files of an old revision by its number.
    pub deleted: bool,
    /// Whether a change reaches the nodes that read it at once, without a rollout. An entity has no such profile.
    pub live: bool,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
}

/// One revision of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRevision {
    /// Name of the profile.
    pub profile: ProfileName,
    /// Number of the revision, from 1.
    pub number: ProfileRevisionNumber,
    /// The parameters: a JSON object as text, keys sorted, without spaces. At most [`MAX_PARAMS_BYTES`].
    pub params: String,
    /// The values of those that are secrets; `params` has a mark in their place.
    pub secrets: SecretValues,
    /// Who wrote it, when and why.
    pub annotation: Annotation,
}

impl Profile {
    /// The version that stands for the newest revision in entities of this profile.
    #[must_use]
    pub fn version(&self) -> Version {
        ProfileRevision::version_of(&self.name, self.newest)
    }
}

impl ProfileRevision {
    /// The version that stands for this revision in entities of this profile.
    #[must_use]
    pub fn version_of(profile: &ProfileName, number: ProfileRevisionNumber) -> Version {
        Version::numbered(profile.as_str(), number.get()).expect("a label with a number is a version")
    }

    /// The revision number within a version of an entity of this profile; `None` if it is not such a version.
    #[must_use]
    pub fn number_in(profile: &ProfileName, version: &Version) -> Option<ProfileRevisionNumber> {
        let (name, number) = version.as_numbered()?;
        (name == profile.as_str()).then_some(ProfileRevisionNumber::new(number))
    }
}
