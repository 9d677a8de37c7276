//! What people asked to be done with the members of an ensemble. Part of the record of its members: operations add to it before anybody acts,
//! the decider of ensembles withdraws what is done, and it passes on to each new leader.

use alloc::collections::BTreeMap;

use crate::records::annotation::Annotation;
use crate::words::counter::MemberNumber;

/// What people asked to be done with the members of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberRequests {
    /// The members that others are to take the place of, each with who asked for it.
    pub replace: BTreeMap<MemberNumber, Annotation>,
}
