//! Annotations: who took an action, when and why. Part of many records.

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::words::name::Actor;
use crate::words::time::Timestamp;

/// Who took an action, when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Token or node that took the action.
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

/// `(ACTOR: REASON)`, or `(ACTOR)` if no reason was given.
#[must_use]
pub fn attribution_in_brackets(by: &Actor, reason: &str) -> String {
    if reason.is_empty() { format!("({by})") } else { format!("({by}: {reason})") }
}
