//! Ranks: the position of targets in the update order before their names are compared. Owns how a policy's
//! domains and order become a rank.

use alloc::sync::Arc;
use core::cmp::Ordering;

use crate::records::policy::Policy;
use crate::records::policy::ordering::{Domain, TargetOrder};
use crate::words::digest::{FNV_START, fnv};
use crate::words::label::Labels;
use crate::words::name::TargetName;
use crate::words::random::{STEP, mixed};

/// The update order of a policy; an order by name alone needs no ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TargetOrdering {
    domain: Option<Domain>,
    order: TargetOrder,
}

/// Rank of a domain: the ones named in the policy first, then the others by value, targets without the label
/// last.
pub(crate) type DomainRank = (u32, Arc<str>);

/// Rank of a target: its domain, then its position in the policy's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) domain: DomainRank,
    order: (u64, Arc<str>),
}

/// Sort key of a target: the rank, then the name. In one tree either all targets have a rank or none has.
pub(crate) type OrderKeyRef<'a> = (Option<&'a Rank>, &'a TargetName);

/// Sort key of a target that outlives the board, for changes.
pub(crate) type OwnedOrderKey = (Option<Arc<Rank>>, TargetName);

impl TargetOrdering {
    /// The update order of a policy.
    pub(crate) fn of(policy: &Policy) -> Self {
        Self { domain: policy.domain.clone(), order: policy.order.clone() }
    }

    /// Whether targets are ordered by name alone.
    pub(crate) fn is_by_name(&self) -> bool {
        self.domain.is_none() && matches!(self.order, TargetOrder::Name | TargetOrder::FollowersFirst)
    }

    /// A target's rank; `None` when targets are ordered by name alone.
    pub(crate) fn rank(&self, name: &TargetName, labels: Option<&Labels>) -> Option<Arc<Rank>> {
        if self.is_by_name() {
            return None;
        }
        let value = |key: &str| labels.and_then(|labels| labels.shared(key));
        let domain = match &self.domain {
            None => (0, Arc::default()),
            Some(domain) => match value(&domain.key) {
                None => (u32::MAX, Arc::default()),
                Some(value) => {
                    let named = domain.first.iter().position(|first| *first == value);
                    let place = named.unwrap_or(domain.first.len());
                    (u32::try_from(place).unwrap_or(u32::MAX - 1), value)
                }
            },
        };
        let order = match &self.order {
            // Which store follows changes by itself: the dispatch reads it.
            TargetOrder::Name | TargetOrder::FollowersFirst => (0, Arc::default()),
            TargetOrder::Label(key) => value(key).map_or((1, Arc::default()), |value| (0, value)),
            TargetOrder::Shuffle(seed) => (shuffled(*seed, name), Arc::default()),
        };
        Some(Arc::new(Rank { domain, order }))
    }
}

/// Order of a rank relative to a domain.
pub(crate) fn side(rank: Option<&Rank>, domain: &DomainRank) -> Ordering {
    rank.map_or(Ordering::Equal, |rank| rank.domain.cmp(domain))
}

/// A hash of the name and the seed, the same in every release.
fn shuffled(seed: u64, name: &TargetName) -> u64 {
    mixed(name.as_str().bytes().fold(FNV_START ^ seed.wrapping_mul(STEP), fnv))
}
