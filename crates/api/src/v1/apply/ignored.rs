//! Fields of documents that are read and not kept.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

/// A field that a document may contain and that is ignored: its `kind`, once the kind is known, and its
/// `status`, which is printed with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}
