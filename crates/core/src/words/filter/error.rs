//! Why a text is not a valid filter, and the limits of filters.

use alloc::string::String;

/// Longest filter, in bytes.
pub const MAX_FILTER_BYTES: usize = 4_096;

/// Deepest nesting of parentheses and `not`: bounds the stack that parsing and matching use.
pub const MAX_FILTER_DEPTH: usize = 32;

/// Most regular expressions of a filter: each may take a while on each text.
pub const MAX_FILTER_PATTERNS: usize = 16;

/// Why a text is not a valid filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid filter at position {position}: {reason}")]
pub struct FilterError {
    /// Byte position in the text, from 0.
    pub position: usize,
    /// What is wrong there, and what was expected.
    pub reason: String,
}
