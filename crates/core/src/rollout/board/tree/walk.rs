//! Walks over the tree: visits the targets in some phases, in update order, all of them or those of one
//! domain, and skips every branch without any.

use core::cmp::Ordering;

use alloc::vec::Vec;

use super::{Branch, TargetTree, TreeNode, branch_for};
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::phase::PhaseSet;
use crate::rollout::board::rank::{DomainRank, OrderKeyRef, side};
use crate::rollout::board::tally::PhaseTally;
use crate::words::name::TargetName;
use crate::words::time::Timestamp;

/// Filter for the targets that a walk visits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkFilter<'a> {
    /// Their phases.
    pub(crate) phases: PhaseSet,
    /// Only targets after this sort key.
    pub(crate) after: Option<OrderKeyRef<'a>>,
    /// Only targets of this domain.
    pub(crate) within: Option<&'a DomainRank>,
}

impl WalkFilter<'_> {
    /// Every target in these phases.
    pub(crate) const fn all(phases: PhaseSet) -> Self {
        Self { phases, after: None, within: None }
    }

    fn wants(&self, member: &BoardMember) -> bool {
        self.phases.has(member.place.phase)
            && self.after.is_none_or(|after| member.spot() > after)
            && self.within.is_none_or(|domain| side(member.rank.as_deref(), domain) == Ordering::Equal)
    }

    /// The branches that may hold matching targets.
    fn among<'a>(&self, branches: &'a [Branch]) -> &'a [Branch] {
        let after = self.after.map_or(0, |after| branch_for(branches, after));
        let (first, end) = match self.within {
            None => (0, branches.len()),
            Some(domain) => domain_branches(branches, domain),
        };
        branches.get(after.max(first)..end).unwrap_or_default()
    }
}

impl TargetTree {
    /// Visits the matching targets in update order until `visit` returns false.
    pub(crate) fn walk<'a>(
        &'a self,
        wanted: &WalkFilter<'_>,
        visit: &mut impl FnMut(&'a BoardMember) -> bool,
    ) {
        self.root.walk(wanted, visit);
    }

    /// At most `limit` names of the matching targets, in update order.
    pub(crate) fn names(&self, wanted: &WalkFilter<'_>, limit: u64) -> Vec<TargetName> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        if limit > 0 {
            self.walk(wanted, &mut |member| {
                found.push(member.name.clone());
                found.len() < limit
            });
        }
        found
    }

    /// The first matching target.
    pub(crate) fn first(&self, wanted: &WalkFilter<'_>) -> Option<&BoardMember> {
        let mut found = None;
        self.walk(wanted, &mut |member| {
            found = Some(member);
            false
        });
        found
    }

    /// The last matching target.
    pub(crate) fn last(&self, wanted: &WalkFilter<'_>) -> Option<&BoardMember> {
        self.root.last(wanted)
    }

    /// The tally of one domain.
    pub(crate) fn tally_of(&self, domain: &DomainRank) -> PhaseTally {
        let mut tally = PhaseTally::EMPTY;
        self.root.tally_of(domain, &mut tally);
        tally
    }

    /// Names of targets that are due by `now`, or whose deadline started at `clock_from` or before.
    pub(crate) fn due(&self, now: Timestamp, clock_from: Option<Timestamp>) -> Vec<TargetName> {
        let mut found = Vec::new();
        self.root.find_due(now, clock_from, &mut found);
        found
    }

    /// Whether more than `limit` targets are due by `now`.
    pub(crate) fn has_due_beyond(&self, limit: usize, now: Timestamp) -> bool {
        let mut room = limit;
        !self.root.counts_due(now, &mut room)
    }

    /// All targets in update order.
    pub(crate) fn iter(&self) -> Iter<'_> {
        let mut iter = Iter { stack: Vec::new(), leaf: [].iter() };
        iter.enter(&self.root);
        iter
    }
}

impl TreeNode {
    /// Returns whether the walk goes on.
    fn walk<'a>(&'a self, wanted: &WalkFilter<'_>, visit: &mut impl FnMut(&'a BoardMember) -> bool) -> bool {
        match self {
            Self::Leaf(members) => members.iter().filter(|member| wanted.wants(member)).all(visit),
            Self::Inner(branches) => wanted
                .among(branches)
                .iter()
                .filter(|branch| branch.tally.count(wanted.phases) > 0)
                .all(|branch| branch.node.walk(wanted, visit)),
        }
    }

    fn last(&self, wanted: &WalkFilter<'_>) -> Option<&BoardMember> {
        match self {
            Self::Leaf(members) => members.iter().rev().find(|member| wanted.wants(member)),
            Self::Inner(branches) => {
                let among = wanted.among(branches).iter().rev();
                among.filter(|branch| branch.tally.count(wanted.phases) > 0).find_map(|b| b.node.last(wanted))
            }
        }
    }

    fn tally_of(&self, domain: &DomainRank, tally: &mut PhaseTally) {
        match self {
            Self::Leaf(members) => {
                let of = |member: &&BoardMember| side(member.rank.as_deref(), domain) == Ordering::Equal;
                members.iter().filter(of).for_each(|member| tally.add(&member.place));
            }
            Self::Inner(branches) => {
                let (first, end) = domain_branches(branches, domain);
                for index in first..end {
                    let Some(branch) = branches.get(index) else { continue };
                    // If the first targets of this branch and of the next one belong to the domain, so do all
                    // between.
                    let begins = side(branch.first.rank.as_deref(), domain) == Ordering::Equal;
                    let whole = branches
                        .get(index + 1)
                        .is_some_and(|next| side(next.first.rank.as_deref(), domain) == Ordering::Equal);
                    if begins && whole {
                        tally.join(&branch.tally);
                    } else {
                        branch.node.tally_of(domain, tally);
                    }
                }
            }
        }
    }

    /// Takes each target that is due by `now` off `room`; false once there is none left.
    fn counts_due(&self, now: Timestamp, room: &mut usize) -> bool {
        match self {
            Self::Leaf(members) => {
                let due = members.iter().filter(|member| member.place.due <= now).count();
                let rest = room.checked_sub(due);
                *room = rest.unwrap_or_default();
                rest.is_some()
            }
            Self::Inner(branches) => {
                branches.iter().filter(|b| b.tally.due <= now).all(|branch| branch.node.counts_due(now, room))
            }
        }
    }

    fn find_due(&self, now: Timestamp, clock_from: Option<Timestamp>, found: &mut Vec<TargetName>) {
        let is_due = |due, from| due <= now || clock_from.is_some_and(|limit| from <= limit);
        match self {
            Self::Leaf(members) => {
                let due = members.iter().filter(|member| is_due(member.place.due, member.place.clock_from));
                found.extend(due.map(|member| member.name.clone()));
            }
            Self::Inner(branches) => {
                for branch in branches.iter().filter(|b| is_due(b.tally.due, b.tally.clock_from)) {
                    branch.node.find_due(now, clock_from, found);
                }
            }
        }
    }
}

/// The range of branches that may hold targets of a domain.
fn domain_branches(branches: &[Branch], domain: &DomainRank) -> (usize, usize) {
    let before = |branch: &Branch| side(branch.first.rank.as_deref(), domain) == Ordering::Less;
    let behind = |branch: &Branch| side(branch.first.rank.as_deref(), domain) != Ordering::Greater;
    let first = branches.partition_point(before).saturating_sub(1);
    (first, branches.partition_point(behind))
}

/// Iterator over all targets of a tree, in update order.
pub(crate) struct Iter<'a> {
    stack: Vec<core::slice::Iter<'a, Branch>>,
    leaf: core::slice::Iter<'a, BoardMember>,
}

impl<'a> Iter<'a> {
    fn enter(&mut self, node: &'a TreeNode) {
        match node {
            TreeNode::Leaf(members) => self.leaf = members.iter(),
            TreeNode::Inner(branches) => self.stack.push(branches.iter()),
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a BoardMember;

    fn next(&mut self) -> Option<&'a BoardMember> {
        loop {
            if let Some(member) = self.leaf.next() {
                return Some(member);
            }
            match self.stack.last_mut()?.next() {
                Some(branch) => self.enter(&branch.node),
                None => drop(self.stack.pop()),
            }
        }
    }
}
