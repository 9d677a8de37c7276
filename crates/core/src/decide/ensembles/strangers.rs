//! Members of a store that the ensemble founded which somebody else added to it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::health::working;
use crate::records::ensemble::EnsembleMode;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::member::Membership;
use crate::records::probes::StoreMember;
use crate::words::counter::MemberNumber;
use crate::world::fleet::Fleet;

/// The members that the store has and nobody ordered, by the ids that it gave them, as those of the ensemble that work list them. Those of a store
/// that was adopted are recorded.
#[must_use]
pub fn strangers<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> BTreeMap<&'a str, &'a StoreMember> {
    if members.adoption.is_some() {
        return BTreeMap::new();
    }
    let lists =
        members.members.keys().filter_map(|number| working(fleet, members, *number)?.membership.as_ref());
    listed(members, lists)
}

/// The number of a member of the ensemble that has its name in the store, or of which that is the id; `None` if neither is one of its names.
pub(super) fn own_number(members: &EnsembleMembers, id: &str, entry: &StoreMember) -> Option<MemberNumber> {
    entry.name.as_deref().and_then(|name| number_in(members, name)).or_else(|| number_in(members, id))
}

/// The number of a member of the ensemble that has this name; `None` if it is not one of its names.
pub(super) fn number_in(members: &EnsembleMembers, name: &str) -> Option<MemberNumber> {
    let number = name.strip_prefix(members.ensemble.as_str())?.strip_prefix('-')?;
    number.parse().ok().map(MemberNumber::new)
}

/// Those of them in these lists.
pub(super) fn listed<'a>(
    members: &EnsembleMembers,
    lists: impl Iterator<Item = &'a Membership>,
) -> BTreeMap<&'a str, &'a StoreMember> {
    let is_stranger = |(id, entry): &(&String, &StoreMember)| {
        let is_own = members.members.values().any(|member| {
            member.store_id.as_ref() == Some(*id) || entry.address.as_ref() == Some(&member.peer_url)
        });
        !is_own && !members.former_ids.contains(*id)
    };
    let listed = lists.flat_map(|list: &Membership| list.members.iter().filter(is_stranger));
    listed.map(|(id, entry)| (id.as_str(), entry)).collect()
}

/// What the store has.
const FOREIGN: &str = "the store has a member that is not of the ensemble, and that somebody else added";

/// Each of them with what to do about it, line by line.
#[must_use]
pub fn lines(fleet: &Fleet, members: &EnsembleMembers, mode: EnsembleMode) -> Vec<String> {
    let remove = if members.service.is_etcd() { "etcdctl member remove" } else { "ceph mon remove" };
    let line = |(id, entry): (&str, &StoreMember)| {
        let named = named(id, entry);
        match (own_number(members, id, entry), mode) {
            (Some(_), _) => format!(
                "the store has a member that has a name of the ensemble, and that is not recorded, as after a restore of an older backup: {named}; \
                 if its node has it: bellwether ensemble resume {} --accept-data-loss",
                members.ensemble
            ),
            (None, EnsembleMode::Managed) => {
                format!("{FOREIGN}: {named}; no member is added while it has; remove it: {remove} {id}")
            }
            (None, EnsembleMode::Unmanaged) => format!(
                "{FOREIGN}: {named}; the ensemble is not deleted while it has, and its own members work"
            ),
        }
    };
    strangers(fleet, members).into_iter().map(|(id, entry)| line((id, entry))).collect()
}

/// A member, by its id, its name and its address.
#[must_use]
pub fn named(id: &str, entry: &StoreMember) -> String {
    let name = entry.name.as_deref().filter(|name| !name.is_empty() && *name != id);
    let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
    let at = entry.address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
    format!("{id}{name}{at}")
}
