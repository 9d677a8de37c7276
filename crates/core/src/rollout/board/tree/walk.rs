//! Many changes in one walk: each branch on the way is entered, copied and counted once, however many of its targets
//! change. Knows nothing of rollouts.

use alloc::sync::Arc;
use core::iter::Peekable;

use super::{Node, Tree, branch_for, find};
use crate::rollout::board::member::Member;
use crate::words::name::TargetName;

impl Tree {
    /// Changes the targets of these names, which come in order. A name that is not there is passed over.
    pub(crate) fn change_some<T>(
        &mut self,
        changes: impl Iterator<Item = (TargetName, T)>,
        mut change: impl FnMut(&mut Member, T),
    ) {
        let mut changes = changes.peekable();
        if changes.peek().is_some() {
            Arc::make_mut(&mut self.root).change_some(&mut changes, None, &mut change);
            self.tally = self.root.count();
        }
    }
}

impl Node {
    /// Makes the changes to names before `until`.
    fn change_some<T>(
        &mut self,
        changes: &mut Peekable<impl Iterator<Item = (TargetName, T)>>,
        until: Option<&TargetName>,
        change: &mut impl FnMut(&mut Member, T),
    ) {
        let ours = |name: &TargetName| until.is_none_or(|until| name < until);
        let mut from = 0;
        match self {
            Self::Leaf(members) => {
                while let Some((name, with)) = changes.next_if(|(name, _)| ours(name)) {
                    let rest = members.get_mut(from..).unwrap_or_default();
                    if let Ok(place) = find(rest, &name)
                        && let Some(member) = rest.get_mut(place)
                    {
                        change(member, with);
                        from += place;
                    }
                }
            }
            Self::Inner(branches) => {
                while let Some((name, _)) = changes.peek().filter(|(name, _)| ours(name)) {
                    let rest = branches.get_mut(from..).unwrap_or_default();
                    let place = branch_for(rest, name);
                    let (before, after) = rest.split_at_mut_checked(place + 1).unwrap_or_default();
                    let Some(branch) = before.last_mut() else { return };
                    let until = after.first().map(|next| &next.first).or(until);
                    Arc::make_mut(&mut branch.node).change_some(changes, until, change);
                    branch.tally = branch.node.count();
                    from += place;
                }
            }
        }
    }
}
