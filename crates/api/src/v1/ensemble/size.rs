//! The number of members of an ensemble, as it is written: a number, or the word `quorum`.

use std::fmt;
use std::str::FromStr;

use bellwether_core::records::ensemble as core;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};

/// The size that follows the number of nodes.
const QUORUM: &str = "quorum";

/// Number of members: a number, or `quorum` for as many as the nodes that match are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsembleSize {
    /// So many.
    Number(u32),
    /// As many as the nodes that match are good for.
    Quorum,
}

/// A size that is neither a number nor `quorum`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a size: write a whole number or quorum")]
pub struct SizeError(String);

impl fmt::Display for EnsembleSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => fmt::Display::fmt(number, f),
            Self::Quorum => f.pad(QUORUM),
        }
    }
}

impl FromStr for EnsembleSize {
    type Err = SizeError;
    fn from_str(text: &str) -> Result<Self, SizeError> {
        match text {
            QUORUM => Ok(Self::Quorum),
            number => number.parse().map(Self::Number).map_err(|_| SizeError(text.to_owned())),
        }
    }
}

impl Serialize for EnsembleSize {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => to.serialize_u32(*number),
            Self::Quorum => to.serialize_str(QUORUM),
        }
    }
}

impl<'de> Deserialize<'de> for EnsembleSize {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = EnsembleSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number or \"quorum\"")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<EnsembleSize, E> {
        u32::try_from(number).map(EnsembleSize::Number).map_err(|_| E::custom("the number is too large"))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<EnsembleSize, E> {
        u32::try_from(number).map(EnsembleSize::Number).map_err(|_| E::custom("a size is not negative"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<EnsembleSize, E> {
        text.parse().map_err(E::custom)
    }
}

impl utoipa::PartialSchema for EnsembleSize {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer));
        let number = number.minimum(Some(1)).maximum(Some(core::MAX_INDEPENDENT));
        let word =
            ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some([QUORUM]));
        let described = OneOfBuilder::new().item(number).item(word).description(Some(
            "Number of members: a number, or `quorum` for as many as the nodes that match are good for.",
        ));
        RefOr::T(Schema::OneOf(described.examples([serde_json::json!(QUORUM)]).build()))
    }
}

impl utoipa::ToSchema for EnsembleSize {}

impl From<core::EnsembleSize> for EnsembleSize {
    fn from(from: core::EnsembleSize) -> Self {
        match from {
            core::EnsembleSize::Number(number) => Self::Number(number),
            core::EnsembleSize::Quorum => Self::Quorum,
        }
    }
}

impl From<EnsembleSize> for core::EnsembleSize {
    fn from(from: EnsembleSize) -> Self {
        match from {
            EnsembleSize::Number(number) => Self::Number(number),
            EnsembleSize::Quorum => Self::Quorum,
        }
    }
}
