//! Where the members of an ensemble are to be: how many, on which nodes, and which of them is one too many. Members stay where they are;
//! new ones are spread over domains. What the next change is depends on the kind of the ensemble, such as [`quorum`], [`primary`], [`independent`] and
//! [`devices`].

pub mod devices;
pub mod independent;
pub mod primary;
pub mod quorum;

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::cmp::Reverse;

use crate::records::ensemble::EnsembleSize;
use crate::records::ensemble_members::RemovalReason;
use crate::words::counter::MemberNumber;
use crate::words::digest::Digest;
use crate::words::name::NodeName;

/// A node, as far as it may have members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateNode {
    /// The domain that members are spread over, such as a rack.
    pub domain: Option<String>,
    /// Whether the ensemble's filter matches it.
    pub matches: bool,
    /// Why no new member is placed on it, although it matches: it is unreachable, not runnable, cordoned, or its agent is too old.
    pub refusal: Option<String>,
    /// Whether somebody asked that its members leave it.
    pub is_drained: bool,
}

impl CandidateNode {
    /// Whether a new member may be placed on it.
    #[must_use]
    pub const fn is_eligible(&self) -> bool {
        self.matches && self.refusal.is_none() && !self.is_drained
    }
}

/// The nodes by name.
pub type CandidateNodes = BTreeMap<NodeName, CandidateNode>;

/// Which node each member is on, by its number.
pub type Placed<'a> = BTreeMap<MemberNumber, &'a NodeName>;

/// The node for the next member: one without any, in the domain with the fewest members that stay; among these each ensemble has an order of its
/// own.
#[must_use]
pub fn next_node<'a>(
    ensemble: &str,
    places: &'a CandidateNodes,
    placed: &Placed<'_>,
) -> Option<&'a NodeName> {
    // Members that are to leave count for no domain: the new one has the place of one of them.
    let stay = placed.iter().filter(|(_, node)| !places.get(**node).is_some_and(|place| place.is_drained));
    let domains = domains(places, &stay.map(|(number, node)| (*number, *node)).collect());
    let free = places
        .iter()
        .filter(|(name, place)| place.is_eligible() && placed.values().all(|occupied| *occupied != *name));
    let best = free.min_by_key(|(name, place)| {
        let crowd = domains.get(&place.domain.as_deref()).copied().unwrap_or_default();
        (crowd, Reverse(weight(ensemble, name)))
    });
    best.map(|(name, _)| name)
}

/// How many members there are to be now, at least one.
#[must_use]
pub fn wanted(size: EnsembleSize, places: &CandidateNodes, placed: &Placed<'_>) -> usize {
    let nodes = places.values().filter(|place| place.matches).count();
    let is_drained = |node: &&&NodeName| places.get(**node).is_some_and(|place| place.is_drained);
    let to_leave = placed.values().filter(is_drained).count();
    // A quorum does not shrink by itself, and is odd: of an even number, one has taken the place of another that is yet to leave.
    let is_replaced = to_leave > 0 && placed.len().is_multiple_of(2);
    size.wanted(nodes, placed.len().saturating_sub(usize::from(is_replaced))).max(1)
}

/// The member to remove if there is one too many: one on a node that is drained, then one in the domain with the most members, then the
/// newest.
#[must_use]
pub fn surplus(places: &CandidateNodes, placed: &Placed<'_>) -> Option<MemberNumber> {
    let domains = domains(places, placed);
    let last = placed.iter().max_by_key(|(number, node)| {
        let place = places.get(**node);
        let crowd = domains.get(&place.and_then(|place| place.domain.as_deref())).copied();
        (place.is_some_and(|place| place.is_drained), crowd, **number)
    });
    last.map(|(number, _)| *number)
}

/// Number of members in each domain.
fn domains<'a>(places: &'a CandidateNodes, placed: &Placed<'_>) -> BTreeMap<Option<&'a str>, usize> {
    let mut domains = BTreeMap::new();
    for place in placed.values().filter_map(|node| places.get(*node)) {
        *domains.entry(place.domain.as_deref()).or_insert(0) += 1;
    }
    domains
}

/// How much an ensemble prefers a node: of many ensembles, each node is preferred by equally many.
fn weight(ensemble: &str, node: &NodeName) -> u64 {
    let mut digest = Digest::default();
    digest.add(ensemble.as_bytes());
    digest.add(node.as_str().as_bytes());
    digest.finish()
}

#[cfg(test)]
mod tests;
