//! What people asked to be done with the members of an ensemble. Part of the record of its members: operations add to it before anybody acts,
//! the decider of ensembles withdraws what is done, and it passes on to each new leader.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::records::annotation::Annotation;
use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;

/// What people asked to be done with the members of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberRequests {
    /// The members that others are to take the place of, each with who asked for it.
    pub replace: BTreeMap<MemberNumber, Annotation>,
    /// The restart of the members, one after the other; `None` if none is asked for.
    pub restart: Option<RestartRequest>,
}

/// A restart of the members that an ensemble had when it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartRequest {
    /// Who asked for it. Its time says which restart it is.
    pub annotation: Annotation,
    /// The members that are not restarted yet.
    pub left: BTreeSet<MemberNumber>,
    /// The one of them that is being restarted.
    pub under_way: Option<MemberNumber>,
    /// The OSDs that are not restarted yet, which follow the members.
    pub osds_left: BTreeSet<MemberNumber>,
    /// The one of them that is being restarted.
    pub osd_under_way: Option<MemberNumber>,
}

impl MemberRequests {
    /// The restart that a member is ordered to make, by the time at which it was asked for.
    #[must_use]
    pub fn restart_of(&self, number: MemberNumber) -> Option<Timestamp> {
        let request = self.restart.as_ref().filter(|request| request.under_way == Some(number));
        request.map(|request| request.annotation.at)
    }

    /// The same of an OSD.
    #[must_use]
    pub fn osd_restart_of(&self, number: MemberNumber) -> Option<Timestamp> {
        let request = self.restart.as_ref().filter(|request| request.osd_under_way == Some(number));
        request.map(|request| request.annotation.at)
    }
}

impl RestartRequest {
    /// A restart that has not begun.
    #[must_use]
    pub const fn new(
        annotation: Annotation,
        left: BTreeSet<MemberNumber>,
        osds_left: BTreeSet<MemberNumber>,
    ) -> Self {
        Self { annotation, left, under_way: None, osds_left, osd_under_way: None }
    }

    /// The OSD that is restarted next, unless another one does not work; `None` while members are, or one is.
    #[must_use]
    pub fn next_osd(&self) -> Option<MemberNumber> {
        let is_turn = self.left.is_empty() && self.under_way.is_none() && self.osd_under_way.is_none();
        self.osds_left.first().copied().filter(|_| is_turn)
    }

    /// Whether nothing is left to be restarted.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.left.is_empty() && self.osds_left.is_empty()
    }
}
