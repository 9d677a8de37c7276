//! Ranks: where a target stands in the line before its name is looked at. Owns how domains and orders of a policy become
//! a place in line.

use alloc::sync::Arc;
use core::cmp::Ordering;

use crate::records::policy::Policy;
use crate::records::policy::ordering::{Domain, TargetOrder};
use crate::words::label::Labels;
use crate::words::name::TargetName;

/// The line a policy makes; one by name alone needs no ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TargetOrdering {
    domain: Option<Domain>,
    order: TargetOrder,
}

/// A domain's place: those named in the policy first, then the others by value, those without the label last.
pub(crate) type DomainRank = (u32, Arc<str>);

/// Where a target stands before its name is looked at: its domain, then its place in the policy's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) domain: DomainRank,
    order: (u64, Arc<str>),
}

/// A place in line: the rank, then the name. In one tree all targets have a rank or none has.
pub(crate) type OrderKeyRef<'a> = (Option<&'a Rank>, &'a TargetName);

impl TargetOrdering {
    /// The line of a policy.
    pub(crate) fn of(policy: &Policy) -> Self {
        Self { domain: policy.domain.clone(), order: policy.order.clone() }
    }

    /// Whether it goes by name alone.
    pub(crate) fn is_by_name(&self) -> bool {
        self.domain.is_none() && self.order == TargetOrder::Name
    }

    /// A target's rank in it; none when the line goes by name alone.
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
            TargetOrder::Name => (0, Arc::default()),
            TargetOrder::Label(key) => value(key).map_or((1, Arc::default()), |value| (0, value)),
            TargetOrder::Shuffle(seed) => (shuffled(*seed, name), Arc::default()),
        };
        Some(Arc::new(Rank { domain, order }))
    }
}

/// On which side of a domain a rank is.
pub(crate) fn side(rank: Option<&Rank>, domain: &DomainRank) -> Ordering {
    rank.map_or(Ordering::Equal, |rank| rank.domain.cmp(domain))
}

/// A number that depends on every byte of the name and on the seed, the same in every version of the program: FNV-1a
/// with the mixing of splitmix64 at its end.
fn shuffled(seed: u64, name: &TargetName) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.as_str().bytes().fold(start, step);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// A place in line, as changes name it.
pub(crate) type OwnedOrderKey = (Option<Arc<Rank>>, TargetName);
