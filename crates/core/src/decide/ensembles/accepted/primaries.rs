//! Who is the primary of a Redis whose members are others than those that are recorded: the one that others follow.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;

use super::present::{FoundMember, unrecorded};
use crate::decide::ensembles::restored::{fresh, is_its_history, said, url_of};
use crate::records::ensemble::RedisSettings;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::member::Replication;
use crate::records::primary::Promotion;
use crate::words::counter::MemberNumber;
use crate::world::fleet::Fleet;

/// The primary of now, with the history that it has if that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PresentPrimary {
    pub(super) number: MemberNumber,
    history: Option<String>,
}

/// What the members that are recorded and work say of their replication.
fn replications<'a>(
    fleet: &'a Fleet,
    members: &'a EnsembleMembers,
) -> impl Iterator<Item = (MemberNumber, &'a Replication)> {
    let all = members.members.iter();
    all.filter_map(|(number, member)| {
        Some((*number, said(fleet, members, (*number, member))?.replication.as_ref()?))
    })
}

/// The members that are not recorded, and that nodes have: those that run, and the later ones of nodes whose recorded member is none any more.
pub(super) fn there(fleet: &Fleet, members: &EnsembleMembers, redis: &RedisSettings) -> Vec<FoundMember> {
    let scheme = if redis.tls { "rediss" } else { "redis" };
    let own = unrecorded(fleet, members).filter(|(_, of)| of.runs);
    let own = own.map(|(node, of)| FoundMember {
        number: of.number,
        node: node.clone(),
        store_id: None,
        peer_url: format!("{scheme}://{}", SocketAddr::new(of.address, redis.port)),
    });
    let later = members.members.values().filter_map(|member| {
        let known = &fresh(fleet, member)?.members.get(&members.ensemble)?.report;
        let number = known.later.filter(|_| known.identity == members.identity)?;
        let (node, peer_url) = (member.node.clone(), member.peer_url.clone());
        Some(FoundMember { number, node, store_id: None, peer_url })
    });
    own.chain(later).collect()
}

/// The members that run and are not recorded, and of which one that is recorded and works says that they are its replicas, or that it follows one.
pub(super) fn found(fleet: &Fleet, members: &EnsembleMembers, redis: &RedisSettings) -> Vec<FoundMember> {
    let found = there(fleet, members, redis);
    // Who names one has all others take its data, whatever they have.
    if named(fleet, members).is_some() {
        return found;
    }
    let Some(present) = present(fleet, members, &found) else { return Vec::new() };
    let mut all = replications(fleet, members);
    let of_primary = all.find(|(number, said)| *number == present.number && said.is_primary);
    let is_of_it = |of: &FoundMember| match of_primary {
        Some((_, said)) => said.replicas.contains(&of.peer_url),
        None => of.number == present.number,
    };
    // One that follows another one may have what that one has, and would lose it.
    found.into_iter().filter(is_of_it).collect()
}

/// The primary of now: one that a member which works follows, be it recorded as the primary, as a replica, or found; otherwise the one that is recorded,
/// if it is one and no other member has what came after its writes.
pub(super) fn present(
    fleet: &Fleet,
    members: &EnsembleMembers,
    found: &[FoundMember],
) -> Option<PresentPrimary> {
    let named = named(fleet, members).map(|number| PresentPrimary { number, history: None });
    named.or_else(|| followed(fleet, members, found)).or_else(|| recorded(fleet, members))
}

/// Who a person has named since the restore, knowing what others have.
fn named(fleet: &Fleet, members: &EnsembleMembers) -> Option<MemberNumber> {
    let promotion = members.lead.promotion.as_ref()?;
    members.lead.primary.filter(|_| promotion.named_in == Some(fleet.epoch))
}

/// Whether members say who the primary is, or a person has named it. Otherwise nobody knows whose data are the latest: all may have been started anew.
pub(super) fn is_known(fleet: &Fleet, members: &EnsembleMembers, redis: &RedisSettings) -> bool {
    let Some(recorded) = members.lead.primary else { return true };
    let goes_on = |(number, said): (MemberNumber, &Replication)| {
        let is_it = number == recorded && said.is_primary;
        is_it && (is_its_history(members, &said.history) || later(fleet, members, said).is_some())
    };
    let of_recorded = members.members.get(&recorded).map(|member| &member.peer_url);
    let is_streamed = |said: &Replication| said.streams && said.follows.as_ref() == of_recorded;
    named(fleet, members).is_some()
        || replications(fleet, members).any(|(_, said)| is_streamed(said))
        || followed(fleet, members, &found(fleet, members, redis)).is_some()
        || replications(fleet, members).any(goes_on)
}

/// What the members that may be named the primary have: the number of keys of each that works, and which others there are.
pub(super) fn keys(fleet: &Fleet, members: &EnsembleMembers, redis: &RedisSettings) -> Vec<String> {
    let unknown = || "an unknown number of keys".to_string();
    let each = replications(fleet, members).map(|(number, said)| {
        let followed = said.follows.as_ref().filter(|_| !said.streams);
        let followed = followed.map(|url| format!(" and followed {} last", url_of(members, url)));
        let keys = said.counted().unwrap_or_else(unknown);
        format!("member {number} has {keys}{}", followed.unwrap_or_default())
    });
    let there =
        there(fleet, members, redis).into_iter().map(|FoundMember { number, node, peer_url, .. }| {
            format!("member {number} on node {node} is not recorded: {}", asking(members, redis, &peer_url))
        });
    each.chain(there).collect()
}

/// How a person asks a Redis for how many keys it has.
fn asking(members: &EnsembleMembers, redis: &RedisSettings, url: &str) -> String {
    let (host, port) =
        url.rsplit_once("://").map_or(url, |(_, rest)| rest).rsplit_once(':').unwrap_or((url, ""));
    let host = host.trim_matches(['[', ']']);
    let tls = if redis.tls { " --tls --cacert ca.pem --cert client.pem --key client-key.pem" } else { "" };
    let password = if redis.password_secrets.is_empty() { "" } else { " --askpass" };
    let with = match redis.tls {
        true => format!(", with what `bellwether ensemble certify {}` writes", members.ensemble),
        false => String::new(),
    };
    format!("redis-cli -h {host} -p {port}{tls}{password} dbsize{with}")
}

/// The primary that a member which works follows.
fn followed(fleet: &Fleet, members: &EnsembleMembers, found: &[FoundMember]) -> Option<PresentPrimary> {
    let recorded = members.lead.primary?;
    let followed = replications(fleet, members).filter(|(_, said)| said.streams);
    let followed: Vec<&String> = followed.filter_map(|(_, said)| said.follows.as_ref()).collect();
    let is_followed = |number: &MemberNumber| {
        members.members.get(number).is_some_and(|member| followed.contains(&&member.peer_url))
    };
    let all = || replications(fleet, members).filter(|(_, said)| said.is_primary);
    if let Some(of_recorded) = all().find(|(number, _)| *number == recorded && is_followed(number)) {
        return Some(own(of_recorded));
    }
    let others: Vec<_> = all().filter(|(number, _)| is_followed(number)).collect();
    if let [other] = others.as_slice() {
        return Some(own(*other));
    }
    let found = found.iter().find(|of| followed.contains(&&of.peer_url)).map(|of| of.number);
    // One whose agent is silent, and that others get data from.
    let silent = |number: &MemberNumber| replications(fleet, members).all(|(heard, _)| heard != *number);
    let silent = || members.members.keys().copied().find(|number| is_followed(number) && silent(number));
    let number = found.or_else(|| silent().filter(|number| *number != recorded))?;
    Some(PresentPrimary { number, history: None })
}

/// The primary that is recorded, if it is one by its own word, or who went on with its writes.
fn recorded(fleet: &Fleet, members: &EnsembleMembers) -> Option<PresentPrimary> {
    let is_recorded = |(number, said): &(MemberNumber, &Replication)| {
        members.lead.primary == Some(*number) && said.is_primary
    };
    let (number, said) = replications(fleet, members).find(is_recorded)?;
    Some(
        later(fleet, members, said)
            .map_or_else(|| own((number, said)), |number| PresentPrimary { number, history: None }),
    )
}

fn own((number, said): (MemberNumber, &Replication)) -> PresentPrimary {
    PresentPrimary { number, history: Some(said.history.clone()) }
}

/// Who went on with the writes of this one, which did not see that: a primary whose history is the continuation of its own, or the one that such a
/// replica followed, which may have ended since.
fn later(fleet: &Fleet, members: &EnsembleMembers, of: &Replication) -> Option<MemberNumber> {
    let goes_on =
        |said: &Replication| said.history != of.history && said.former.as_ref() == Some(&of.history);
    let all = || replications(fleet, members).filter(|(_, said)| goes_on(said));
    let primary = all().find(|(_, said)| said.is_primary).map(|(number, _)| number);
    let followed = || {
        let urls: Vec<&String> = all().filter_map(|(_, said)| said.follows.as_ref()).collect();
        members.members.iter().find(|(_, member)| urls.contains(&&member.peer_url)).map(|(number, _)| *number)
    };
    primary.or_else(followed).or_else(|| all().map(|(number, _)| number).next())
}

/// It goes on as the primary with what it has, and all others follow it.
pub(super) fn lead(members: &mut EnsembleMembers, present: PresentPrimary) {
    let PresentPrimary { number, history } = present;
    match history {
        Some(history) => members.lead.history = Some(history),
        None => {
            members.lead.promotion = Some(Promotion { history: None, is_failover: false, named_in: None })
        }
    }
    (members.lead.primary, members.lead.handover) = (Some(number), None);
    let others = members.members.keys().filter(|other| **other != number);
    members.lead.follows = others.map(|other| (*other, number)).collect();
}
