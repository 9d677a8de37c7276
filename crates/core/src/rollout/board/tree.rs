//! The board's shelf: targets in name order, in a tree whose every branch knows its tally. A copy shares everything with
//! the original; a change copies one path. Knows nothing of rollouts.
//!
//! Persistent ordered maps (rpds) were measured first: a change costs the same, but one map and one lane's set of names take
//! 1.9 s to build for a million targets, this tree with all lanes and clocks 0.16 s; a full pass may take one second.

mod walk;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::lane::LaneSet;
use super::member::Member;
use super::tally::{NEVER, Place, Tally};
use crate::words::name::TargetName;
use crate::words::time::Timestamp;

/// Most entries of a leaf and branches of a node. A change copies one leaf: fewer make it cheaper, more make the tree
/// smaller. 32 was the best of 16 to 256 for a change at 100,000 targets.
const WIDTH: usize = 32;

/// Targets in name order.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: Arc<Node>,
    tally: Tally,
}

#[derive(Debug, Clone)]
enum Node {
    Leaf(Vec<Member>),
    Inner(Vec<Branch>),
}

#[derive(Debug, Clone)]
struct Branch {
    first: TargetName,
    tally: Tally,
    node: Arc<Node>,
}

/// What putting a target in did to a node.
struct Put {
    /// The place of the one it took the name of.
    old: Option<Place>,
    /// The right half, if the node became too wide.
    right: Option<Node>,
}

/// Which targets a walk is after.
struct Wanted<'a> {
    lanes: LaneSet,
    after: Option<&'a TargetName>,
    limit: usize,
}

impl Tree {
    /// Targets that come in name order, each once.
    pub(crate) fn from_sorted(members: impl Iterator<Item = Member>) -> Self {
        let mut level: Vec<Branch> = Vec::new();
        let mut leaf = Vec::with_capacity(WIDTH);
        for member in members {
            if leaf.len() == WIDTH {
                level.extend(Branch::over(Node::Leaf(core::mem::replace(
                    &mut leaf,
                    Vec::with_capacity(WIDTH),
                ))));
            }
            leaf.push(member);
        }
        level.extend(Branch::over(Node::Leaf(leaf)));
        while level.len() > 1 {
            let mut above = Vec::with_capacity(level.len() / WIDTH + 1);
            let mut rest = level.into_iter();
            loop {
                let group: Vec<Branch> = rest.by_ref().take(WIDTH).collect();
                let Some(branch) = Branch::over(Node::Inner(group)) else { break };
                above.push(branch);
            }
            level = above;
        }
        match level.pop() {
            Some(Branch { tally, node, .. }) => Self { root: node, tally },
            None => Self { root: Arc::new(Node::Leaf(Vec::new())), tally: Tally::EMPTY },
        }
    }

    /// The tally of all targets.
    pub(crate) const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The target of this name.
    pub(crate) fn get(&self, name: &TargetName) -> Option<&Member> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(members) => return members.get(find(members, name).ok()?),
                Node::Inner(branches) => node = &branches.get(branch_for(branches, name))?.node,
            }
        }
    }

    /// Puts a target in its place, over a former one of its name.
    pub(crate) fn put(&mut self, member: Member) {
        let new = member.place;
        let Put { old, right } = Arc::make_mut(&mut self.root).put(member);
        let stale = self.tally.exchange(old.as_ref(), &new);
        if let Some(right) = right {
            let left = core::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
            let mut branches = Vec::with_capacity(WIDTH);
            branches.extend(Branch::above(left));
            branches.extend(Branch::over(right));
            self.root = Arc::new(Node::Inner(branches));
        }
        if stale {
            (self.tally.due, self.tally.clock_from) = self.root.earliest();
        }
    }

    /// Takes a target away.
    pub(crate) fn remove(&mut self, name: &TargetName) {
        if self.get(name).is_some() {
            Arc::make_mut(&mut self.root).remove(name);
            if self.root.first().is_none() {
                self.root = Arc::new(Node::Leaf(Vec::new()));
            }
            self.tally = self.root.count();
        }
    }

    /// Changes every target.
    pub(crate) fn change_all(&mut self, mut change: impl FnMut(&mut Member)) {
        Arc::make_mut(&mut self.root).change_all(&mut change);
        self.tally = self.root.count();
    }

    /// At most `limit` names in these lanes, in order, beginning after `after`.
    pub(crate) fn names_in(&self, lanes: LaneSet, after: Option<&TargetName>, limit: u64) -> Vec<TargetName> {
        let wanted = Wanted { lanes, after, limit: usize::try_from(limit).unwrap_or(usize::MAX) };
        let mut found = Vec::new();
        self.root.find_in(&wanted, &mut found);
        found
    }

    /// The last name in these lanes.
    pub(crate) fn last_in(&self, lanes: LaneSet) -> Option<&TargetName> {
        self.root.last_in(lanes)
    }

    /// Names that are due by `now`, or whose deadline clock started at `clock_from` or before.
    pub(crate) fn due(&self, now: Timestamp, clock_from: Option<Timestamp>) -> Vec<TargetName> {
        let mut found = Vec::new();
        self.root.find_due(now, clock_from, &mut found);
        found
    }

    /// All targets in name order.
    pub(crate) fn iter(&self) -> Iter<'_> {
        let mut iter = Iter { stack: Vec::new(), leaf: [].iter() };
        iter.enter(&self.root);
        iter
    }
}

impl Branch {
    fn over(node: Node) -> Option<Self> {
        Self::above(Arc::new(node))
    }

    fn above(node: Arc<Node>) -> Option<Self> {
        Some(Self { first: node.first()?.clone(), tally: node.count(), node })
    }
}

impl Node {
    fn first(&self) -> Option<&TargetName> {
        match self {
            Self::Leaf(members) => members.first().map(|member| &member.name),
            Self::Inner(branches) => branches.first().map(|branch| &branch.first),
        }
    }

    fn count(&self) -> Tally {
        let mut tally = Tally::EMPTY;
        match self {
            Self::Leaf(members) => members.iter().for_each(|member| tally.add(&member.place)),
            Self::Inner(branches) => branches.iter().for_each(|branch| tally.join(&branch.tally)),
        }
        tally
    }

    /// The earliest due time and deadline clock.
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

    fn put(&mut self, member: Member) -> Put {
        match self {
            Self::Leaf(members) => match find(members, &member.name) {
                Ok(index) => {
                    let place = members.get_mut(index);
                    let old = place.map(|place| core::mem::replace(place, member).place);
                    Put { old, right: None }
                }
                Err(index) => {
                    members.insert(index, member);
                    let right = (members.len() > WIDTH).then(|| Self::Leaf(members.split_off(WIDTH / 2)));
                    Put { old: None, right }
                }
            },
            Self::Inner(branches) => {
                let index = branch_for(branches, &member.name);
                let Some(branch) = branches.get_mut(index) else { return Put { old: None, right: None } };
                let (old, right) = branch.put(member);
                if let Some(right) = right {
                    branches.insert(index + 1, right);
                }
                let right = (branches.len() > WIDTH).then(|| Self::Inner(branches.split_off(WIDTH / 2)));
                Put { old, right }
            }
        }
    }

    fn remove(&mut self, name: &TargetName) {
        match self {
            Self::Leaf(members) => {
                if let Ok(index) = find(members, name) {
                    members.remove(index);
                }
            }
            Self::Inner(branches) => {
                let index = branch_for(branches, name);
                let Some(branch) = branches.get_mut(index) else { return };
                Arc::make_mut(&mut branch.node).remove(name);
                branch.refresh();
                if branch.node.first().is_none() {
                    branches.remove(index);
                }
            }
        }
    }

    fn change_all(&mut self, change: &mut impl FnMut(&mut Member)) {
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

    fn find_in(&self, wanted: &Wanted<'_>, found: &mut Vec<TargetName>) {
        match self {
            Self::Leaf(members) => {
                let late = |member: &&Member| wanted.after.is_none_or(|after| member.name > *after);
                let room = wanted.limit.saturating_sub(found.len());
                let fitting =
                    members.iter().filter(|member| wanted.lanes.has(member.place.lane)).filter(late);
                found.extend(fitting.take(room).map(|member| member.name.clone()));
            }
            Self::Inner(branches) => {
                let skipped = wanted.after.map_or(0, |after| branch_for(branches, after));
                for branch in branches.iter().skip(skipped) {
                    if found.len() >= wanted.limit {
                        break;
                    }
                    if branch.tally.count(wanted.lanes) > 0 {
                        branch.node.find_in(wanted, found);
                    }
                }
            }
        }
    }

    fn last_in(&self, lanes: LaneSet) -> Option<&TargetName> {
        match self {
            Self::Leaf(members) => {
                members.iter().rev().find(|member| lanes.has(member.place.lane)).map(|member| &member.name)
            }
            Self::Inner(branches) => {
                branches.iter().rev().find(|branch| branch.tally.count(lanes) > 0)?.node.last_in(lanes)
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

impl Branch {
    /// Puts a target in; gives back the place it had and the right half, if this one became too wide.
    fn put(&mut self, member: Member) -> (Option<Place>, Option<Self>) {
        let new = member.place;
        let Put { old, right } = Arc::make_mut(&mut self.node).put(member);
        let replaced = old.is_some() && right.is_none();
        if !replaced {
            self.refresh();
        } else if self.tally.exchange(old.as_ref(), &new) {
            (self.tally.due, self.tally.clock_from) = self.node.earliest();
        }
        (old, right.and_then(Self::over))
    }

    /// Reads name and tally again from a node that changed.
    fn refresh(&mut self) {
        if let Some(first) = self.node.first()
            && *first != self.first
        {
            self.first = first.clone();
        }
        self.tally = self.node.count();
    }
}

/// All targets of a tree, in name order.
pub(crate) struct Iter<'a> {
    stack: Vec<core::slice::Iter<'a, Branch>>,
    leaf: core::slice::Iter<'a, Member>,
}

impl<'a> Iter<'a> {
    fn enter(&mut self, node: &'a Node) {
        match node {
            Node::Leaf(members) => self.leaf = members.iter(),
            Node::Inner(branches) => self.stack.push(branches.iter()),
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Member;

    fn next(&mut self) -> Option<&'a Member> {
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

fn find(members: &[Member], name: &TargetName) -> Result<usize, usize> {
    members.binary_search_by(|member| member.name.cmp(name))
}

/// The branch in which a name is, or would be.
fn branch_for(branches: &[Branch], name: &TargetName) -> usize {
    branches.partition_point(|branch| branch.first <= *name).saturating_sub(1)
}
