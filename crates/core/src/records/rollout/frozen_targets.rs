//! Targets of a rollout that a freeze of targets keeps from being updated.

use alloc::string::String;
use core::fmt::{self, Display, Formatter};

use crate::records::annotation::attribution_in_brackets;
use crate::words::name::{Actor, FreezeName};
use crate::words::plural::Plural;

/// Targets that a freeze keeps from being updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenTargets {
    /// Number of targets that the freeze keeps.
    pub targets: u64,
    /// Name of the freeze, unique in its namespace, or among the global ones.
    pub freeze: FreezeName,
    /// Token or node that set the freeze.
    pub by: Actor,
    /// The reason given; may be empty.
    pub reason: String,
    /// Number of further targets that another freeze or a closed window keeps.
    pub others: u64,
}

impl Display for FrozenTargets {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { targets, freeze, by, reason, others } = self;
        let are = |count: u64| if count == 1 { "is" } else { "are" };
        let who = attribution_in_brackets(by, reason);
        write!(f, "{} {} frozen by {freeze} {who}", Plural(*targets, "target"), are(*targets))?;
        if *others > 0 {
            write!(f, ", {others} more {} frozen or outside their windows", are(*others))?;
        }
        Ok(())
    }
}
