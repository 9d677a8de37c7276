//! The board's tree: targets in update order, with a tally on every branch. A copy shares everything with the
//! original; a change copies one path. Knows nothing of rollouts.
//!
//! Persistent ordered maps (rpds) were measured first: a change costs the same, but one map and one phase's
//! set of names take 1.9 s to build for a million targets, this tree with all phases and clocks 0.16 s; a
//! full pass may take one second.

mod revise;
pub(crate) mod walk;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::member::BoardMember;
use super::rank::{OrderKeyRef, Rank};
use super::tally::{self, NEVER, PhaseTally};
use crate::words::name::TargetName;
use crate::words::time::Timestamp;

/// Most entries of a leaf and branches of a node. A change copies one leaf: fewer make it cheaper, more make
/// the tree smaller. Of 16 to 256, 32 was the fastest for a change at 100,000 targets.
const WIDTH: usize = 32;

/// Targets in update order.
#[derive(Debug, Clone)]
pub(crate) struct TargetTree {
    root: Arc<TreeNode>,
    tally: PhaseTally,
}

#[derive(Debug, Clone)]
enum TreeNode {
    Leaf(Vec<BoardMember>),
    Inner(Vec<Branch>),
}

#[derive(Debug, Clone)]
struct Branch {
    first: OrderKey,
    tally: PhaseTally,
    node: Arc<TreeNode>,
}

/// Result of an insertion into a node.
struct Insertion {
    /// The position of the target that was replaced.
    old: Option<tally::TargetPosition>,
    /// The right half, if the node became too wide and was split.
    right: Option<TreeNode>,
}

/// An owned sort key.
#[derive(Debug, Clone)]
struct OrderKey {
    rank: Option<Arc<Rank>>,
    name: TargetName,
}

impl OrderKey {
    fn spot(&self) -> OrderKeyRef<'_> {
        (self.rank.as_deref(), &self.name)
    }
}

impl TargetTree {
    /// A tree of targets that come in update order, each once.
    pub(crate) fn from_sorted(members: impl Iterator<Item = BoardMember>) -> Self {
        let mut level: Vec<Branch> = Vec::new();
        let mut leaf = Vec::with_capacity(WIDTH);
        for member in members {
            if leaf.len() == WIDTH {
                level.extend(Branch::over(TreeNode::Leaf(core::mem::replace(
                    &mut leaf,
                    Vec::with_capacity(WIDTH),
                ))));
            }
            leaf.push(member);
        }
        level.extend(Branch::over(TreeNode::Leaf(leaf)));
        while level.len() > 1 {
            let mut above = Vec::with_capacity(level.len() / WIDTH + 1);
            let mut rest = level.into_iter();
            loop {
                let group: Vec<Branch> = rest.by_ref().take(WIDTH).collect();
                let Some(branch) = Branch::over(TreeNode::Inner(group)) else { break };
                above.push(branch);
            }
            level = above;
        }
        match level.pop() {
            Some(Branch { tally, node, .. }) => Self { root: node, tally },
            None => Self { root: Arc::new(TreeNode::Leaf(Vec::new())), tally: PhaseTally::EMPTY },
        }
    }

    /// The tally of all targets.
    pub(crate) const fn tally(&self) -> &PhaseTally {
        &self.tally
    }

    /// The target with this sort key.
    pub(crate) fn get(&self, spot: OrderKeyRef<'_>) -> Option<&BoardMember> {
        let mut node = &*self.root;
        loop {
            match node {
                TreeNode::Leaf(members) => return members.get(find(members, spot).ok()?),
                TreeNode::Inner(branches) => node = &branches.get(branch_for(branches, spot))?.node,
            }
        }
    }

    /// Inserts a target, or replaces the one with the same sort key.
    pub(crate) fn put(&mut self, member: BoardMember) {
        let new = member.place;
        let Insertion { old, right } = Arc::make_mut(&mut self.root).put(member);
        let stale = self.tally.exchange(old.as_ref(), &new);
        if let Some(right) = right {
            let left = core::mem::replace(&mut self.root, Arc::new(TreeNode::Leaf(Vec::new())));
            let mut branches = Vec::with_capacity(WIDTH);
            branches.extend(Branch::above(left));
            branches.extend(Branch::over(right));
            self.root = Arc::new(TreeNode::Inner(branches));
        }
        if stale {
            (self.tally.due, self.tally.clock_from) = self.root.earliest();
        }
    }

    /// Removes a target.
    pub(crate) fn remove(&mut self, spot: OrderKeyRef<'_>) {
        if self.get(spot).is_some() {
            Arc::make_mut(&mut self.root).remove(spot);
            if self.root.first().is_none() {
                self.root = Arc::new(TreeNode::Leaf(Vec::new()));
            }
            self.tally = self.root.count();
        }
    }

    /// Changes every target in place; sort keys must stay the same.
    pub(crate) fn change_all(&mut self, mut change: impl FnMut(&mut BoardMember)) {
        Arc::make_mut(&mut self.root).change_all(&mut change);
        self.tally = self.root.count();
    }
}

impl Branch {
    fn over(node: TreeNode) -> Option<Self> {
        Self::above(Arc::new(node))
    }

    fn above(node: Arc<TreeNode>) -> Option<Self> {
        Some(Self { first: node.first()?.key(), tally: node.count(), node })
    }
}

impl TreeNode {
    fn first(&self) -> Option<&BoardMember> {
        match self {
            Self::Leaf(members) => members.first(),
            Self::Inner(branches) => branches.first()?.node.first(),
        }
    }

    fn count(&self) -> PhaseTally {
        let mut tally = PhaseTally::EMPTY;
        match self {
            Self::Leaf(members) => members.iter().for_each(|member| tally.add(&member.place)),
            Self::Inner(branches) => branches.iter().for_each(|branch| tally.join(&branch.tally)),
        }
        tally
    }

    /// The earliest due time and the earliest start of a deadline.
    fn earliest(&self) -> (Timestamp, Timestamp) {
        let earlier = |a: (Timestamp, Timestamp), b: (Timestamp, Timestamp)| (a.0.min(b.0), a.1.min(b.1));
        match self {
            Self::Leaf(members) => {
                let times = members.iter().map(|member| (member.place.due, member.place.clock_from));
                times.fold((NEVER, NEVER), earlier)
            }
            Self::Inner(branches) => {
                let times = branches.iter().map(|branch| (branch.tally.due, branch.tally.clock_from));
                times.fold((NEVER, NEVER), earlier)
            }
        }
    }

    fn put(&mut self, member: BoardMember) -> Insertion {
        match self {
            Self::Leaf(members) => match find(members, member.spot()) {
                Ok(index) => {
                    let place = members.get_mut(index);
                    let old = place.map(|place| core::mem::replace(place, member).place);
                    Insertion { old, right: None }
                }
                Err(index) => {
                    members.insert(index, member);
                    let right = (members.len() > WIDTH).then(|| Self::Leaf(members.split_off(WIDTH / 2)));
                    Insertion { old: None, right }
                }
            },
            Self::Inner(branches) => {
                let index = branch_for(branches, member.spot());
                let Some(branch) = branches.get_mut(index) else {
                    return Insertion { old: None, right: None };
                };
                let (old, right) = branch.put(member);
                if let Some(right) = right {
                    branches.insert(index + 1, right);
                }
                let right = (branches.len() > WIDTH).then(|| Self::Inner(branches.split_off(WIDTH / 2)));
                Insertion { old, right }
            }
        }
    }

    fn remove(&mut self, spot: OrderKeyRef<'_>) {
        match self {
            Self::Leaf(members) => {
                if let Ok(index) = find(members, spot) {
                    members.remove(index);
                }
            }
            Self::Inner(branches) => {
                let index = branch_for(branches, spot);
                let Some(branch) = branches.get_mut(index) else { return };
                Arc::make_mut(&mut branch.node).remove(spot);
                branch.refresh();
                if branch.node.first().is_none() {
                    branches.remove(index);
                }
            }
        }
    }

    fn change_all(&mut self, change: &mut impl FnMut(&mut BoardMember)) {
        match self {
            Self::Leaf(members) => members.iter_mut().for_each(change),
            Self::Inner(branches) => {
                for branch in branches {
                    Arc::make_mut(&mut branch.node).change_all(change);
                    branch.tally = branch.node.count();
                }
            }
        }
    }
}

impl Branch {
    /// Inserts a target; returns its former position, and the right half if this branch became too wide.
    fn put(&mut self, member: BoardMember) -> (Option<tally::TargetPosition>, Option<Self>) {
        let new = member.place;
        let Insertion { old, right } = Arc::make_mut(&mut self.node).put(member);
        let replaced = old.is_some() && right.is_none();
        if !replaced {
            self.refresh();
        } else if self.tally.exchange(old.as_ref(), &new) {
            (self.tally.due, self.tally.clock_from) = self.node.earliest();
        }
        (old, right.and_then(Self::over))
    }

    /// Reads first key and tally again from a node that changed.
    fn refresh(&mut self) {
        if let Some(first) = self.node.first()
            && first.spot() != self.first.spot()
        {
            self.first = first.key();
        }
        self.tally = self.node.count();
    }
}

impl BoardMember {
    /// Its sort key.
    pub(crate) fn spot(&self) -> OrderKeyRef<'_> {
        (self.rank.as_deref(), &self.name)
    }

    fn key(&self) -> OrderKey {
        OrderKey { rank: self.rank.clone(), name: self.name.clone() }
    }
}

fn find(members: &[BoardMember], spot: OrderKeyRef<'_>) -> Result<usize, usize> {
    members.binary_search_by(|member| member.spot().cmp(&spot))
}

/// The branch that holds a target, or would hold it.
fn branch_for(branches: &[Branch], spot: OrderKeyRef<'_>) -> usize {
    branches.partition_point(|branch| branch.first.spot() <= spot).saturating_sub(1)
}
