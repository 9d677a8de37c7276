//! Declarations of params: what values a param may have. Written only by operations.

use alloc::string::String;

use crate::records::annotation::Annotation;
use crate::words::name::ParamKey;

/// Longest schema, as JSON, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 16 * 1_024;

/// A declared param. Its default is in the profile of defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamDeclaration {
    /// The key of the param.
    pub key: ParamKey,
    /// JSON Schema (2020-12) of its values: a JSON object as text, without references. At most [`MAX_SCHEMA_BYTES`].
    pub schema: String,
    /// What the param is for; may be empty.
    pub description: String,
    /// Whether its values are secrets: encrypted where they are stored, and shown to nobody who may not reveal them.
    pub secret: bool,
    /// Who declared it last, and when.
    pub annotation: Annotation,
}
