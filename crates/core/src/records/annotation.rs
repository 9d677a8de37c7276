//! Annotations: who did something, why and when, as records keep it.

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::words::name::Actor;
use crate::words::time::Timestamp;

/// Who did something, why and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The token or node that did it.
    pub by: Actor,
    /// The reason given: one line of at most 512 bytes, or empty.
    pub reason: String,
    /// Time of the action, by the server's clock.
    pub at: Timestamp,
}

impl Annotation {
    /// An annotation without a reason.
    #[must_use]
    pub const fn of(by: Actor, at: Timestamp) -> Self {
        Self { by, reason: String::new(), at }
    }

    /// `ACTION by ACTOR`, followed by `: REASON` if one was given; `action` is a participle such as `paused`.
    #[must_use]
    pub fn describe(&self, action: &str) -> String {
        format!("{action} {self}")
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&attribution(&self.by, &self.reason))
    }
}

/// `by ACTOR`, followed by `: REASON` if one was given.
#[must_use]
pub fn attribution(by: &Actor, reason: &str) -> String {
    if reason.is_empty() { format!("by {by}") } else { format!("by {by}: {reason}") }
}
