//! Which members have a manager daemon beside them, where the store needs one that is no member.

use alloc::string::String;

use crate::records::member::{Membership, store_name};
use crate::words::counter::MemberNumber;
use crate::words::name::EnsembleName;

/// How many managers there are: one works, and the other takes over.
const MANAGERS: usize = 2;

/// Whether a member has a manager beside it, by the members that the store has: the first two have one.
#[must_use]
pub fn has_manager(ensemble: &EnsembleName, own: MemberNumber, membership: &Membership) -> bool {
    let prefix = store_name(ensemble, MemberNumber::ZERO);
    let prefix = prefix.strip_suffix('0').unwrap_or(&prefix);
    let number = |name: &String| name.strip_prefix(prefix)?.parse::<u64>().ok();
    let listed = || membership.members.keys().filter_map(number);
    let before = listed().filter(|number| *number < own.get()).count();
    before < MANAGERS && listed().any(|number| number == own.get())
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use std::string::ToString;

    use super::*;
    use crate::records::probes::StoreMember;

    #[test]
    fn the_first_two_have_one_by_their_numbers_and_not_by_their_names() {
        let ensemble: EnsembleName = "disks".parse().unwrap();
        let has = |own: u64, listed: &[&str]| {
            let entry = || StoreMember { name: None, address: None, votes: true, connected: None };
            let members: BTreeMap<_, _> = listed.iter().map(|name| (name.to_string(), entry())).collect();
            let membership = Membership {
                own_id: String::new(),
                is_leader: false,
                cluster_id: None,
                leader: None,
                members,
            };
            has_manager(&ensemble, MemberNumber::new(own), &membership)
        };
        let listed = ["disks-10", "disks-2", "disks-9"];
        assert_eq!([2, 9, 10, 3].map(|own| has(own, &listed)), [true, true, false, false]);
        assert!(has(10, &["disks-10", "a-3", "disks-11"]));
    }
}
