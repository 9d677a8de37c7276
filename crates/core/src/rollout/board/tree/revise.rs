//! Many changes in one walk: each branch on the way is visited, copied and counted once, however many of its
//! targets change. Knows nothing of rollouts.

use alloc::sync::Arc;
use core::iter::Peekable;

use super::{TargetTree, TreeNode, branch_for, find};
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::rank::{OrderKeyRef, OwnedOrderKey};

impl TargetTree {
    /// Changes the targets with these sort keys, which must come in order. A key without a target is ignored.
    pub(crate) fn change_some<T>(
        &mut self,
        changes: impl Iterator<Item = (OwnedOrderKey, T)>,
        mut change: impl FnMut(&mut BoardMember, T),
    ) {
        let mut changes = changes.peekable();
        if changes.peek().is_some() {
            Arc::make_mut(&mut self.root).change_some(&mut changes, None, &mut change);
            self.tally = self.root.count();
        }
    }
}

impl TreeNode {
    /// Applies the changes with keys before `until`.
    fn change_some<T>(
        &mut self,
        changes: &mut Peekable<impl Iterator<Item = (OwnedOrderKey, T)>>,
        until: Option<OrderKeyRef<'_>>,
        change: &mut impl FnMut(&mut BoardMember, T),
    ) {
        let ours = |place: &OwnedOrderKey| until.is_none_or(|until| spot(place) < until);
        let mut from = 0;
        match self {
            Self::Leaf(members) => {
                while let Some((place, with)) = changes.next_if(|(place, _)| ours(place)) {
                    let rest = members.get_mut(from..).unwrap_or_default();
                    if let Ok(index) = find(rest, spot(&place))
                        && let Some(member) = rest.get_mut(index)
                    {
                        change(member, with);
                        from += index;
                    }
                }
            }
            Self::Inner(branches) => {
                while let Some((place, _)) = changes.peek().filter(|(place, _)| ours(place)) {
                    let rest = branches.get_mut(from..).unwrap_or_default();
                    let index = branch_for(rest, spot(place));
                    let (before, after) = rest.split_at_mut_checked(index + 1).unwrap_or_default();
                    let Some(branch) = before.last_mut() else { return };
                    let until = after.first().map(|next| next.first.spot()).or(until);
                    Arc::make_mut(&mut branch.node).change_some(changes, until, change);
                    branch.tally = branch.node.count();
                    from += index;
                }
            }
        }
    }
}

fn spot((rank, name): &OwnedOrderKey) -> OrderKeyRef<'_> {
    (rank.as_deref(), name)
}
