//! Fields of documents that are read and not kept.

use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize, Serializer};

/// A field that a document may contain and that is ignored: its `kind`, once the kind is known, and its
/// `status`, which is printed with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl Ignored {
    /// That it is left out of what is written.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form in which serde asks")]
    pub(super) const fn always(&self) -> bool {
        true
    }
}

impl Serialize for Ignored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}
