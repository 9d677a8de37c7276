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
    /// What is done with all members, one after the other; `None` if nothing is asked for.
    pub rolling: Option<RollingRequest>,
}

/// What is done with one member after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollingAction {
    /// It is restarted.
    Restart,
    /// Its database is defragmented: it does not answer meanwhile.
    Defragment,
}

/// Something that is done with the members that an ensemble had when it was asked for, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollingRequest {
    /// What.
    pub action: RollingAction,
    /// Who asked for it. Its time says which one it is.
    pub annotation: Annotation,
    /// The members with which it is not done yet.
    pub left: BTreeSet<MemberNumber>,
    /// The one of them with which it is being done.
    pub under_way: Option<MemberNumber>,
    /// The OSDs that are not restarted yet, which follow the members.
    pub osds_left: BTreeSet<MemberNumber>,
    /// The one of them that is being restarted.
    pub osd_under_way: Option<MemberNumber>,
}

impl MemberRequests {
    /// Whether this is being done with a member: by the time at which it was asked for.
    #[must_use]
    pub fn ordered(&self, number: MemberNumber, action: RollingAction) -> Option<Timestamp> {
        let is_it = |request: &&RollingRequest| request.action == action && request.under_way == Some(number);
        self.rolling.as_ref().filter(is_it).map(|request| request.annotation.at)
    }

    /// The same of an OSD.
    #[must_use]
    pub fn osd_restart_of(&self, number: MemberNumber) -> Option<Timestamp> {
        let request = self.rolling.as_ref().filter(|request| request.osd_under_way == Some(number));
        request.map(|request| request.annotation.at)
    }
}

impl RollingRequest {
    /// A restart that has not begun.
    #[must_use]
    pub const fn restart(
        annotation: Annotation,
        left: BTreeSet<MemberNumber>,
        osds_left: BTreeSet<MemberNumber>,
    ) -> Self {
        let action = RollingAction::Restart;
        Self { action, annotation, left, under_way: None, osds_left, osd_under_way: None }
    }

    /// A defragmentation that has not begun.
    #[must_use]
    pub fn defragmentation(annotation: Annotation, left: BTreeSet<MemberNumber>) -> Self {
        Self { action: RollingAction::Defragment, ..Self::restart(annotation, left, BTreeSet::new()) }
    }

    /// The OSD that is restarted next, unless another one does not work; `None` while members are, or one is.
    #[must_use]
    pub fn next_osd(&self) -> Option<MemberNumber> {
        let is_turn = self.left.is_empty() && self.under_way.is_none() && self.osd_under_way.is_none();
        self.osds_left.first().copied().filter(|_| is_turn)
    }

    /// Whether it is done with all of them.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.left.is_empty() && self.osds_left.is_empty()
    }
}
