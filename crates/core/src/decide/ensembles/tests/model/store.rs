//! The store of the model: a quorum for every change, an add only while all voters are there, one learner at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};

use super::foreign::Foreign;
use super::{Host, Installation};
use crate::decide::placement::quorum::quorum;
use crate::records::member::{Membership, MembershipChange, store_name};
use crate::records::probes::StoreMember;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) node: NodeName,
    pub(super) url: String,
    pub(super) number: MemberNumber,
    pub(super) votes: bool,
}

/// The store.
#[derive(Debug, Default)]
pub(in super::super) struct Store {
    /// Whether who runs is a member at once, under the name that it was given.
    pub(super) admits_by_itself: bool,
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) given: u64,
    /// By id: whether it answers.
    pub(super) alive: BTreeSet<String>,
    /// Id of the member that leads.
    pub(super) leader: Option<String>,
    /// Ids of members whose data are there.
    pub(super) whole: BTreeSet<String>,
    /// The members that are not of the ensemble, by id.
    pub(super) foreign: BTreeMap<String, Foreign>,
    /// Ids of those that a person wanted removed.
    pub(super) asked: BTreeSet<String>,
}

impl Store {
    pub(in super::super) fn voters(&self) -> usize {
        self.entries.values().filter(|entry| entry.votes).count()
    }

    pub(in super::super) fn working(&self) -> usize {
        self.of(&self.alive)
    }

    pub(super) fn of(&self, ids: &BTreeSet<String>) -> usize {
        self.entries.iter().filter(|(id, entry)| entry.votes && ids.contains(*id)).count()
    }

    pub(super) fn has_quorum(&self) -> bool {
        self.voters() > 0 && self.of(&self.alive) >= quorum(self.voters())
    }

    /// Makes a change; answers the member that is not there any more, if one is to be removed.
    pub(super) fn change(&mut self, change: &MembershipChange) -> Option<MemberNumber> {
        if !self.has_quorum() {
            return None;
        }
        match change {
            MembershipChange::Add { member, peer_url } => {
                let has_learner = self.entries.values().any(|entry| !entry.votes);
                let is_there = self.entries.values().any(|entry| entry.url == *peer_url);
                if has_learner || is_there || self.of(&self.alive) < self.voters() {
                    return None;
                }
                let node = peer_url.trim_start_matches("http://").trim_end_matches(":2380").parse().unwrap();
                self.insert(Entry { node, url: peer_url.clone(), number: *member, votes: false });
            }
            MembershipChange::Promote { id } => {
                if self.alive.contains(id)
                    && let Some(entry) = self.entries.get_mut(id)
                {
                    entry.votes = true;
                }
            }
            MembershipChange::Transfer { id } => {
                if self.can_lead(id) {
                    self.leader = Some(id.clone());
                }
            }
            MembershipChange::Remove { member, id, peer_url } => {
                let by_url = || self.entries.iter().find(|(_, entry)| entry.url == *peer_url);
                let id = id.clone().or_else(|| by_url().map(|(id, _)| id.clone())).unwrap_or_default();
                assert!(!self.foreign.contains_key(&id), "a foreign member is removed by itself: {self:?}");
                return self.remove(&id).then_some(*member);
            }
            MembershipChange::RemoveForeign { id } => {
                let may_go = self.asked.contains(id) || !self.foreign.contains_key(id);
                assert!(may_go, "a foreign member is removed and nobody asked: {self:?}");
                self.remove(id);
            }
        }
        None
    }

    /// Removes a member, unless fewer would work then than a quorum needs; whether it is not there any more.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let Some(entry) = self.entries.get(id) else { return true };
        let (voters, alive) = (self.voters(), self.of(&self.alive));
        let is_alive = entry.votes && self.alive.contains(id);
        if entry.votes && alive - usize::from(is_alive) < quorum(voters - 1) {
            return false;
        }
        self.entries.remove(id);
        self.foreign.remove(id);
        true
    }

    fn can_lead(&self, id: &str) -> bool {
        self.alive.contains(id) && self.entries.get(id).is_some_and(|entry| entry.votes)
    }

    /// Another member leads, if the one that led is not there any more.
    pub(super) fn elect(&mut self) {
        if !self.leader.as_ref().is_some_and(|id| self.can_lead(id)) {
            self.leader = self.entries.keys().find(|id| self.can_lead(id)).cloned();
        }
    }

    pub(super) fn insert(&mut self, entry: Entry) -> String {
        self.given += 1;
        let id = match self.admits_by_itself {
            true => store_name(&"db".parse().unwrap(), entry.number),
            false => format!("{:x}", self.given),
        };
        self.entries.insert(id.clone(), entry);
        id
    }

    pub(super) fn list(&self, own_id: &str) -> Membership {
        let shown = |(id, entry): (&String, &Entry)| {
            let (name, address) = (Some(format!("m{}", entry.number)), Some(entry.url.clone()));
            let connected = Some(self.alive.contains(id));
            (id.clone(), StoreMember { name, address, votes: entry.votes, connected })
        };
        Membership {
            own_id: own_id.to_string(),
            is_leader: self.leader.as_deref() == Some(own_id),
            cluster_id: Some("c1".to_string()),
            leader: self.leader.clone(),
            members: self.entries.iter().map(shown).collect(),
        }
    }
}

impl Installation {
    /// The store's id of the member whose directory is on a node.
    pub(super) fn own_id(&self, name: &NodeName) -> Option<String> {
        let number = self.hosts.get(name)?.directory.map(|(number, _, _)| number);
        let number = number.or_else(|| Some(self.hosts.get(name)?.order.as_ref()?.number))?;
        let is_of = |(_, entry): &(&String, &Entry)| entry.node == *name && entry.number == number;
        self.store.entries.iter().find(is_of).map(|(id, _)| id.clone())
    }

    /// Which members answer, and which have data.
    pub(super) fn seen(&mut self) {
        let of = |is: fn(&Host) -> bool| -> BTreeSet<String> {
            let names = self.hosts.iter().filter(|(_, host)| is(host)).map(|(name, _)| name);
            names.filter_map(|name| self.own_id(name)).collect()
        };
        let whole = of(|host| host.directory.is_some_and(|(_, _, has_data)| has_data));
        let alive = of(|host| host.is_running && host.cut_since.is_none() && !host.is_suspect);
        self.store.see(whole, alive);
    }
}
